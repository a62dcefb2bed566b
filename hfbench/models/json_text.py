"""Reads a JSON object strictly and says by line and column what keeps a file from being one."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hfbench.models.files import read_bytes
from hfbench.models.magic import LOOK, recognise
from hfbench.models.problem import ModelError, quoted

MOST_BYTES = 40 * 2**20
"""The largest such file seen in the wild, a tokenizer of 262,144 tokens, has 33 MB."""

MOST_VALUES = 1_200_000
"""Brackets and commas in one file: what bounds the memory a hostile text can ask for, up to 200 bytes each."""

SMALL_VALUES = 400_000
"""The same for files of settings; the largest seen in the wild list 33,000 added tokens with eight values each."""

LARGE = 4 * 2**20
"""Bytes from which on keys that stand twice are not looked for: it takes twice the memory."""

DEEPEST = 200
"""Levels of lists and objects that `cut_depth` keeps; the deepest real configurations have fewer than ten."""

MOST_NOTES = 20

MOST_DIGITS = 4000
"""Longer integers are taken as infinite: Python refuses 4,300 digits, and no field of a model needs twenty."""

_LARGE_EXPONENT = re.compile(r"[0-9][eE]\+?[0-9]{3}")
"""Where floats are looked at one by one, which takes time: those that may be more than a float holds."""

Fault = Literal["bom", "encoding", "syntax", "empty", "not_object", "lfs_pointer", "file"]
NoteKind = Literal["nan", "duplicate", "huge_number"]


@dataclass(frozen=True, slots=True)
class Note:
    """Something a lenient reader takes and a strict one does not."""

    kind: NoteKind
    found: str


@dataclass(frozen=True, slots=True)
class JsonObject:
    """The object of a file, and what is odd about its text."""

    value: dict[str, Any]
    notes: tuple[Note, ...]


class JsonError(ModelError):
    """A file is not a JSON object. `line` and `column` count from 1, 0 when no place is to blame."""

    def __init__(self, fault: Fault, found: str, *, line: int = 0, column: int = 0, remedy: str = "", code: str = ""):
        self.fault, self.line, self.column = fault, line, column
        place = f"line {line}, column {column}: " if line else ""
        super().__init__(code or f"json_{fault}", place + found, remedy=remedy)

    def at(self, where: object) -> JsonError:
        """The same error with the file's name."""
        same = JsonError(self.fault, self.found, remedy=self.remedy, code=self.code)
        same.line, same.column, same.where = self.line, self.column, str(where)
        same.args = (f"{where}: {self.args[0]}",)
        return same


def read_object(
    path: Path,
    folder: Path | None = None,
    limit: int = MOST_BYTES,
    parse: Callable[[bytes], JsonObject] | None = None,
) -> JsonObject:
    """The JSON object in a file of the model's folder; JsonError otherwise, never another exception for its content.

    `parse` takes the place of `parse_object` for files with a shorter way to what is wanted of them.
    """
    try:
        return (parse or parse_object)(read_bytes(path, limit, folder))
    except JsonError as error:
        raise error.at(path) from None
    except ModelError as error:
        raise JsonError("file", error.found, remedy=error.remedy, code=error.code).at(path) from None


def parse_object(raw: bytes, most: int = MOST_VALUES) -> JsonObject:
    """The JSON object that bytes spell, of so many values at most; JsonError says what they are instead."""
    value, notes = _Reader(pairs=len(raw) < LARGE).read(_decoded(raw, most))
    if not isinstance(value, dict):
        raise JsonError("not_object", f"the root is {_kind(value)}, an object {{...}} is needed")
    return JsonObject(value, tuple(notes))


def parse_small(raw: bytes) -> JsonObject:
    """The same for a file of settings, which holds fewer values than one of a vocabulary."""
    return parse_object(raw, SMALL_VALUES)


def cut_depth(value: dict[str, Any]) -> bool:
    """Empty what lies below the deepest level, so that whoever walks the rest may recurse; True when anything did."""
    level: list[Any] = [value]
    for _ in range(DEEPEST):
        inner = [item for each in level for item in (each.values() if isinstance(each, dict) else each)]
        level = [item for item in inner if isinstance(item, (dict, list))]
    full = [each for each in level if each]
    for each in full:
        each.clear()
    return bool(full)


