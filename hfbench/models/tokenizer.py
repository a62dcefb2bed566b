"""What the tokenizer files of a folder say: class, vocabulary, special tokens, chat templates. Nothing is run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hfbench.models.facts import ChatTemplate, SpecialToken, TokenizerFacts
from hfbench.models.files import read_bytes
from hfbench.models.json_text import MOST_BYTES, JsonError, JsonObject, parse_object, parse_small, read_object
from hfbench.models.problem import ModelError, Problem
from hfbench.models.vocabulary import (
    Vocabulary,
    of_lines,
    of_sentencepiece,
    of_tekken,
    of_tokenizer_json,
    of_vocab_json,
    parse_tokenizer_json,
)

ROLES = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token")

ENDLESS = 10**9
"""transformers writes 1e30 for "no limit": from here on a maximal length means none."""

_SENTENCEPIECE = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model")


def read_tokenizer(folder: Path) -> TokenizerFacts:
    """The tokenizer of a folder. Never raises for what the files hold: faults are listed as problems."""
    reading = _Reading(folder)
    config = reading.json("tokenizer_config.json") or {}
    vocabulary = reading.vocabulary()
    roles = {**(reading.json("special_tokens_map.json") or {}), **config}
    templates = reading.templates(config)
    length = config.get("model_max_length")
    named = config.get("tokenizer_class")
    return TokenizerFacts(
        files=tuple(reading.found),
        tokenizer_class=named if isinstance(named, str) else None,
        model=vocabulary.model if vocabulary else None,
        vocab_size=vocabulary.size if vocabulary else None,
        highest_id=vocabulary.highest_id if vocabulary else None,
        added_tokens=len(vocabulary.added) if vocabulary else 0,
        special_tokens=_special_tokens(roles, vocabulary, config.get("added_tokens_decoder")),
        chat_templates=templates,
        model_max_length=int(length) if isinstance(length, (int, float)) and 0 < length < ENDLESS else None,
        problems=tuple(reading.problems),
    )


class _Reading:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.found: list[str] = []
        self.problems: list[Problem] = []

    def json(self, name: str, parse: Callable[[bytes], JsonObject] | None = None) -> dict[str, Any] | None:
        if not self.there(name):
            return None
        try:
            return read_object(self.folder / name, self.folder, parse=parse or _parser_of(name)).value
        except JsonError as error:
            code = error.code if error.fault in ("lfs_pointer", "file") else "tokenizer_json"
            self.problems.append(error.problem(where=name, code=code))
            return None

    def bytes(self, name: str) -> bytes | None:
        if not self.there(name):
            return None
        try:
            return read_bytes(self.folder / name, MOST_BYTES, self.folder)
        except ModelError as error:
            self.problems.append(error.problem(where=name))
            return None

    def there(self, name: str) -> bool:
        path = self.folder / name
        if not os.path.lexists(path):
            return False
        self.found.append(name)
        return True

    def vocabulary(self) -> Vocabulary | None:
        """From the first file that tells it; further ones are only named."""
        if content := self.json("tokenizer.json", parse_tokenizer_json):
            fast = of_tokenizer_json(content)
            for number in fast.duplicate_ids:
                self.tell("tokenizer.json", f"two added tokens have the id {number}", "tokenizer_duplicate_id")
            return fast
        if content := self.json("tekken.json"):
            return of_tekken(content)
        for name in _SENTENCEPIECE:
            if (raw := self.bytes(name)) is not None:
                if vocabulary := of_sentencepiece(raw):
                    return vocabulary
                self.tell(name, "is neither a sentencepiece model nor a tiktoken file", "tokenizer_model")
        if content := self.json("vocab.json"):
            return of_vocab_json(content)
        if (raw := self.bytes("vocab.txt")) is not None:
            return of_lines(raw)
        return None

    def templates(self, config: dict[str, Any]) -> tuple[ChatTemplate, ...]:
        found = _templates(config.get("chat_template"), "tokenizer_config.json")
        if (raw := self.bytes("chat_template.jinja")) is not None:
            text = raw.decode("utf-8", "replace")
            found.append(ChatTemplate(name="default", source="chat_template.jinja", characters=len(text)))
        if content := self.json("chat_template.json"):
            found += _templates(content.get("chat_template"), "chat_template.json")
        return tuple(found)

    def tell(self, where: str, found: str, code: str) -> None:
        self.problems.append(Problem(severity="error", where=where, found=found, code=code))


def _parser_of(name: str) -> Callable[[bytes], JsonObject]:
    return parse_object if name in ("vocab.json", "tekken.json") else parse_small


def _templates(value: object, source: str) -> list[ChatTemplate]:
    if isinstance(value, str):
        return [ChatTemplate(name="default", source=source, characters=len(value))]
    entries = value if isinstance(value, list) else []
    return [
        ChatTemplate(name=str(entry.get("name")), source=source, characters=len(entry["template"]))
        for entry in entries
        if isinstance(entry, dict) and isinstance(entry.get("template"), str)
    ]


def _special_tokens(roles: dict[str, Any], vocabulary: Vocabulary | None, decoder: object) -> dict[str, SpecialToken]:
    ids = dict(vocabulary.added) if vocabulary else {}
    for number, entry in decoder.items() if isinstance(decoder, dict) else ():
        if isinstance(entry, dict) and isinstance(entry.get("content"), str) and number.isascii() and number.isdigit():
            ids.setdefault(entry["content"], int(number[:18]))
    found = {}
    for role in ROLES:
        content = roles.get(role)
        content = content.get("content") if isinstance(content, dict) else content
        if isinstance(content, str):
            found[role] = SpecialToken(content=content, id=ids.get(content))
    return found
