"""Reads tables of names out of Python source without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


class NotATable(ValueError):
    """An expression is more than constants, names of other tables and the ways to put them together."""


def tables_in(path: Path, wanted: Iterable[str], given: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The values of the named module-level assignments of a file, `update` calls included.

    `given` holds tables that the file imports. What cannot be read as a table is left out; OSError and SyntaxError
    when the file cannot be read at all.
    """
    known: dict[str, Any] = dict(given or {})
    for statement in ast.parse(path.read_bytes()).body:
        _take_in(statement, known)
    return {name: known[name] for name in wanted if name in known}


def _take_in(statement: ast.stmt, known: dict[str, Any]) -> None:
    try:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                known[name] = value_of(value, known)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                known[name] = value_of(value, known)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="update"), args=[value])):
                known[name] = {**known[name], **value_of(value, known)}
    except (ValueError, KeyError, TypeError):  # something else than a table
        return


def value_of(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """The value of an expression made of constants and known tables; NotATable for any other.

    Of `a if b else c` the first is taken: tables use it for what an optional package adds.
    """
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return known[name]
        case ast.IfExp(body=body):
            return value_of(body, known)
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return [value_of(item, known) for item in items]
        case ast.Set(elts=items):
            return sorted(value_of(item, known) for item in items)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -value_of(operand, known)
        case ast.Dict(keys=keys, values=values):
            return _dict(zip(keys, values, strict=True), known)
        case ast.Call(args=arguments, keywords=keywords):
            return _call(arguments, keywords, known)
    raise NotATable(type(node).__name__)


def _dict(pairs: Iterable[tuple[ast.expr | None, ast.expr]], known: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key is not None:
            made[value_of(key, known)] = value_of(value, known)
            continue
        try:
            made.update(value_of(value, known))
        except NotATable:
            continue  # a comprehension over another table: the same names again
    return made


def _call(arguments: list[ast.expr], keywords: list[ast.keyword], known: Mapping[str, Any]) -> dict[str, Any]:
    """`OrderedDict([...], **table, name=value)` and its like."""
    made: dict[str, Any] = {}
    for argument in arguments:
        value = value_of(argument, known)
        made.update(value if isinstance(value, dict) else dict(value))
    for keyword in keywords:
        value = value_of(keyword.value, known)
        made.update(value if keyword.arg is None else {keyword.arg: value})
    return made