class _Reader:
    """Collects what the decoder would pass over in silence."""

    def __init__(self, *, pairs: bool) -> None:
        self.notes: list[Note] = []
        hook = self._object if pairs else None
        self.decoder = json.JSONDecoder(object_pairs_hook=hook, parse_constant=self._constant, parse_int=self._integer)
        self.floats = json.JSONDecoder(
            object_pairs_hook=hook,
            parse_constant=self._constant,
            parse_int=self._integer,
            parse_float=self._float,
        )

    def read(self, text: str) -> tuple[Any, list[Note]]:
        try:
            decoder = self.floats if _LARGE_EXPONENT.search(text) else self.decoder
            return decoder.decode(text), self.notes
        except json.JSONDecodeError as error:
            raise JsonError("syntax", _blame(text, error), line=error.lineno, column=error.colno) from None
        except RecursionError:
            raise JsonError("syntax", "lists or objects are nested too deeply") from None

    def _object(self, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            self._note("duplicate", f"the key {quoted(twice)} stands twice; the last one counts")
        return made

    def _constant(self, spelled: str) -> float:
        self._note("nan", f"{spelled} is not JSON; Python reads it, other readers refuse the file")
        return float(spelled.replace("Infinity", "inf"))

    def _float(self, spelled: str) -> float:
        value = float(spelled)
        if math.isinf(value):
            shown = spelled if len(spelled) <= 40 else f"{spelled[:40]}..."
            self._note(
                "nan", f"{shown} is more than a float holds; Python reads it as infinite, other readers refuse it"
            )
        return value

    def _integer(self, digits: str) -> int | float:
        if len(digits) <= MOST_DIGITS:
            return int(digits)
        self._note("huge_number", f"an integer of {len(digits):,} digits")
        return -math.inf if digits[0] == "-" else math.inf

    def _note(self, kind: NoteKind, found: str) -> None:
        if len(self.notes) < MOST_NOTES:
            self.notes.append(Note(kind, found))


def _decoded(raw: bytes, most: int) -> str:
    if not raw.strip():
        raise JsonError("empty", "the file is empty" if not raw else "the file holds only white space")
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in raw[:4]:
        raise JsonError("encoding", "the text is UTF-16 or UTF-32", remedy="save it as UTF-8")
    if raw.startswith(b"\xef\xbb\xbf"):
        raise JsonError("bom", "the file begins with a byte order mark", remedy="save it as UTF-8 without BOM")
    what = recognise(raw[:LOOK])
    if what and what != "JSON text":
        fault: Fault = "lfs_pointer" if "git-lfs" in what else "syntax"
        remedy = "run git lfs pull, or fetch the file again" if fault == "lfs_pointer" else "fetch the file again"
        raise JsonError(fault, f"this is {what}", remedy=remedy, code="lfs_pointer" if fault == "lfs_pointer" else "")
    if sum(map(raw.count, (b"[", b"{", b","))) > most:
        raise JsonError("syntax", f"the text holds more than {most:,} values")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        found = f"byte 0x{raw[error.start]:02x} is not UTF-8"
        raise JsonError("encoding", found, line=line, column=column, remedy="save the file as UTF-8") from None


def _blame(text: str, error: json.JSONDecodeError) -> str:
    rest = text[error.pos : error.pos + 40]
    before = text[: error.pos].rstrip()[-1:]
    if re.match(r"\s*(//|/\*|#)", rest):
        return "a comment; JSON has none"
    if before == "," and re.match(r"\s*[}\]]", rest):
        return "a comma before the closing bracket"
    if not rest.strip():
        return "the text ends too early"
    if error.msg == "Extra data":
        return "more text follows the end of the object"
    return error.msg[0].lower() + error.msg[1:]


def _kind(value: object) -> str:
    names = {list: "a list", str: "a string", bool: "true or false", int: "a number", float: "a number"}
    return "null" if value is None else names.get(type(value), "not an object")
