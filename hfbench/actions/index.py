"""Names and summaries of declared actions, read from their files without running them: `--help` needs no more."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from typing import NamedTuple

ACTIONS_PATH = "HFBENCH_ACTIONS"
"""Environment variable: further folders with action files, separated by `:`."""


class Entry(NamedTuple):
    """What a file declares: an action's dotted name, the first line of its docstring, and the module's name."""

    name: str
    summary: str
    module: str


def declared_actions(folder: str = os.path.dirname(__file__)) -> list[Entry]:
    """Every `@action("name", ...)` class in the Python files of a folder, by name."""
    found: list[Entry] = []
    for file in sorted(os.listdir(folder)):
        if file.endswith(".py"):
            with open(os.path.join(folder, file), "rb") as opened:
                text = opened.read()
            if b"@action(" in text:
                found += _entries(ast.parse(text), file[:-3])
    return sorted(found)


def _entries(tree: ast.Module, module: str) -> Iterator[Entry]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            text = ast.get_docstring(node, clean=False) or ""  # cleaning would import inspect, 6 ms of a --help
            summary = text.strip().partition("\n")[0].rstrip(".")
            yield from (Entry(name, summary, module) for name in map(_name, node.decorator_list) if name)


def _name(decorator: ast.expr) -> str:
    """The name an `@action(...)` gives; empty for any other decorator."""
    match decorator:
        case ast.Call(func=ast.Name(id="action"), args=[ast.Constant(value=str(name)), *_]):
            return name
    return ""
