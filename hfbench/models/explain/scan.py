"""Takes the defaults of transformers' configuration classes from their source, read as text and never imported.

`python -m hfbench.models.explain.scan FOLDER VERSION DATE` writes what `data/config_defaults.jsonl` holds.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hfbench.models.explain.expressions import Unworkable, evaluated
from hfbench.models.explain.steps import steps_of

BASE = "PreTrainedConfig"
BASE_FILE = "configuration_utils.py"
GENERATION_FILE = "generation/configuration_utils.py"

LEFT_OUT = frozenset({"transformers_version", "architectures", "id2label", "label2id"})
"""Fields of the base class that describe the file, or that a number of labels fills: nothing a model is built from."""

AUTO = "AutoConfig"
AUTO_PREFIX = "auto:"
"""Begins the class of a part that its own model_type decides; the type taken without one follows."""

Class = dict[str, Any]


def scan_defaults(root: Path) -> dict[str, Any]:
    """Every configuration class of the `transformers` package in a folder, and what generation assumes.

    Of a class: `bases`, `fields` with their values, `unspelled` fields whose value the source works out, `steps` of
    its `__post_init__`, `names` that stand for other fields, `parts` with their classes, `rope_type` where it assumes
    another than "default", and `own_rope` when it reads RoPE in a way of its own. SyntaxError and OSError when a file
    cannot be read.
    """
    paths = [root / BASE_FILE, *sorted((root / "models").glob("*/configuration_*.py"))]
    classes = {name: told for path in paths for name, told in classes_in(path)}
    return {"classes": classes, "generation": generation_defaults(root)}


def classes_in(path: Path) -> Iterator[tuple[str, Class]]:
    """The configuration classes of one file."""
    for node in ast.parse(path.read_bytes()).body:
        if isinstance(node, ast.ClassDef) and node.bases and (path.name != BASE_FILE or node.name == BASE):
            yield node.name, _class(node)


def generation_defaults(root: Path) -> dict[str, Any]:
    """What `generate` takes for each setting that no file tells."""
    for node in ast.walk(ast.parse((root / GENERATION_FILE).read_bytes())):
        if isinstance(node, ast.FunctionDef) and node.name == "_get_default_generation_params":
            told = next(each.value for each in node.body if isinstance(each, ast.Return) and each.value)
            found: dict[str, Any] = evaluated(told, {}, {})
            return found
    return {}


def _class(node: ast.ClassDef) -> Class:
    fields: dict[str, Any] = {}
    told: Class = {"bases": [base.id for base in node.bases if isinstance(base, ast.Name)], "fields": fields}
    for part in node.body:
        match part:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value, annotation=kind):
                if not ast.unparse(kind).startswith("ClassVar") and (node.name != BASE or name not in LEFT_OUT):
                    try:
                        fields[name] = _default(value)
                    except Unworkable:
                        fields[name] = None
                        told.setdefault("unspelled", []).append(name)
            case ast.Assign(targets=[ast.Name(id="attribute_map")], value=ast.Dict() as value):
                told["names"] = evaluated(value, {}, {})
            case ast.Assign(targets=[ast.Name(id="sub_configs_defaults")], value=ast.Dict() as value):
                told["parts"] = dict(_parts(value))
            case ast.Assign(targets=[ast.Name(id="default_rope_type")], value=ast.Constant(value=value)):
                told["rope_type"] = value
            case ast.FunctionDef(name="__post_init__") if node.name != BASE:
                told["steps"] = steps_of(part)
            case ast.FunctionDef(name="convert_rope_params_to_dict"):
                told["own_rope"] = True
    return told


def _default(value: ast.expr) -> Any:
    match value:
        case ast.Call(keywords=[ast.keyword(arg="default", value=inner)]):
            return _default(inner)
        case ast.Call(keywords=[ast.keyword(arg="default_factory", value=ast.Lambda(body=inner))]):
            return _default(inner)
    return evaluated(value, {}, {})


def _parts(value: ast.Dict) -> Iterator[tuple[str, str]]:
    """The class of each nested configuration."""
    for key, item in zip(value.keys, value.values, strict=True):
        match key, item:
            case ast.Constant(value=str() as name), ast.Name(id=kind):
                yield name, AUTO_PREFIX if kind == AUTO else kind
            case ast.Constant(value=str() as name), ast.Call(keywords=keywords):
                given = {each.arg: each.value for each in keywords}
                told, model_type = given.get("config_class"), given.get("model_type")
                if isinstance(told, ast.Name) and told.id != AUTO:
                    yield name, told.id
                else:
                    yield name, AUTO_PREFIX + (str(model_type.value) if isinstance(model_type, ast.Constant) else "")


def main(words: list[str]) -> None:
    """Write the table to stdout: what it is and what generation assumes, then a class a line."""
    folder, version, date = words
    told = scan_defaults(Path(folder))
    head = {"version": version, "read": date, "generation": told["generation"]}
    lines = [head, *([name, each] for name, each in sorted(told["classes"].items()))]
    sys.stdout.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)


if __name__ == "__main__":
    main(sys.argv[1:])
