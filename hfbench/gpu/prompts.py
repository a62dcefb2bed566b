"""Prompts for a benchmark: a given text, or random tokens that are the same on every device."""

from __future__ import annotations

import os
import random
import stat
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from hfbench.errors import HfbenchError, UsageError
from hfbench.gpu.generate_model import Words

LARGEST_FILE = 16 * 2**20
"""Bytes: no context of today holds the tokens of a longer text."""


def random_prompts(*, vocabulary: int, special: Collection[int], length: int, batch: int, seed: int) -> list[list[int]]:
    """`batch` different rows of `length` token ids below `vocabulary`, none of them special.

    Drawn by Python's generator, so that the seed alone decides. HfbenchError when no ordinary token is left.
    """
    skipped = sorted({token for token in special if 0 <= token < vocabulary})
    ordinary = vocabulary - len(skipped)
    if ordinary < 1:
        raise HfbenchError(f"a vocabulary of {vocabulary} tokens has no ordinary one to draw a prompt from")
    source = random.Random(seed)
    return [[_ordinary(source.randrange(ordinary), skipped) for _ in range(length)] for _ in range(batch)]


def read_prompt(text: str, file: Path | None) -> str:
    """The prompt the user gave, or an empty string when a random one is wanted.

    UsageError when both are given, when the file cannot be read as UTF-8 text, or when it is empty.
    """
    if file is None:
        return text
    if text:
        raise UsageError("prompt_text and prompt_file exclude each other", remedy="give one of them")
    try:
        content = _bytes_of(file).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"byte {error.start} is not UTF-8", where=file, remedy="give a text file") from error
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        reason = error.strerror if isinstance(error, OSError) else "no file has such a name"
        raise UsageError(f"cannot be read: {reason}", where=file, remedy="give a text file") from error
    if not content:
        raise UsageError("the prompt file is empty", where=file, remedy="give a text file")
    return content


def text_prompts(text: str, words: Words, batch: int) -> list[list[int]]:
    """The token ids of `text`, once for each sequence; HfbenchError without a tokenizer."""
    if words.tokenizer is None:
        raise HfbenchError(
            f"a text needs a tokenizer: {words.reason}",
            where="prompt_text",
            remedy="leave prompt_text out to use random tokens",
        )
    ids = list(words.tokenizer(text)["input_ids"])
    if not ids:
        raise UsageError("the prompt has no tokens", where="prompt_text")
    return [ids] * batch


def ordinary_vocabulary(config: Any, words: Words) -> tuple[int, set[int]]:
    """How many token ids both model and tokenizer know, and which of them are special."""
    special: set[Any] = set(words.tokenizer.all_special_ids) if words.tokenizer is not None else set()
    for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
        value = getattr(config, name, None)
        special |= set(value) if isinstance(value, (list, tuple)) else {value}
    known = len(words.tokenizer) if words.tokenizer is not None else config.vocab_size
    return min(known, config.vocab_size), {each for each in special if isinstance(each, int)}


def _ordinary(position: int, skipped: Sequence[int]) -> int:
    """The token at a position among those that are not skipped; `skipped` is sorted."""
    for token in skipped:
        position += position >= token
    return position


def _bytes_of(file: Path) -> bytes:
    """What a plain file holds. Its size is not trusted: files of /proc claim none, others grow."""
    if not stat.S_ISREG(file.stat().st_mode):
        raise UsageError("cannot be read: it is not a plain file", where=file, remedy="give a text file")
    with open(os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as opened:
        content = opened.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise UsageError(f"more than {LARGEST_FILE:,} bytes are too long for a prompt", where=file)
    return content
