"""JSON Schema of actions, made from their declarations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hfbench.actions.base import Spec
from hfbench.actions.params import Param

DIALECT = "https://json-schema.org/draft/2020-12/schema"
JSON_TYPES = {int: "integer", float: "number", str: "string", bool: "boolean", Path: "string"}


def catalogue_schema(specs: Mapping[str, Spec]) -> dict[str, Any]:
    """One schema that holds every action under `$defs`, by its dotted name."""
    return {"$schema": DIALECT, "title": "hfbench actions", "$defs": {n: _body(s) for n, s in specs.items()}}


def action_schema(spec: Spec) -> dict[str, Any]:
    """The schema of one action's parameters."""
    return {"$schema": DIALECT, **_body(spec)}


def _body(spec: Spec) -> dict[str, Any]:
    return {
        "title": spec.name,
        "description": spec.summary,
        "type": "object",
        "additionalProperties": False,
        "properties": {param.name: _property(param) for param in spec.params},
        "required": [param.name for param in spec.params if param.required],
    }


def _property(param: Param) -> dict[str, Any]:
    one: dict[str, Any] = {"type": JSON_TYPES[param.type]}
    if param.kind == "duration":
        one = {"type": ["number", "string"]}
    if param.choices:
        one["enum"] = list(param.choices)
    if param.opening:
        del one["enum"]
        one["anyOf"] = [{"enum": list(param.choices)}, {"pattern": f"^{re.escape(param.opening)}."}]
    if param.ge is not None:
        one["minimum"] = param.ge
    if param.le is not None:
        one["maximum"] = param.le
    schema = {"type": "array", "items": one} if param.many else one
    if param.optional:
        schema = {"anyOf": [schema, {"type": "null"}]}
    schema["description"] = param.help + (f" ({param.unit})" if param.unit else "")
    if not param.required:
        schema["default"] = param.plain(param.default)
    return schema
