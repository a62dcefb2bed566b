"""What the fields of a dataclass may hold: declared once, checked with the field's name, and written as JSON Schema."""

from __future__ import annotations

import dataclasses
import math
import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING
from functools import lru_cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from hfbench.models.problem import quoted

DIALECT = "https://json-schema.org/draft/2020-12/schema"

SHA256 = r"^[0-9a-f]{64}$"
UTC = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|\+00:00)$"
COMPUTE_CAPABILITY = r"^\d{1,2}\.\d$"
FILE_NAME = r"^(?!/)(?!(.*/)?\.\.?(/|$))[^\u0000-\u001f\\]{1,1024}$"
"""Relative, without `.` and `..`: a manifest never names a file outside its folder."""

MEANING = {SHA256: "64 hexadecimal digits", UTC: "a UTC time", COMPUTE_CAPABILITY: "a compute capability such as 9.0"}
MEANING[FILE_NAME] = "the name of a file below the engine's folder"

NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
SCHEMA_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
LARGEST_INTEGER = 2**63 - 1


def at_least(least: int, *, default: Any = MISSING) -> Any:
    """A field that holds a whole number of at least this."""
    return dataclasses.field(default=default, metadata={"minimum": least})


def matching(pattern: str, *, default: Any = MISSING) -> Any:
    """A field whose text has a form; its default is allowed as well."""
    return dataclasses.field(default=default, metadata={"pattern": pattern})


def one_of(choices: Sequence[str], *, default: Any = MISSING) -> Any:
    """A field that holds one of some texts."""
    return dataclasses.field(default=default, metadata={"enum": list(choices)})


def fault_in(kind: type, data: object, name: str = "") -> str:
    """The first thing that keeps plain data from being a dataclass, as a sentence with the field; empty when nothing
    does. Unknown keys are allowed: a newer writer may add some."""
    if not isinstance(data, Mapping):
        return f"{name or 'the root'} is {_shown(data)}, not an object"
    hints = _hints(kind)
    for field in dataclasses.fields(kind):
        inner = f"{name}.{field.name}" if name else field.name
        if field.name in data:
            if fault := _fault(hints[field.name], data[field.name], inner, field):
                return fault
        elif field.default is MISSING and field.default_factory is MISSING:
            return f"{inner} is missing"
    return ""


def schema_of(kind: type, title: str) -> dict[str, Any]:
    """The JSON Schema of a dataclass, with those it holds under `$defs`."""
    defs: dict[str, Any] = {}
    body = _object_schema(kind, defs)
    return {"$schema": DIALECT, "title": title, **body, "$defs": dict(sorted(defs.items()))}


@lru_cache(maxsize=64)
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _fault(hint: Any, value: object, name: str, field: dataclasses.Field[Any] | None) -> str:
    origin, arms = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return "" if value is None else _fault(arms[0], value, name, field)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return fault_in(hint, value, name)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            return f"{name} is {_shown(value)}, not a list"
        faults = (_fault(arms[0], item, f"{name}[{place}]", None) for place, item in enumerate(value))
        return next(filter(None, faults), "")
    if origin is dict:
        if not isinstance(value, Mapping):
            return f"{name} is {_shown(value)}, not an object"
        faults = (_fault(arms[1], item, f"{name}[{quoted(key)}]", None) for key, item in value.items())
        return next(filter(None, faults), "")
    return _scalar_fault(hint, value, name, field)


def _scalar_fault(hint: type, value: object, name: str, field: dataclasses.Field[Any] | None) -> str:
    if hint is float and value in ("nan", "inf", "-inf"):
        return ""
    wanted = (int, float) if hint is float else hint
    if not isinstance(value, wanted) or (isinstance(value, bool) and hint is not bool):
        return f"{name} is {_shown(value)}, not {NAMES[hint]}"
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        return f"{name} is {_shown(value)}, which is too large"
    if field is None or value == field.default:
        return ""
    told = field.metadata
    if isinstance(value, (int, float)) and value < told.get("minimum", -math.inf):
        return f"{name} is {_shown(value)}, below {told['minimum']}"
    if "enum" in told and value not in told["enum"]:
        return f"{name} is {_shown(value)}, not one of {', '.join(filter(None, told['enum']))}"
    if isinstance(value, str) and "pattern" in told and not re.fullmatch(told["pattern"], value):
        return f"{name} is {_shown(value)}, not {MEANING[told['pattern']]}"
    return ""


def _object_schema(kind: type, defs: dict[str, Any]) -> dict[str, Any]:
    properties, required = {}, []
    for field in dataclasses.fields(kind):
        properties[field.name] = _property(_hints(kind)[field.name], field, defs)
        if field.default is MISSING and field.default_factory is MISSING:
            required.append(field.name)
    summary = (kind.__doc__ or "").strip()
    return {"description": summary, "type": "object", "properties": properties, "required": required}


def _property(hint: Any, field: dataclasses.Field[Any] | None, defs: dict[str, Any]) -> dict[str, Any]:
    origin, arms = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return {"anyOf": [_property(arms[0], None, defs), {"type": "null"}]}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if hint.__name__ not in defs:
            defs[hint.__name__] = _object_schema(hint, defs)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if origin is tuple:
        return {"type": "array", "items": _property(arms[0], None, defs)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _property(arms[1], None, defs)}
    if hint is float:
        return {"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]}
    schema: dict[str, Any] = {"type": SCHEMA_TYPES[hint]}
    told = dict(field.metadata) if field else {}
    if field and "pattern" in told and field.default == "":
        told = {"anyOf": [told, {"const": ""}]}
    return {**schema, **told}


def _shown(value: object) -> str:
    """A foreign value inside a sentence, of bounded length."""
    if isinstance(value, str):
        return quoted(value)
    if value is None or isinstance(value, bool):
        return str(value).lower().replace("none", "null")
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        return "a huge number"
    if isinstance(value, (int, float)):
        return str(value)
    return "a list" if isinstance(value, (list, tuple)) else "an object"
