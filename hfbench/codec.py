"""Dataclasses to JSON and back, with the standard library only: workers run in other people's environments."""

from __future__ import annotations

import dataclasses
import enum
import math
import numbers
import types
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def encode(value: Any) -> Any:
    """JSON data for a value; a number that JSON cannot write (NaN, Inf) becomes its name as text."""
    if value is None or (isinstance(value, (str, bool, int)) and not isinstance(value, enum.Enum)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, numbers.Integral):  # numpy's scalars: numbers, though not Python's own
        return int(value)
    if isinstance(value, numbers.Real):
        return encode(float(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [encode(item) for item in value]
    return str(value)


def decode(kind: type[T], data: Any) -> T:
    """An instance of `kind` from JSON data. Unknown keys are left out, so that newer files can be read;
    a missing key without a default and a value of another type are a ValueError."""
    result: T = _decode(kind, data)
    return result


@lru_cache(maxsize=256)
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _decode(kind: Any, data: Any) -> Any:
    origin, arms = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _decode_dataclass(kind, data)
    if origin in (Union, types.UnionType):
        return _decode_union(arms, data)
    if origin in (tuple, list):
        return _decode_items(origin, arms, data)
    if origin is not None and origin is not Literal and issubclass(origin, Mapping):
        return {key: _decode(arms[1], item) for key, item in _expect(Mapping, data).items()}
    if kind is float:
        return _decode_float(data)
    if kind in (str, int, bool):
        return data if type(data) is kind else _expect(kind, None)
    if kind is Path or (isinstance(kind, type) and issubclass(kind, enum.Enum)):
        return kind(data)
    return data


def _decode_union(arms: tuple[Any, ...], data: Any) -> Any:
    """The first arm that fits."""
    if data is None and type(None) in arms:
        return None
    trouble: Exception = ValueError("no type of the union fits")
    for arm in arms:
        try:
            if arm is not type(None):
                return _decode(arm, data)
        except (ValueError, TypeError) as error:
            trouble = error
    raise trouble


def _decode_items(origin: Any, arms: tuple[Any, ...], data: Any) -> Any:
    items = _expect((list, tuple), data)
    kinds = arms if origin is tuple and arms and arms[-1] is not Ellipsis else (arms[0] if arms else Any,) * len(items)
    return origin(_decode(kind, item) for kind, item in zip(kinds, items, strict=True))


def _decode_float(data: Any) -> float:
    """A number, or the name `encode` writes for one that JSON cannot write."""
    if isinstance(data, (int, float)) and not isinstance(data, bool):
        try:
            return float(data)
        except OverflowError:
            raise ValueError("a float was expected, found a number that is too large") from None
    return float(data) if data in ("nan", "inf", "-inf") else float(_expect(float, None))


def _expect(kind: Any, data: Any) -> Any:
    if not isinstance(data, kind):
        name = getattr(kind, "__name__", "list")
        raise ValueError(f"a {name} was expected, found {type(data).__name__}")
    return data


def _decode_dataclass(kind: Any, data: Any) -> Any:
    if not isinstance(data, Mapping):
        raise ValueError(f"{kind.__name__}: an object was expected, found {type(data).__name__}")
    hints, given = _hints(kind), {}
    for field in dataclasses.fields(kind):
        if field.name in data:
            given[field.name] = _decode(hints[field.name], data[field.name])
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise ValueError(f"{kind.__name__}: {field.name!r} is missing")
    return kind(**given)
