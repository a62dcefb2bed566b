"""Compares two JSON values key by key, without recursion: hostile files may nest as deeply as a parser allows."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from hfbench.models.diff.facts import KeyDiff
from hfbench.models.problem import counted
from hfbench.text import printable

MOST_KEYS = 200
"""Differences told of one file; one more entry says how many there are beyond."""

LONGEST = 200
"""Characters of a text that are told."""

DEEPEST_SHOWN = 16
"""Levels of a value that is written whole."""

_MISSING = object()


def diff_keys(file: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[KeyDiff, ...]:
    """What differs between two objects, in the order of A's keys and then B's; lists count as one value.

    An object that one side alone has is told key by key too, but for tokens, which are told as one.
    Lists of objects that each have a `content` of their own, as added tokens do, are compared by it.
    """
    found, beyond = list[KeyDiff](), 0
    for each in _differences(file, a, b):
        if len(found) < MOST_KEYS:
            found.append(each)
        else:
            beyond += 1
    if beyond:
        found.append(KeyDiff(file=file, key="...", change="changed", a=None, b=f"{beyond:,} more keys differ"))
    return tuple(found)


def same_value(a: Any, b: Any) -> bool:
    """Equality of JSON values: true is not 1, 1 is 1.0, NaN is NaN."""
    pending = [(a, b)]
    while pending:
        left, right = pending.pop()
        if isinstance(left, dict) and isinstance(right, dict):
            if left.keys() != right.keys():
                return False
            pending += [(value, right[key]) for key, value in left.items()]
        elif isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            pending += zip(left, right, strict=True)
        elif not _same_scalar(left, right):
            return False
    return True


def told_value(value: Any, other: Any = None) -> Any:
    """A scalar as it is, a long text around its first difference from `other`, anything else as JSON, or in few words
    where that is long."""
    if isinstance(value, (dict, list)) and (short := _short_json(value)):
        return short
    if isinstance(value, dict):
        content = value.get("content")  # of a token, which says more than the number of its settings
        front = f"{_spelled(content)} " if isinstance(content, str) else ""
        return f"{front}{{{counted(len(value), 'key')}}}"
    if isinstance(value, list):
        return f"[{len(value):,} items]"
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**64:
        return f"an integer of {value.bit_length():,} bits"
    if isinstance(value, str) and len(value) > LONGEST:
        begin = max(_first_difference(value, other) - LONGEST // 4, 0) if isinstance(other, str) else 0
        return f"{'...' if begin else ''}{value[begin : begin + LONGEST]}... ({len(value):,} characters)"
    return value


def _differences(file: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[KeyDiff]:
    pending: list[tuple[str, Any, Any]] = [("", a, b)]
    while pending:
        path, left, right = pending.pop()
        if _told_by_key(left, right):
            left, right = ({} if side is _MISSING else side for side in (left, right))
        if left is _MISSING:
            yield KeyDiff(file=file, key=path, change="added", b=told_value(right))
        elif right is _MISSING:
            yield KeyDiff(file=file, key=path, change="removed", a=told_value(left))
        elif (named := _named(left, right)) is not None:
            one, other, form = named
            keys = dict.fromkeys((*one, *other))
            steps = [(form.format(path, key), one.get(key, _MISSING), other.get(key, _MISSING)) for key in keys]
            pending += reversed(steps if path else [(step.removeprefix("."), *values) for step, *values in steps])
        elif not same_value(left, right):
            yield KeyDiff(file=file, key=path, change="changed", **_both(left, right))
            for sides in ((left, _MISSING), (_MISSING, right)):  # an object in place of a scalar, or the other way
                if _told_by_key(*sides) and not _short_json(next(each for each in sides if each is not _MISSING)):
                    pending.append((path, *sides))


def _told_by_key(a: Any, b: Any) -> bool:
    """Whether one side alone has a value, and that is an object with keys worth a line each."""
    there = b if a is _MISSING else a if b is _MISSING else None
    return isinstance(there, dict) and bool(there) and not isinstance(there.get("content"), str)


def _named(a: Any, b: Any) -> tuple[dict[str, Any], dict[str, Any], str] | None:
    if isinstance(a, dict) and isinstance(b, dict):
        return a, b, "{0}.{1}"
    if isinstance(a, list) and isinstance(b, list):
        one, other = _by_content(a), _by_content(b)
        if one is not None and other is not None:
            return one, other, "{0}[{1}]"
    return None


def _by_content(entries: list[Any]) -> dict[str, Any] | None:
    contents = [entry.get("content") if isinstance(entry, dict) else None for entry in entries]
    named = {key: entry for key, entry in zip(contents, entries, strict=True) if isinstance(key, str)}
    return named if named and len(named) == len(entries) else None


def _both(a: Any, b: Any) -> dict[str, Any]:
    told_a, told_b = told_value(a, b), told_value(b, a)
    if isinstance(a, list) and isinstance(b, list) and isinstance(told_b, str) and told_a == told_b:
        pairs = enumerate(zip(a, b, strict=False))
        told_b += f", item {next((place for place, pair in pairs if not same_value(*pair)), len(a))} differs"
    return {"a": told_a, "b": told_b}


def _same_scalar(a: Any, b: Any) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b):
        return True
    return bool(a == b)


def _short_json(value: Any) -> str:
    """A value as JSON writes it, empty when that takes more than LONGEST characters."""
    pending, seen = [(value, 1)], 0
    while pending:  # counted first: hostile values are too large or too deep to be written
        each, depth = pending.pop()
        seen += 1
        inside = list(each.values()) if isinstance(each, dict) else each if isinstance(each, list) else ()
        large = (isinstance(each, int) and abs(each) >= 2**64) or (isinstance(each, str) and len(each) > LONGEST)
        if large or depth > DEEPEST_SHOWN or seen + len(inside) > LONGEST:
            return ""
        pending += [(item, depth + 1) for item in inside]
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else ""


def _spelled(value: Any) -> str:
    if isinstance(value, str):
        return f'"{printable(value[:LONGEST])}"'
    if isinstance(value, int) and abs(value) >= 2**64:
        return str(told_value(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _first_difference(a: str, b: str) -> int:
    return next(
        (place for place, pair in enumerate(zip(a, b, strict=False)) if pair[0] != pair[1]), min(len(a), len(b))
    )
