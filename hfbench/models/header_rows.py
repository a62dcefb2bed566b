"""What the text of a safetensors header says, as rows, and the error that refuses it."""

from __future__ import annotations

import json
import re
from array import array
from collections import Counter
from collections.abc import Iterable
from typing import Any, BinaryIO

from hfbench.models.dtypes import BITS
from hfbench.models.problem import ModelError, quoted

STRETCH = 2**20
"""Bytes read at a time."""

MOST_KINDS = 100_000
"""Different shapes in one file; real ones have dozens."""

U64 = 2**64

Shape = tuple[int, ...]
Kind = tuple[str, Shape, int]
"""dtype, shape and the bytes a tensor of both takes; a checkpoint has few, a million tensors or not."""


class HeaderError(ModelError):
    """A file is no safetensors file. `at` is the byte offset of what contradicts the format, from the file's start;
    `tensor` names the tensor to blame, when one is."""

    def __init__(self, code: str, found: str, *, at: int, tensor: str = "", remedy: str = "") -> None:
        self.at, self.tensor = at, tensor
        super().__init__(code, found, remedy=remedy)


class Rows:
    """What the text of a header says: a row a tensor, in the order of the text."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.kinds: list[Kind] = []
        self.kind_ids = array("L")
        self.begins = array("Q")
        self.ends = array("Q")
        self.metadata: dict[str, str] = {}
        self.in_order = False
        """True when every tensor is known to begin where the one before ends, the first at 0, and to be as long as its
        kind says."""
        self.notes: list[tuple[str, str]] = []
        """Code and sentence of what is read but should not be so."""
        self._kind_of: dict[tuple[str, Shape], int] = {}

    def kind(self, dtype: str, shape: Shape) -> int:
        """The number of a kind; KindError when no tensor can be of it."""
        found = self._kind_of.get((dtype, shape))
        if found is None:
            if len(self.kinds) == MOST_KINDS:
                raise KindError("st_too_many_shapes", f"the file has more than {MOST_KINDS:,} different shapes")
            size = bytes_of(dtype, shape)
            found = self._kind_of[dtype, shape] = len(self.kinds)
            self.kinds.append((dtype, shape, size))
        return found


class KindError(ValueError):
    """No tensor can have this dtype and shape. `code` and the text go into a HeaderError."""

    def __init__(self, code: str, found: str) -> None:
        self.code = code
        super().__init__(found)


def bytes_of(dtype: str, shape: Shape) -> int:
    """Bytes of a tensor; KindError for an unknown dtype, a count over 64 bits or a part of a byte."""
    if dtype not in BITS:
        near = f", did you mean {dtype.upper()!r}?" if dtype.upper() in BITS else ""
        raise KindError("st_unknown_dtype", f"unknown dtype {quoted(dtype)}{near}")
    bits = BITS[dtype]
    for size in shape:
        bits *= size
        if bits >= 8 * U64 or size >= U64:
            raise KindError("st_overflow", f"the shape {shown(shape)} of {dtype} takes more bytes than 64 bits count")
    if bits % 8:
        raise KindError("st_misaligned", f"{bits // BITS[dtype]} elements of {dtype} are not a whole number of bytes")
    return bits // 8


def shown(shape: Iterable[object]) -> str:
    """A shape as people write it, cut when it has very many dimensions."""
    sizes = [str(size)[:24] for size in shape]
    return "[" + ", ".join(sizes[:8]) + (f", ... {len(sizes)} dimensions" if len(sizes) > 8 else "") + "]"


class Twice(ValueError):
    """A key that stands twice in one object."""


def object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The JSON object of key and value pairs; Twice when a key stands twice."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise Twice(Counter(key for key, _ in pairs).most_common(1)[0][0])
    return made


def twice(name: str, *, at: int) -> HeaderError:
    """The error for a name that stands twice in a header."""
    return HeaderError("st_duplicate_key", f"the name {quoted(name)} stands twice", at=at, tensor=name)


def check_names(rows: Rows, file: BinaryIO, start: int, length: int) -> None:
    """Every name of a header stands once; HeaderError with the place of the second one otherwise."""
    if len(set(rows.names)) == len(rows.names):
        return
    seen: set[str] = set()
    name = next(each for each in rows.names if each in seen or seen.add(each))  # type: ignore[func-returns-value]
    spelled = json.dumps(name, ensure_ascii=False).encode()
    key = re.compile(re.escape(spelled) + rb"[ \t\r\n]*:")
    file.seek(start)
    text, place, met = b"", start, 0
    while part := file.read(min(STRETCH, start + length - place - len(text))):
        text, done = text + part, 0
        for match in key.finditer(text):
            met, done = met + 1, match.end()
            if met == 2:
                raise twice(name, at=place + match.start())
        done = max(done, len(text) - len(spelled) - 64)
        place, text = place + done, text[done:]
    raise twice(name, at=start)  # in two spellings


def read_exactly(file: BinaryIO, count: int) -> bytes:
    """`count` bytes; HeaderError when the file was cut short meanwhile."""
    parts = []
    while count > 0:
        part = file.read(count)
        if not part:
            raise HeaderError("st_truncated_header", "the file ends inside the header", at=file.tell())
        parts.append(part)
        count -= len(part)
    return b"".join(parts) if len(parts) != 1 else parts[0]
