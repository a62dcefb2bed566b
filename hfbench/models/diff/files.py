"""Compares the configuration, tokenizer and chat template files of two folders by key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

from hfbench.models.diff.facts import KeyDiff
from hfbench.models.diff.keys import diff_keys
from hfbench.models.files import read_bytes
from hfbench.models.json_text import MOST_BYTES, JsonError, parse_object
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
        return diff_keys("chat template", self._templates("A", self.a), self._templates("B", self.b))

    def _diff_file(self, name: str) -> tuple[KeyDiff, ...]:
        one, other = self._read("A", self.a, name), self._read("B", self.b, name)
        if one is None or other is None or one == other:
            return ()
        if not one or not other:
            change: Literal["added", "removed"] = "added" if not one else "removed"
            return (KeyDiff(file=name, key="", change=change),)
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
        if not (path.is_symlink() or path.exists()):
            return ()
        return self._told(side, name, lambda: (read_bytes(path, MOST_BYTES, folder),), tell)

    def _object(self, side: Side, name: str, raw: bytes, *, tell: bool = True) -> dict[str, Any] | None:
        return self._told(side, name, lambda: parse_object(raw).value, tell)

    def _told(self, side: Side, name: str, read: Callable[[], T], tell: bool) -> T | None:
        try:
            return read()
        except (ModelError, JsonError) as error:
            if tell:
                self.problems.append(error.problem(where=f"{side}: {name}"))
            return None


def _named_templates(value: object) -> dict[str, str]:
    if isinstance(value, str):
        return {"default": value}
    entries = value if isinstance(value, list) else []
    return {
        str(entry.get("name")): entry["template"]
        for entry in entries
        if isinstance(entry, dict) and isinstance(entry.get("template"), str)
    }
