"""Turns the `__post_init__` of a configuration class into a list of assignments that can be worked out elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from copy import deepcopy

Step = list[str]
"""A name, the expression it is set to, and the source a person reads where there is any."""

SUPER = "super"
"""The step in which the steps of the class below come; its expression is empty."""

LOCAL = "local_"
"""What the function's own variables begin with; other names are fields."""

UNKNOWN = f"{LOCAL}unknown"
"""Stands for a value that reaches beyond the object; it is never defined, so that what needs it cannot be told."""

BY_LAYER = "per_layer_config"
"""Sizes that differ between layers: what the class has for all of them is not asked for."""


def steps_of(function: ast.FunctionDef) -> list[Step]:
    """The assignments of a function, in order; those under a condition keep the value from before where it fails."""
    maker = _Maker()
    maker.block(function.body, "")
    if BY_LAYER in ast.unparse(function):
        maker.forget(_spelled_names(function), "")
    return maker.steps


class _Maker:
    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.conditions = 0

    def block(self, body: Iterable[ast.stmt], condition: str) -> None:
        for statement in body:
            self.statement(statement, condition)

    def statement(self, statement: ast.stmt, condition: str) -> None:
        match statement:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self.assign(target, value, condition)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, value, condition)
            case ast.If(test=test, body=body, orelse=other):
                self.conditional(test, body, other, condition)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name))):
                if name == "__post_init__":
                    self.steps.append([SUPER, "", ""])
            case ast.Return(value=ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super"))))):
                self.steps.append([SUPER, "", ""])
            case ast.Expr() | ast.Raise() | ast.Pass() | ast.Return():
                self.forget(_changed_by_calls(statement), condition)
            case _:
                self.forget(_assigned_in(statement), condition)

    def assign(self, target: ast.expr, value: ast.expr, condition: str) -> None:
        name = _name(target)
        if name is None:
            self.forget(_fields_in(target), condition)
            return
        text = _under(condition, self.spelled(value), name)
        self.steps.append([name, text, "" if name.startswith(LOCAL) else _readable(value)])

    def conditional(self, test: ast.expr, body: list[ast.stmt], other: list[ast.stmt], condition: str) -> None:
        if not any(_assigned_in(each) for each in [*body, *other]):
            return  # a warning or a refusal
        self.conditions += 1
        name = f"{LOCAL}if_{self.conditions}"
        text = self.spelled(test)
        self.steps.append([name, f"{condition} and ({text})" if condition else text, ""])
        self.block(body, name)
        if other:
            self.block(other, f"(not {name})" if not condition else f"({condition} and not {name})")

    def forget(self, names: Iterable[str], condition: str) -> None:
        self.steps += [[name, _under(condition, UNKNOWN, name), ""] for name in dict.fromkeys(names)]

    def spelled(self, value: ast.expr) -> str:
        """The expression over names; UNKNOWN where it holds something that cannot be worked out from them."""
        rewriter = _Rewriter()
        try:
            text = ast.unparse(rewriter.visit(deepcopy(value)))
        except _Foreign:
            return UNKNOWN
        for name, inner in rewriter.named:
            self.steps.append([name, inner, ""])
        return text


class _Foreign(Exception):
    """The expression reaches beyond the object and its arguments."""


class _Rewriter(ast.NodeTransformer):
    """Fields become names, variables get their prefix, and what was handed in is asked for by `given` and `has`."""

    def __init__(self) -> None:
        self.named: list[tuple[str, str]] = []
        self.bound: set[str] = set()

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        own = {each.target.id for each in node.generators if isinstance(each.target, ast.Name)}
        self.bound |= own
        made = self.generic_visit(node)
        self.bound -= own
        assert isinstance(made, ast.expr)
        return made

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in ("self", "kwargs"):
            raise _Foreign
        return node if node.id in self.bound or node.id in _FUNCTIONS else ast.Name(LOCAL + node.id, ast.Load())

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return ast.Name(name, ast.Load())
            case ast.Attribute(value=ast.Name(id="math"), attr="ceil"):
                return ast.Name("ceil", ast.Load())
        raise _Foreign

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.expr:
        name = LOCAL + node.target.id
        self.named.append((name, ast.unparse(self.visit(node.value))))
        return ast.Name(name, ast.Load())

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        match node:
            case ast.Compare(left=ast.Constant() as key, ops=[op], comparators=[ast.Name(id="kwargs")]):
                asked = ast.Call(ast.Name("has", ast.Load()), [key], [])
                return ast.UnaryOp(ast.Not(), asked) if isinstance(op, ast.NotIn) else asked
        made = self.generic_visit(node)
        assert isinstance(made, ast.expr)
        return made

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="kwargs"), attr="get" | "pop"), args=arguments):
                return ast.Call(ast.Name("given", ast.Load()), [self.visit(each) for each in arguments], [])
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
                return ast.Call(ast.Name(name, ast.Load()), [self.visit(each) for each in arguments], [])
            case ast.Call(func=ast.Attribute(value=ast.Name(id="math"), attr="ceil"), args=arguments):
                return ast.Call(ast.Name("ceil", ast.Load()), [self.visit(each) for each in arguments], [])
            case ast.Call(func=ast.Name(id="tuple"), args=[argument]):
                return ast.Call(ast.Name("list", ast.Load()), [self.visit(argument)], [])
        raise _Foreign


_FUNCTIONS = frozenset({"bool", "int", "float", "len", "list", "max", "min", "range"})


def _under(condition: str, text: str, name: str) -> str:
    return f"({text}) if {condition} else {name}" if condition else text


def _spelled_names(function: ast.FunctionDef) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            yield node.value


def _changed_by_calls(statement: ast.stmt) -> Iterator[str]:
    """Fields on which a method is called, as `self.depths.append(...)`."""
    for node in ast.walk(statement):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Attribute(value=ast.Name(id="self"), attr=name))):
                yield name


def _assigned_in(statement: ast.stmt) -> list[str]:
    found = list(_changed_by_calls(statement))
    for node in ast.walk(statement):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                found.append(name)
            case ast.Subscript(value=ast.Attribute(value=ast.Name(id="self"), attr=name), ctx=ast.Store()):
                found.append(name)
            case ast.Name(id=name, ctx=ast.Store()):
                found.append(LOCAL + name)
            case ast.Constant(value=str() as name) if _sets_by_name(statement) and name.isidentifier():
                found.append(name)
    return found


def _sets_by_name(statement: ast.stmt) -> bool:
    """True for a statement with `setattr(self, name, ...)`: any name it spells may be the one that is set."""
    return any(isinstance(node, ast.Name) and node.id == "setattr" for node in ast.walk(statement))


def _fields_in(target: ast.expr) -> Iterator[str]:
    for node in ast.walk(target):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                yield name
            case ast.Name(id=name) if name not in ("self", "kwargs"):
                yield LOCAL + name


def _name(target: ast.expr) -> str | None:
    match target:
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return name
        case ast.Name(id=name):
            return LOCAL + name
    return None


def _readable(value: ast.expr) -> str:
    return ast.unparse(value).replace("self.", "")
