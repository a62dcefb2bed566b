"""Dataclasses to JSON and back, with the standard library only: workers run in other people's environments."""

from __future__ import annotations

import dataclasses
import enum
import math
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
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [encode(item) for item in value]
    return str(value)


def decode(kind: type[T], data: Any) -> T:
    """An instance of `kind` from JSON data. Unknown keys are left out, so that newer files can be read;
    a missing key without a default is a ValueError naming it."""
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
        if data is None:
            return None
        return _decode(next(arm for arm in arms if arm is not type(None)), data)
    if origin in (tuple, list):
        items = [_decode(arms[0] if arms else Any, item) for item in data]
        return tuple(items) if origin is tuple else items
    if origin is not None and origin is not Literal and issubclass(origin, Mapping):
        return {key: _decode(arms[1], item) for key, item in data.items()}
    if kind is float and isinstance(data, (int, str)):
        return float(data)
    if kind is Path or (isinstance(kind, type) and issubclass(kind, enum.Enum)):
        return kind(data)
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
