"""Reads any JSON spelling of a safetensors header a value at a time, and knows the byte where each begins."""

from __future__ import annotations

import codecs
import json
import math
import re
from typing import Any, BinaryIO, NoReturn

from hfbench.models.header_many import take_many
from hfbench.models.header_rows import (
    STRETCH,
    U64,
    HeaderError,
    KindError,
    Rows,
    Twice,
    object_of,
    read_exactly,
    shown,
    twice,
)
from hfbench.models.problem import quoted

LONGEST_VALUE = 8 * 2**20
"""Bytes of one entry or of the metadata."""

MOST_LEVELS = 127
"""Of lists and objects in a header, itself included: the format's own reader refuses more."""

LONGEST_NUMBER = 308
"""Digits of an integer that fits a double; the format's own reader refuses numbers that do not."""

MOST_VALUES = 500_000
"""Brackets and commas in one entry that is longer than a stretch: with it, what one entry can ask of memory."""

_SPACE = re.compile(r"[ \t\n\r]*")


class ExactReader:
    """One pass over a header of `length` bytes at `start`; HeaderError at the first byte that is wrong."""

    def __init__(self, file: BinaryIO, start: int, length: int) -> None:
        file.seek(start)
        self.file, self.left = file, length
        self.text, self.place, self.base = "", 0, start
        self.mark, self.marked = 0, start
        """Where the entry being read begins: in the text, or in the file once that text is dropped (mark is -1)."""
        self.decode = codecs.getincrementaldecoder("utf-8")().decode
        self.rows, self.described, self.single_from = Rows(), False, start
        decoder = json.JSONDecoder(object_pairs_hook=object_of, parse_int=_integer, parse_constant=_no_constant)
        self.scan = decoder.scan_once  # type: ignore[attr-defined]

    def read(self) -> Rows:
        """The rows, in the order of the text."""
        if self.peek() != "{":
            if self.text.startswith("\ufeff"):
                self.fail("st_bad_json", "the header begins with a byte order mark")
            if not self.text[:1].isspace() or self.skip() != "{":
                self.fail("st_bad_json", "the header does not begin with {")
            self.rows.notes.append(("st_header_start", "the header begins with white space, not with {"))
        self.place += 1
        following = self.skip()
        while following != "}":
            if not self.many():
                self.entry()
                following = self.skip()
                if following == "}":
                    break
                if following != ",":
                    self.fail("st_bad_json", "a comma or } is missing" if following else "the header ends too early")
                self.place += 1
            following = self.skip()
            if following == "}":
                self.fail("st_bad_json", "a comma before the closing bracket")
        self.place += 1
        if self.skip():
            self.fail("st_bad_json", "more text follows the end of the header")
        return self.rows

    def many(self) -> bool:
        """Passes the entries of a whole stretch, True when they could be taken together."""
        if self.left and len(self.text) - self.place < STRETCH // 2:
            self.more(STRETCH)
        if self.base < self.single_from:
            return False
        before, self.place = self.place, take_many(self.text, self.place, self.rows, self.scan)
        if self.place > before:
            return True
        self.single_from = self.base + 1  # not again before more text is fetched
        return False

    def entry(self) -> None:
        if self.skip() != '"':
            self.fail("st_bad_json", "a tensor name in quotes is missing")
        self.mark = self.place
        name = self.value("")
        if self.skip() != ":":
            self.fail("st_bad_json", "a colon is missing", name)
        self.place += 1
        self.skip()
        value = self.value(name)
        if name == "__metadata__":
            self.metadata(value)
        else:
            self.tensor(name, value)

    def tensor(self, name: str, value: Any) -> None:
        def wrong(code: str, found: str) -> NoReturn:
            raise HeaderError(code, f"tensor {quoted(name)}: {found}", at=self.entry_offset(), tensor=name)

        if not isinstance(value, dict):
            wrong("st_bad_entry", "the entry is not an object")
        for key in ("dtype", "shape", "data_offsets"):
            if key not in value:
                wrong("st_bad_entry", f"the entry has no {key}")
        dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
        if not isinstance(dtype, str):
            wrong("st_unknown_dtype", "the dtype is not a string")
        if not isinstance(shape, list) or not all(_is_u64(size) for size in shape):
            listing = shown(shape) if isinstance(shape, list) else "not a list"
            wrong("st_bad_shape", f"the shape is {listing}, sizes are integers from 0 to 2^64-1")
        if not isinstance(offsets, list) or len(offsets) != 2 or not all(_is_u64(each) for each in offsets):
            wrong("st_bad_offsets", "data_offsets is not a pair of integers from 0 to 2^64-1")
        if offsets[0] > offsets[1]:
            wrong("st_bad_offsets", f"it ends at byte {offsets[1]:,}, before it begins at {offsets[0]:,}")
        try:
            kind = self.rows.kind(dtype, tuple(shape))
        except KindError as error:
            wrong(error.code, str(error))
        if len(value) > 3 and not _finite(value):
            wrong("st_bad_json", "a number out of range")
        self.rows.names.append(name)
        self.rows.kind_ids.append(kind)
        self.rows.begins.append(offsets[0])
        self.rows.ends.append(offsets[1])

    def metadata(self, value: Any) -> None:
        if self.described:
            raise twice("__metadata__", at=self.entry_offset())
        self.described = True
        if value is None:
            self.rows.notes.append(("st_bad_metadata", "__metadata__ is null, an object of strings is meant"))
        elif not isinstance(value, dict):
            found = "__metadata__ is not an object"
            raise HeaderError("st_bad_metadata", found, at=self.entry_offset(), tensor="__metadata__")
        else:
            for key, each in value.items():
                if not isinstance(each, str):
                    found = f"__metadata__ {quoted(key)} is not a string"
                    raise HeaderError("st_bad_metadata", found, at=self.entry_offset(), tensor="__metadata__")
            self.rows.metadata = value

    def value(self, name: str) -> Any:
        """The JSON value at this place; more text is fetched while one could still go on."""
        while True:
            try:
                value, end = self.scan(self.text, self.place)
                spelled, self.place = self.text[self.place : end], end
                if "\\u" in spelled and not _is_text(value):
                    self.fail("st_bad_json", "half of a surrogate pair", name)
                if spelled.count("[") + spelled.count("{") >= MOST_LEVELS and _levels(value) >= MOST_LEVELS:
                    self.fail("st_bad_json", "lists or objects are nested too deeply", name)
                return value
            except Twice as error:
                self.fail("st_duplicate_key", f"the key {quoted(error)} stands twice", name)
            except RecursionError:
                self.fail("st_bad_json", "lists or objects are nested too deeply", name)
            except (StopIteration, ValueError) as error:
                if self.left and len(self.text) - self.place < LONGEST_VALUE:
                    self.more(len(self.text) - self.place)
                    if sum(self.text.count(each, self.place) for each in "[{,") > MOST_VALUES:
                        self.fail("st_bad_json", f"more than {MOST_VALUES:,} values", name)
                    continue
                if self.left:
                    self.fail("st_bad_json", f"not JSON within {LONGEST_VALUE // 2**20} MiB", name)
                if isinstance(error, json.JSONDecodeError):
                    self.place = min(error.pos, len(self.text))
                reason = "no value" if isinstance(error, StopIteration) else getattr(error, "msg", str(error))
                self.fail("st_bad_json", f"not JSON ({reason[:1].lower()}{reason[1:]})", name)

    def peek(self) -> str:
        if self.place >= len(self.text) and self.left:
            self.more(STRETCH)
        return self.text[self.place : self.place + 1]

    def skip(self) -> str:
        """Passes white space and shows the next character, an empty text at the end."""
        while character := self.peek():
            if character not in " \t\n\r":
                return character
            self.place = _SPACE.match(self.text, self.place).end()  # type: ignore[union-attr]
        return ""

    def more(self, want: int) -> None:
        """Drops what is read and appends at least one stretch."""
        raw = read_exactly(self.file, min(max(want, STRETCH), self.left))
        self.left -= len(raw)
        self.marked, self.mark = self.entry_offset(), -1
        self.base, kept = self.offset(), self.text[self.place :]
        self.place = 0
        try:
            self.text = kept + self.decode(raw, final=not self.left)
        except UnicodeDecodeError as error:
            self.text = kept
            at = self.base + len(kept.encode("utf-8", "surrogatepass")) + error.start
            raise HeaderError("st_bad_json", f"byte {at:,} is not UTF-8", at=at) from None

    def offset(self, place: int | None = None) -> int:
        """Bytes from the start of the file to a place, this one by default; costs a look at all text before it."""
        before = self.text[: self.place if place is None else place]
        return self.base + (len(before) if before.isascii() else len(before.encode("utf-8", "surrogatepass")))

    def entry_offset(self) -> int:
        """Bytes from the start of the file to the entry being read."""
        return self.marked if self.mark < 0 else self.offset(self.mark)

    def fail(self, code: str, found: str, tensor: str = "") -> NoReturn:
        where = f" in the entry of {quoted(tensor)}" if tensor else ""
        raise HeaderError(code, f"{found}{where}, at byte {self.offset():,}", at=self.offset(), tensor=tensor)


def _no_constant(spelled: str) -> NoReturn:
    raise ValueError(f"{spelled} is not JSON")


def _integer(digits: str) -> int | float:
    if len(digits) > LONGEST_NUMBER:
        return math.inf
    return int(digits) if digits != "-0" else -0.0


def _finite(value: Any) -> bool:
    """False when a number in a value is larger than a double can be."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return True


def _is_text(value: Any) -> bool:
    """False when a text in a value holds half of a surrogate pair, which UTF-8 cannot spell."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _levels(value: Any) -> int:
    """Levels of lists and objects in a value; not walked further than any header may go."""
    levels, inner = 0, [value]
    while levels < MOST_LEVELS and (inner := [each for each in inner if isinstance(each, (dict, list))]):
        inner = [item for each in inner for item in (each.values() if isinstance(each, dict) else each)]
        levels += 1
    return levels


def _is_u64(value: object) -> bool:
    return type(value) is int and 0 <= value < U64
