"""Takes many entries of a safetensors header at once, in whatever spelling of JSON, when nothing is odd about them."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Callable
from itertools import chain
from operator import itemgetter, le
from typing import Any

from hfbench.models.header_rows import U64, KindError, Rows

QUOTES = 10
"""In one entry of three keys: around its name, the keys and the dtype."""

_PARTS = itemgetter("dtype", "shape", "data_offsets")
_NEGATIVE = re.compile(r"[\[,:\s]-")
_PLAIN = json.JSONDecoder()


def take_many(text: str, place: int, rows: Rows, scan: Callable[[str, int], tuple[Any, int]]) -> int:
    """Adds the entries from `place` to the last one that ends in the text, and gives the place after its comma.

    When any of them is odd, nothing is added and `place` comes back: reading one by one tells what is wrong.
    `scan` refuses a key that stands twice; it is left out where the number of quotes shows that none does.
    """
    cut = text.rfind("},", place) + 1
    part = "{" + text[place:cut] + "}"
    if not cut or ("-" in part and _NEGATIVE.search(part)):
        return place
    plain = "\\" not in part
    collected = gc.isenabled()
    gc.disable()  # thousands of objects are made here, all for a moment
    try:
        entries, end = _PLAIN.raw_decode(part) if plain else scan(part, 0)
        twice = plain and part.count('"') != QUOTES * len(entries)
        if twice or end != len(part) or not _add(entries, rows):
            return place
    except (StopIteration, ValueError, KeyError, TypeError, RecursionError):
        return place
    finally:
        if collected:
            gc.enable()
    return cut + 1


def _add(entries: dict[str, Any], rows: Rows) -> bool:
    values = list(entries.values())
    if set(map(type, values)) != {dict} or set(map(len, values)) != {3} or "__metadata__" in entries:
        return False
    dtypes, shapes, offsets = zip(*map(_PARTS, values), strict=True)
    if {*map(type, shapes), *map(type, offsets)} != {list} or set(map(type, dtypes)) != {str}:
        return False
    sizes, extents = list(chain.from_iterable(shapes)), list(chain.from_iterable(offsets))
    if set(map(len, offsets)) != {2} or not {*map(type, sizes), *map(type, extents)} <= {int}:
        return False
    begins, ends = extents[::2], extents[1::2]
    if min(chain(sizes, extents)) < 0 or max(ends) >= U64 or not all(map(le, begins, ends)):
        return False
    try:
        "".join(entries).encode()
        kinds = list(map(rows.kind, dtypes, map(tuple, shapes)))
    except (KindError, UnicodeEncodeError):
        return False
    rows.names += entries
    rows.kind_ids.fromlist(kinds)
    rows.begins.fromlist(begins)
    rows.ends.fromlist(ends)
    return True
