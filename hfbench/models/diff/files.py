"""Compares the configuration, tokenizer and chat template files of two folders by key."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from difflib import unified_diff
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeVar

from hfbench.models.diff.facts import KeyDiff
from hfbench.models.diff.keys import diff_keys
from hfbench.models.diff.vocabularies import (
    VOCABULARY_FILES,
    Vocabulary,
    diff_vocabularies,
    take_vocabulary,
    vocabulary_of_text,
)
from hfbench.models.files import read_bytes
from hfbench.models.json_text import DEEPEST, MOST_BYTES, JsonError, cut_depth, parse_object
from hfbench.models.problem import ModelError, Problem

CONFIG = ("config.json", "params.json", "hf_quant_config.json", "adapter_config.json")
GENERATION = ("generation_config.json",)
TOKENIZER = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "tekken.json",
    "vocab.txt",
    "merges.txt",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
)
TEMPLATE_FILES = ("tokenizer_config.json", "chat_template.json", "chat_template.jinja")
"""Where a chat template stands; a later one takes the place of an earlier one."""

MOST_TEXT = 256 * 1024
"""Characters of a text that is compared line by line."""

LONGEST_TEXT = 1_000
"""Lines of such a text: the time to compare may grow with their square."""

MOST_LINES = 400
"""Lines of a comparison that are kept."""

Side = Literal["A", "B"]
T = TypeVar("T")


class FolderPair:
    """The files of two folders that are not weights; what cannot be compared goes to `problems`."""

    def __init__(self, a: Path, b: Path) -> None:
        self.a, self.b = a, b
        self.problems: list[Problem] = []

    def diff_files(self, names: tuple[str, ...]) -> tuple[KeyDiff, ...]:
        """What differs in these files, by key where they are JSON."""
        return tuple(each for name in names for each in self._diff_file(name))

    def diff_templates(self) -> tuple[KeyDiff, ...]:
        """Chat templates by name, wherever each side keeps them."""
        a, b = self._templates("A", self.a), self._templates("B", self.b)
        return tuple(
            replace(each, lines=text_lines(a[each.key], b[each.key])) if each.key in a and each.key in b else each
            for each in diff_keys("chat template", a, b)
        )

    def _diff_file(self, name: str) -> tuple[KeyDiff, ...]:
        one, other = self._read("A", self.a, name), self._read("B", self.b, name)
        if one is None or other is None or one == other:
            return ()
        if not one or not other:
            change: Literal["added", "removed"] = "added" if not one else "removed"
            return (KeyDiff(file=name, key="", change=change),)
        if name in VOCABULARY_FILES:
            del one, other  # as large as they may be, not beside what is made of them
            return self._diff_vocabulary(name)
        if not name.endswith(".json"):
            told = [f"{len(each[0]):,} bytes" for each in (one, other)]
            return (KeyDiff(file=name, key="", change="changed", a=told[0], b=told[1]),)
        left, right = self._object("A", name, one[0]), self._object("B", name, other[0])
        if left is None or right is None:
            return ()
        if name in TEMPLATE_FILES:
            left.pop("chat_template", None)
            right.pop("chat_template", None)
        return diff_keys(name, left, right)

    def _diff_vocabulary(self, name: str) -> tuple[KeyDiff, ...]:
        left, right = self._vocabulary("A", self.a, name), self._vocabulary("B", self.b, name)
        if left is None or right is None:
            return ()
        return (*diff_keys(name, left.rest, right.rest), *diff_vocabularies(name, left, right))

    def _vocabulary(self, side: Side, folder: Path, name: str) -> Vocabulary | None:
        raw = self._read(side, folder, name)
        if not raw:
            return None
        if name.endswith(".txt"):
            return vocabulary_of_text(name, raw[0].decode("utf-8", "surrogateescape"))
        content = self._object(side, name, raw[0])
        return None if content is None else take_vocabulary(name, content)

    def _templates(self, side: Side, folder: Path) -> dict[str, str]:
        found: dict[str, str] = {}
        for name in TEMPLATE_FILES:
            raw = self._read(side, folder, name, tell=name not in TOKENIZER)
            if not raw:
                continue
            if name.endswith(".jinja"):
                found["default"] = raw[0].decode("utf-8", "surrogateescape")
            elif content := self._object(side, name, raw[0], tell=name not in TOKENIZER):
                found.update(_named_templates(content.get("chat_template")))
        return found

    def _read(self, side: Side, folder: Path, name: str, *, tell: bool = True) -> tuple[bytes, ...] | None:
        """The bytes of a file, nothing when it is not there, None when it cannot be read."""
        path = folder / name
        if not os.path.lexists(path):
            return ()
        return self._told(side, name, lambda: (read_bytes(path, MOST_BYTES, folder),), tell)

    def _object(self, side: Side, name: str, raw: bytes, *, tell: bool = True) -> dict[str, Any] | None:
        value = self._told(side, name, lambda: parse_object(raw).value, tell)
        if value is not None and cut_depth(value) and tell:
            found = f"nested too deeply; only {DEEPEST} levels are compared"
            self.problems.append(Problem(severity="warning", where=f"{side}: {name}", found=found, code="config_depth"))
        return value

    def _told(self, side: Side, name: str, read: Callable[[], T], tell: bool) -> T | None:
        try:
            return read()
        except (ModelError, JsonError) as error:
            if tell:
                self.problems.append(error.problem(where=f"{side}: {name}"))
            return None


def text_lines(a: str, b: str) -> tuple[str, ...]:
    """A unified diff of two texts, without its head; nothing of texts of one line, or too long to compare so."""
    if max(len(a), len(b)) > MOST_TEXT or not ("\n" in a or "\n" in b):
        return ()
    left, right = a.split("\n"), b.split("\n")
    if max(len(left), len(right)) > LONGEST_TEXT:
        return ()
    lines = list(islice(unified_diff(left, right, lineterm="", n=2), 2, MOST_LINES + 3))
    if len(lines) > MOST_LINES:
        lines[MOST_LINES:] = ["... and more"]
    return tuple(lines)


def _named_templates(value: object) -> dict[str, str]:
    if isinstance(value, str):
        return {"default": value}
    entries = value if isinstance(value, list) else []
    return {
        str(entry.get("name")): entry["template"]
        for entry in entries
        if isinstance(entry, dict) and isinstance(entry.get("template"), str)
    }
