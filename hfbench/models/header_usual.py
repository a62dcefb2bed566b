"""Reads a safetensors header in the spelling that the format's own library writes, a stretch at a time."""

from __future__ import annotations

import json
import re
from typing import BinaryIO

from hfbench.models.header_rows import STRETCH, KindError, Rows, object_of, read_exactly

LONGEST_USUAL_METADATA = 2**14
"""Bytes; longer ones are read the exact way."""

_ENTRY = re.compile(r'"([^"]*)":\{"dtype":"([^]]*)\],"data_offsets":\[([^,]*),([^]]*)\]\},')
_BESIDES = len('"":{"dtype":"],"data_offsets":[,]},')  # characters of an entry outside its four groups
_SHAPE = re.compile(r"(?:0|[1-9][0-9]*)(?:,(?:0|[1-9][0-9]*))*")
_METADATA = json.JSONDecoder(object_pairs_hook=object_of)


def read_usual(file: BinaryIO, start: int, length: int) -> Rows | None:
    """Rows of the spelling that safetensors itself writes; None for every other, faults included.

    The entries found must tile each stretch to the character: then nothing was passed over.
    """
    rows = Rows()
    kind_of = _KindTexts(rows)
    file.seek(start)
    left, rest = length, b""
    try:
        while left > 0:
            stretch = rest + read_exactly(file, min(STRETCH, left))
            if left == length:
                stretch = _usual_start(stretch, rows)
            left -= min(STRETCH, left)
            if left:
                cut = stretch.rfind(b"]},") + 3
                stretch, rest = stretch[:cut], stretch[cut:]
                if cut < 3 or len(rest) > STRETCH:
                    return None
            else:
                stretch = stretch.rstrip(b" ")
                if not stretch.endswith(b"]}}"):
                    return None
                stretch = stretch[:-1] + b","
            if not _take_tiles(stretch.decode(), rows, kind_of):
                return None
    except (ValueError, OverflowError, RecursionError):  # bad UTF-8, a KindError, a huge offset: the exact way tells
        return None
    return rows if len(set(rows.names)) == len(rows.names) else None


def _usual_start(stretch: bytes, rows: Rows) -> bytes:
    """Cuts the opening bracket and the metadata, when they come first, off the text."""
    before = b'{"__metadata__":'
    if not stretch.startswith(before):
        if not stretch.startswith(b'{"'):
            raise ValueError
        return stretch[1:]
    text = stretch[len(before) : LONGEST_USUAL_METADATA].decode("utf-8", "surrogateescape")
    metadata, end = _METADATA.raw_decode(text)
    spelled = text[:end].encode()  # ValueError when it held bytes that are not UTF-8
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError
    rows.metadata = metadata
    rest = stretch[len(before) + len(spelled) :]
    if not rest.startswith(b","):
        raise ValueError
    return rest[1:]


def _take_tiles(text: str, rows: Rows, kind_of: _KindTexts) -> bool:
    found = _ENTRY.findall(text)
    if not found:
        return False
    names, kinds, begins, ends = zip(*found, strict=True)
    if begins[1:] == ends[:-1]:  # in the order of the data: the first begin and the ends say all
        numbers = list(map(int, begins[:1] + ends))
        spelled = "".join(begins[:1] + ends)
        begin_bytes, end_bytes = numbers[:-1], numbers[1:]
        characters = 2 * len(spelled) - len(begins[0]) - len(ends[-1])
    else:
        numbers = list(map(int, begins + ends))
        spelled = "".join(begins + ends)
        begin_bytes, end_bytes = numbers[: len(found)], numbers[len(found) :]
        characters = len(spelled)
    if "".join(map(str, numbers)) != spelled:  # leading zeros, which JSON forbids
        return False
    joined = "".join(names)
    characters += len(joined) + sum(map(len, kinds)) + _BESIDES * len(found)
    if characters != len(text) or "\\" in joined or not joined.isprintable() or "__metadata__" in names:
        return False
    rows.names += names
    rows.kind_ids.fromlist(list(map(kind_of.__getitem__, kinds)))
    rows.begins.fromlist(begin_bytes)
    rows.ends.fromlist(end_bytes)
    return True


class _KindTexts(dict[str, int]):
    """From `F32","shape":[2,3` to a kind: each spelling is taken apart once."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def __missing__(self, text: str) -> int:
        dtype, sizes = text.split('","shape":[')
        if sizes and not _SHAPE.fullmatch(sizes):
            raise KindError("", "not the usual spelling")
        self[text] = number = self.rows.kind(dtype, tuple(map(int, sizes.split(","))) if sizes else ())
        return number
