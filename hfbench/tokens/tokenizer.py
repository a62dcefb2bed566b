"""The tokenizer of a model, in a process with limits: no library of it enters this one, and no fault of it."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path

from hfbench.errors import HfbenchError, MissingError, UsageError
from hfbench.models.problem import ModelError
from hfbench.tokens.child import Child, ChildEnded
from hfbench.tokens.convert import converted
from hfbench.tokens.encoded import FILE, Encoded, unpacked
from hfbench.tokens.tokenizer_child import MEMORY

MOST_TEXT = 4 * 2**20
"""Bytes of one text."""

LOAD_SECONDS = 20.0
"""CPU time; the largest vocabularies in use take 2 s of this class of machine."""

ENCODE_SECONDS = 3.0
"""CPU time for a short text, and once more for each MiB of a longer one, which takes 0.6 s."""

PATTERN_SECONDS = 0.25
"""CPU time for reading one regular expression; those in use take a millisecond."""

EXTRA = "tokens"
"""The extra of hfbench that installs what this room needs."""


class Tokenizer:
    """The tokenizer of one folder. It is loaded when the first text comes, and again after a text that ended it.

    Every method raises an HfbenchError of one sentence for what is wrong with the files, the text or this machine.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = ""
        """The files it was made from, once it is loaded."""
        self._child = Child("hfbench.tokens.tokenizer_child")
        self._loaded = 0
        self._trouble: HfbenchError | None = None
        self._converted = b""

    def encode(self, text: str, *, special: bool = True) -> Encoded:
        """The tokens of a text, with those a post-processor adds when `special` is true."""
        raw = utf8_of(text)
        if len(raw) > MOST_TEXT:
            raise UsageError(f"the text has {len(raw):,} bytes, {MOST_TEXT:,} can be cut", remedy="give a part of it")
        self.load()
        seconds = ENCODE_SECONDS * (1 + len(raw) / 2**20)
        try:
            told, columns = self._child.ask({"do": "encode", "special": special}, raw, seconds=seconds)
        except ChildEnded as ended:
            remedy = "give a shorter text, or do not use this tokenizer"
            raise ended_while(ended, "cutting this text", seconds, where=self.source, remedy=remedy) from None
        pieces = {int(number): piece for number, piece in told["pieces"].items()}
        return unpacked(text, raw, told["count"], pieces, columns)

    def load(self) -> None:
        """Load it, unless it is loaded; what failed once is not tried again."""
        if self._trouble is not None:
            raise self._trouble
        if self._child.alive and self._loaded == self._child.generation:
            return
        try:
            self._load()
        except ChildEnded as ended:
            where, remedy = self.source or FILE, "do not use this tokenizer"
            self._trouble = ended_while(ended, "loading the tokenizer", LOAD_SECONDS, where=where, remedy=remedy)
            raise self._trouble from None
        except HfbenchError as error:
            self._trouble = error
            raise

    def close(self) -> None:
        """End its process; a text under way ends with an error."""
        self._child.close()

    def _load(self) -> None:
        if not os.path.lexists(self.folder / FILE) and not self._converted:
            self._converted, self.source = converted(self.folder)
        self.source = self.source or FILE
        request = {"do": "load", "folder": str(self.folder.absolute())}
        try:
            self._child.ask(request, self._converted, seconds=LOAD_SECONDS)
        except MissingError as error:
            raise missing_extra(error.found) from None
        self._loaded = self._child.generation


def utf8_of(text: str) -> bytes:
    """The text as UTF-8; UsageError names the first code that is no character."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        code = ord(text[error.start])
        what = f"byte 0x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"U+{code:04X}"
        raise UsageError(f"the text is not Unicode: {what} at character {error.start:,}") from None


def ended_while(
    ended: ChildEnded, doing: str, seconds: float, *, where: object, remedy: str, memory: int = MEMORY
) -> HfbenchError:
    """Why a process ended, in a sentence."""
    if ended.ending == "closed":
        return HfbenchError(f"{doing} was given up", where=where)
    found = {
        "timeout": f"{doing} takes more than {seconds:.0f} s of CPU time",
        "memory": f"{doing} takes more than {memory / 2**20:,.0f} MiB",
    }.get(ended.ending, f"{doing} ended the process with {ended.signal}")
    return ModelError(f"tokenizer_{ended.ending}", found, where=where, remedy=remedy)


def missing_extra(found: str) -> MissingError:
    """The error for a package that is not installed."""
    return MissingError(
        f"a package is missing ({found})", where="tokens", remedy=f"install it with: pip install 'hfbench[{EXTRA}]'"
    )


def tokenized(folder: Path, text: str, *, special: bool = True) -> tuple[Encoded, str]:
    """The tokens of one text, and the files the tokenizer was made from; for whoever has no second text."""
    with closing(Tokenizer(folder)) as tokenizer:
        return tokenizer.encode(text, special=special), tokenizer.source


def refusal_of_pattern(pattern: str) -> str | None:
    """What the tokenizers library says against a regular expression; None when it takes it or is not installed."""
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    model = {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}
    whole = {"version": "1.0", "added_tokens": [], "pre_tokenizer": split, "model": model}
    child = Child("hfbench.tokens.tokenizer_child")
    try:
        child.ask({"do": "load", "folder": "/"}, json.dumps(whole).encode(), seconds=PATTERN_SECONDS)
    except ChildEnded as ended:
        return f"reading it ended the process with {ended.ending}"
    except MissingError:
        return None
    except HfbenchError as error:
        return error.found.removeprefix("the tokenizers library cannot read it: ")
    finally:
        child.close()
    return None
