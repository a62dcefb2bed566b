"""Types of the fields of transformers' configuration classes, and whether a value of a config.json is of them.

The classes are strict dataclasses: a field takes what its annotation says, an integer is no float, and true no integer.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

Packed = Mapping[str, Mapping[str, str]]
"""Annotation to field to the numbers of the model types that declare it so."""

Fits = Callable[[object], bool]

_PLAIN: Mapping[str, Fits] = {
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "float": lambda value: isinstance(value, float),
    "bool": lambda value: isinstance(value, bool),
    "str": lambda value: isinstance(value, str),
    "None": lambda value: value is None,
    "list": lambda value: isinstance(value, list),
    "tuple": lambda value: False,  # JSON has none
    "dict": lambda value: isinstance(value, dict),
}
_WORDS = {"None": "null", "dict": "an object", "list": "a list"}


def packed(declared: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """The table of `declared`: model type to field to annotation."""
    table: dict[str, dict[str, str]] = {}
    for number, fields in enumerate(declared.values()):
        for field, annotation in fields.items():
            if annotation:
                holders = table.setdefault(annotation, {})
                holders[field] = f"{holders.get(field, '')} {number}".lstrip()
    return table


def unpacked(table: Packed, types: Sequence[str]) -> dict[str, dict[str, str]]:
    """Field to model type to annotation."""
    fields: dict[str, dict[str, str]] = {}
    for annotation, holders in table.items():
        for field, numbers in holders.items():
            fields.setdefault(field, {}).update((types[int(number)], annotation) for number in numbers.split())
    return fields


def fits(value: object, annotation: str) -> bool:
    """Whether a class takes the value; what cannot be told from the annotation is taken."""
    return _reader(annotation)[0](value)


def wanted(annotation: str) -> list[str]:
    """The types an annotation allows, in words for a sentence."""
    return _reader(annotation)[1]


@lru_cache(maxsize=512)
def _reader(annotation: str) -> tuple[Fits, list[str]]:
    try:
        return _read(ast.parse(annotation, mode="eval").body)
    except SyntaxError:
        return _anything, ["anything"]


def _anything(value: object) -> bool:
    return True


def _read(node: ast.expr) -> tuple[Fits, list[str]]:
    match node:
        case ast.Constant(value=None):
            return _PLAIN["None"], [_WORDS["None"]]
        case ast.Constant(value=str() as text):
            return _reader(text)
        case ast.Name(id=name) if name in _PLAIN:
            return _PLAIN[name], [_WORDS.get(name, name)]
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _any_of([_read(left), _read(right)])
        case ast.Subscript(value=ast.Name(id="Union"), slice=ast.Tuple(elts=parts)):
            return _any_of([_read(part) for part in parts])
        case ast.Subscript(value=ast.Name(id="Optional"), slice=part):
            return _any_of([_read(part), _read(ast.Constant(value=None))])
        case ast.Subscript(value=ast.Name(id="Literal"), slice=part):
            return _literal(part.elts if isinstance(part, ast.Tuple) else [part])
        case ast.Subscript(value=ast.Name(id="list" | "Sequence"), slice=part):
            return _list_of(part)
        case ast.Subscript(value=ast.Name(id="tuple")):
            return _PLAIN["tuple"], []
        case ast.Subscript(value=ast.Name(id="dict")):
            return _PLAIN["dict"], [_WORDS["dict"]]
    return _PLAIN["dict"], [_WORDS["dict"]]  # a class, which is made from an object


def _any_of(parts: Sequence[tuple[Fits, list[str]]]) -> tuple[Fits, list[str]]:
    words = list(dict.fromkeys(word for _, told in parts for word in told))
    return lambda value: any(fit(value) for fit, _ in parts), words


def _literal(nodes: Sequence[ast.expr]) -> tuple[Fits, list[str]]:
    values = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return (
        lambda value: any(type(value) is type(each) and value == each for each in values),
        [f"{each!r}" for each in values],
    )


def _list_of(part: ast.expr) -> tuple[Fits, list[str]]:
    inner, words = _read(part.elts[0] if isinstance(part, ast.Tuple) else part)
    return (
        lambda value: isinstance(value, list) and all(inner(each) for each in value),
        [f"a list of {' or '.join(words)}"],
    )
