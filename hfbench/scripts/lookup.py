"""Finds a value in a result by its path, with the unit that stands beside it."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from hfbench.jobs.figures import unit_of
from hfbench.text import did_you_mean, printable

DERIVED = ("headline", "failed")
"""Properties of a result class that are written beside its fields."""


class NotThere(Exception):
    """A path leads nowhere; the message says what is there instead."""


@dataclass(frozen=True, kw_only=True)
class Found:
    """A value of a result. `unit` is empty when none stands beside it."""

    value: Any
    unit: str
    path: str


def look_up(result: Mapping[str, Any], path: Sequence[str], *, within: str = "") -> Found:
    """The value at a path; the `metrics` of a result may be left out of it, and a list has a `count`.

    The unit is the `unit` field of the object that holds the number, else that of a name ending in
    `seconds` or `bytes`. NotThere names the nearest key; `within` is how the result is called there.
    """
    current: Any = result
    unit, walked = "", within
    for depth, key in enumerate(path):
        metrics = _object(result.get("metrics")) if depth == 0 else {}
        if key in metrics and key not in result:
            current = metrics
        if isinstance(current, Mapping):
            unit = str(current.get("unit") or unit)
            if key not in current:
                raise NotThere(_absent(key, walked, tuple(map(str, (*current, *metrics)))))
            current = current[key]
        elif isinstance(current, list):
            current = _item(current, key, walked)
        else:
            raise NotThere(f"{walked} is a single value and has no {key!r}")
        walked = f"{walked}.{key}" if walked else key
    return Found(value=current, unit=unit_of(current, path[-1], unit), path=walked)


def check_path(result: Any, path: Sequence[str], *, within: str = "") -> Any:
    """The type a path leads to through the declared classes, None where they do not tell.

    NotThere when no result can have the path.
    """
    current, walked = result, within
    for depth, key in enumerate(path):
        fields = _fields(current)
        if fields is None:
            return None
        inner = _fields(fields.get("metrics")) if depth == 0 else None
        if depth == 0 and key in DERIVED and key not in fields and hasattr(current, key):
            return None
        if depth == 0 and key not in fields and "metrics" in fields:
            if inner is None:
                return None
            fields = {**inner, **fields}
        if key not in fields:
            raise NotThere(_absent(key, walked, tuple(fields)))
        current = fields[key]
        walked = f"{walked}.{key}" if walked else key
    return current


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _item(items: list[Any], key: str, walked: str) -> Any:
    if key == "count":
        return len(items)
    if not key.isdecimal():
        raise NotThere(f"{walked} is a list of {len(items)}; ask for its count or an item by number, not {key!r}")
    if len(key) > 9 or int(key) >= len(items):
        raise NotThere(f"{walked} has {len(items)} items, numbered from 0; there is no {key[:12]}")
    return items[int(key)]


@lru_cache(maxsize=1024)
def _absent(key: str, walked: str, names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    hint = did_you_mean(key, names) or (f"there is {shown}" if names else "it is empty")
    return printable(f"there is no {key!r} in {walked or 'the result'}; {hint}")


@lru_cache(maxsize=1024)
def _fields(kind: Any) -> dict[str, Any] | None:
    """Field names and types of a result class; None for anything whose keys cannot be known."""
    if get_origin(kind) in (Union, types.UnionType):
        arms = [arm for arm in get_args(kind) if arm is not type(None)]
        kind = arms[0] if len(arms) == 1 else None
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        return None
    try:
        hints = get_type_hints(kind)
    except (NameError, TypeError):  # a type that is only imported for type checkers
        hints = {}
    return {field.name: hints.get(field.name, Any) for field in dataclasses.fields(kind)}
