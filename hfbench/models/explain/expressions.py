"""Works out the plain expressions that configuration classes are made of, without running any code of theirs."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

MOST_ITEMS = 4096
"""Items of a list that is worked out; no model has as many layers."""

LARGEST = 2**62
"""Numbers beyond it are no sizes of a model."""

LONGEST = 2000
"""Characters of an expression."""

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, many: item in many,
    ast.NotIn: lambda item, many: item not in many,
}
_CALLED: dict[str, Callable[..., Any]] = {
    "bool": bool,
    "int": int,
    "float": float,
    "len": len,
    "list": list,
    "max": max,
    "min": min,
    "ceil": math.ceil,
    "range": lambda *bounds: list(_bounded(range(*bounds))),
}


class Unworkable(ValueError):
    """An expression is of a kind, or needs a value, that is not known here."""


def worked_out(text: str, known: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    """The value of an expression over `known` names; `given(key, default)` and `has(key)` look into `given`.

    Unworkable when it cannot be told. Lists have at most MOST_ITEMS items, numbers are at most LARGEST.
    """
    return evaluated(_parsed(text), known, given)


def evaluated(node: ast.expr, known: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    """As `worked_out`, of a parsed expression."""
    try:
        return _value(node, known, given)
    except (TypeError, ArithmeticError, LookupError, AttributeError, RecursionError, MemoryError) as error:
        raise Unworkable(str(error)) from None


@lru_cache(maxsize=1024)
def _parsed(text: str) -> ast.expr:
    if len(text) > LONGEST:
        raise Unworkable("too long")
    return ast.parse(text, mode="eval").body


def _value(node: ast.expr, known: Mapping[str, Any], given: Mapping[str, Any]) -> Any:
    def value(part: ast.expr) -> Any:
        return _value(part, known, given)

    match node:
        case ast.Constant(value=plain):
            return plain
        case ast.Name(id=name):
            return known[name]
        case ast.IfExp(test=test, body=body, orelse=other):
            return value(body) if value(test) else value(other)
        case ast.BoolOp(op=op, values=parts):
            return _first_that_decides(op, parts, value)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not value(operand)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -value(operand)
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(op, value(left), value(right))
        case ast.Compare(left=left, ops=ops, comparators=others):
            return _compared(value(left), ops, map(value, others))
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [value(item) for item in _bounded(items)]
        case ast.Dict(keys=keys, values=values):
            return {value(_spelled(key)): value(item) for key, item in zip(keys, values, strict=True)}
        case ast.ListComp(elt=item, generators=[ast.comprehension(target=ast.Name(id=name), iter=over, ifs=[])]):
            return [_value(item, _Beside(known, name, each), given) for each in _bounded(value(over))]
        case ast.Subscript(value=holder, slice=ast.expr() as at):
            return value(holder)[value(at)]
        case ast.Call(func=ast.Name(id="given"), args=[ast.Constant(value=str() as key), *rest]):
            return given[key] if key in given else value(rest[0]) if rest else None
        case ast.Call(func=ast.Name(id="has"), args=[ast.Constant(value=str() as key)]):
            return key in given
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _CALLED:
            return _sane(_CALLED[name](*map(value, arguments)))
    raise Unworkable(type(node).__name__)


class _Beside(Mapping[str, Any]):
    """Names, and the one that a list comprehension binds."""

    def __init__(self, known: Mapping[str, Any], name: str, value: Any) -> None:
        self.known, self.name, self.value = known, name, value

    def __getitem__(self, name: str) -> Any:
        return self.value if name == self.name else self.known[name]

    def __iter__(self) -> Iterator[str]:
        yield from {*self.known, self.name}

    def __len__(self) -> int:
        return len({*self.known, self.name})


def _first_that_decides(op: ast.boolop, parts: list[ast.expr], value: Callable[[ast.expr], Any]) -> Any:
    found: Any = None
    for part in parts:
        found = value(part)
        if bool(found) is isinstance(op, ast.Or):
            return found
    return found


def _binary(op: ast.operator, left: Any, right: Any) -> Any:
    if isinstance(op, ast.Pow):
        if not (_small(left, 2**16) and _small(right, 8)):
            raise Unworkable("a power that may be huge")
        return left**right
    if isinstance(left, (list, str)) and isinstance(right, int) and len(left) * right > MOST_ITEMS:
        raise Unworkable("a list that may be huge")
    if isinstance(right, (list, str)) and isinstance(left, int):
        raise Unworkable("a list that may be huge")
    return _sane(_BINARY[type(op)](left, right))


def _compared(left: Any, ops: list[ast.cmpop], others: Any) -> bool:
    for op, right in zip(ops, others, strict=True):
        if not _COMPARED[type(op)](left, right):
            return False
        left = right
    return True


def _bounded(items: Any) -> Any:
    if len(items) > MOST_ITEMS:
        raise Unworkable("too many items")
    return items


def _sane(value: Any) -> Any:
    if isinstance(value, (int, float)) and not abs(value) <= LARGEST:
        raise Unworkable("a number that no size is")
    if isinstance(value, (list, str)):
        _bounded(value)
    return value


def _small(value: Any, most: int) -> bool:
    return isinstance(value, (int, float)) and abs(value) <= most


def _spelled(key: ast.expr | None) -> ast.expr:
    if key is None:
        raise Unworkable("an object put together from others")
    return key
