"""Reads a safetensors header in the spelling that the format's own library writes, a stretch at a time."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from itertools import accumulate
from typing import BinaryIO

from hfbench.models.header_rows import STRETCH, KindError, Rows, Shape, object_of, read_exactly

LONGEST_USUAL_METADATA = 2**14
"""Bytes; longer ones are read the exact way."""

_ENTRY = re.compile(r'"([^"]*)":\{"dtype":"([^]]*)\],"data_offsets":\[([^,]*),([^]]*)\]\},')
_NAME_AND_KIND = re.compile(r'"([^"]*+)":\{"dtype":"([^]]*+)\],"data_offsets":\[[^]]*+\]\},')
_PLAIN = bytes(range(0x20, 0x7F)).replace(b"\\", b"")
_BESIDES = len('"":{"dtype":"],"data_offsets":[,]},')  # characters of an entry outside its four groups
_SHAPE = re.compile(r"(?:0|[1-9][0-9]*)(?:,(?:0|[1-9][0-9]*))*")
_METADATA = json.JSONDecoder(object_pairs_hook=object_of)


def read_usual(file: BinaryIO, start: int, length: int) -> Rows | None:
    """Rows of the spelling that safetensors itself writes; None for every other, faults included.

    The entries found must make up each stretch to the character: then nothing was passed over.
    """
    rows = Rows()
    kind_of = _KindTexts(rows)
    file.seek(start)
    left, rest, in_order = length, b"", True
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
            in_order = in_order and _take_in_order(stretch, rows, kind_of)
            if not in_order and not _take_in_any_order(stretch.decode(), rows, kind_of):
                return None
        rows.in_order = in_order
    except (ValueError, OverflowError, RecursionError):  # bad UTF-8, a KindError, a huge offset: the exact way tells
        return None
    return rows


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
    if "\\u" in text[:end]:
        raise ValueError  # it may be half of a surrogate pair
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise ValueError
    rows.metadata = metadata
    rest = stretch[len(before) + len(spelled) :]
    if not rest.startswith(b","):
        raise ValueError
    return rest[1:]


def _take_in_order(stretch: bytes, rows: Rows, kind_of: _KindTexts) -> bool:
    """Takes entries that follow each other in the data too: dtypes and shapes alone then tell every offset.

    Written anew from what was found, the text must come out as it stands: then nothing was passed over.
    """
    text = stretch.decode()
    found = _NAME_AND_KIND.findall(text)
    if not found:
        return False
    names, kinds = zip(*found, strict=True)
    numbers = [kind_of[kind] for kind in kinds]
    sizes = [size for _, _, size in rows.kinds]
    edges = list(accumulate([sizes[number] for number in numbers], initial=rows.ends[-1] if rows.ends else 0))
    digits = list(map(str, edges))
    entries = zip(names, kinds, digits, digits[1:], strict=False)
    if text != "".join([f'"{a}":{{"dtype":"{b}],"data_offsets":[{c},{d}]}},' for a, b, c, d in entries]):
        return False
    if stretch.translate(None, _PLAIN):  # other than printable ASCII without a backslash
        joined = "".join(names)
        if "\\" in joined or not joined.isprintable():
            return False
    if "__metadata__" in names:
        return False
    rows.names += names
    rows.kind_ids.fromlist(numbers)
    rows.begins.fromlist(edges[:-1])
    rows.ends.fromlist(edges[1:])
    return True


def _take_in_any_order(text: str, rows: Rows, kind_of: _KindTexts) -> bool:
    """Takes entries whose offsets are to be read one by one; together they must be as long as the text."""
    found = _ENTRY.findall(text)
    if not found:
        return False
    names, kinds, begins, ends = zip(*found, strict=True)
    numbers = list(map(int, begins + ends))
    spelled = "".join(begins + ends)
    if "".join(map(str, numbers)) != spelled:  # leading zeros, which JSON forbids
        return False
    joined = "".join(names)
    characters = len(spelled) + len(joined) + sum(map(len, kinds)) + _BESIDES * len(found)
    if characters != len(text) or "\\" in joined or not joined.isprintable() or "__metadata__" in names:
        return False
    rows.names += names
    rows.kind_ids.fromlist(list(map(kind_of.__getitem__, kinds)))
    rows.begins.fromlist(numbers[: len(found)])
    rows.ends.fromlist(numbers[len(found) :])
    return True


class _KindTexts(dict[str, int]):
    """From `F32","shape":[2,3` to a kind: each spelling is taken apart once."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def __missing__(self, text: str) -> int:
        self[text] = number = self.rows.kind(*_dtype_and_shape(text))
        return number


@lru_cache(4096)  # the files of one model have the same few
def _dtype_and_shape(text: str) -> tuple[str, Shape]:
    dtype, sizes = text.split('","shape":[')
    if sizes and not _SHAPE.fullmatch(sizes):
        raise KindError("", "not the usual spelling")
    return dtype, tuple(map(int, sizes.split(","))) if sizes else ()
