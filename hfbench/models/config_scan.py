"""Takes from transformers' configuration classes what they demand of a config.json, by reading their source."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfbench.models.field_types import packed
from hfbench.models.source_tables import NotATable, tables_in, value_of

_WHOLE_HEADS = "self.hidden_size % self.num_attention_heads"


@dataclass(frozen=True, slots=True)
class ConfigClass:
    """What one class declares. `fields` holds the text of each annotation."""

    name: str
    bases: tuple[str, ...]
    fields: Mapping[str, str]
    context: Any
    """The default of max_position_embeddings."""
    theta: Any
    own_rope: bool
    whole_heads: bool
    strict: bool
    """Types are validated: not where annotations are left unevaluated."""


def config_facts(root: Path, config_classes: Mapping[str, str]) -> dict[str, Any]:
    """Of the package in a folder: RoPE defaults by model type, types of fields, what else is validated."""
    classes = {each.name: each for path in _configurations(root) for each in _classes(path)}
    lines = {model_type: list(_lineage(name, classes)) for model_type, name in config_classes.items()}
    layers = tables_in(root / "configuration_utils.py", ["ALLOWED_ATTN_LAYER_TYPES", "_LEGACY_LAYER_TYPE_REMAP"])
    return {
        "rope": {model_type: rope for model_type, line in lines.items() if (rope := _rope(line))},
        "types": packed({name: _declared(line) for name, line in lines.items()}),
        "whole_heads": sorted(model_type for model_type, line in lines.items() if line and line[0].whole_heads),
        "layer_types": [*layers.get("ALLOWED_ATTN_LAYER_TYPES", []), *layers.get("_LEGACY_LAYER_TYPE_REMAP", {})],
    }


def _rope(line: list[ConfigClass]) -> dict[str, Any] | None:
    if not any("rope_parameters" in each.fields for each in line):
        return None
    theta = next((each.theta for each in line if each.theta is not None), 10000.0)
    context = next((each.context for each in line if each.context is not None), None)
    return {"theta": theta, "context": context, "own": any(each.own_rope for each in line)}


def _declared(line: list[ConfigClass]) -> dict[str, str]:
    """Annotations of a class and what it inherits; the nearest one counts, and is empty where it is not validated."""
    return {field: text * each.strict for each in reversed(line) for field, text in each.fields.items()}


def _configurations(root: Path) -> list[Path]:
    return sorted((root / "models").glob("*/configuration_*.py"))


def _classes(path: Path) -> Iterator[ConfigClass]:
    body = ast.parse(path.read_bytes()).body
    strict = not any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in body)
    for node in body:
        if isinstance(node, ast.ClassDef):
            functions = {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}
            check = functions.get("validate_architecture")
            yield ConfigClass(
                name=node.name,
                bases=tuple(base.id for base in node.bases if isinstance(base, ast.Name)),
                fields=_fields(node),
                context=_default(node, "max_position_embeddings"),
                theta=_default(node, "default_theta"),
                own_rope="convert_rope_params_to_dict" in functions,
                whole_heads=check is not None and _WHOLE_HEADS in ast.unparse(check),
                strict=strict,
            )


def _fields(node: ast.ClassDef) -> dict[str, str]:
    return {
        part.target.id: ast.unparse(part.annotation)
        for part in node.body
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
    }


def _default(node: ast.ClassDef, name: str) -> Any:
    """The constant that a class gives a name, None when it gives none."""
    for part in node.body:
        match part:
            case ast.Assign(targets=[ast.Name(id=found)], value=value) if found == name:
                return _constant(value)
            case ast.AnnAssign(target=ast.Name(id=found), value=ast.expr() as value) if found == name:
                return _constant(value)
    return None


def _constant(value: ast.expr) -> Any:
    try:
        return value_of(value, {})
    except (NotATable, KeyError):
        return None


def _lineage(name: str, classes: Mapping[str, ConfigClass]) -> Iterator[ConfigClass]:
    seen: set[str] = set()
    pending = [name]
    while pending:
        current = pending.pop(0)
        if current in classes and current not in seen:
            seen.add(current)
            yield classes[current]
            pending += classes[current].bases
