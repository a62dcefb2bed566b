"""The nodes of a script's text, each with its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from hfbench.scripts.errors import Span

Plain: TypeAlias = str | int | float | bool | None
"""What a scalar can stand for."""
Value: TypeAlias = Plain | list[Plain]
"""What an argument or a variable can be."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value. `raw` is its text as written, quotes included; `broken` stands for what was complained about."""

    span: Span
    value: Plain
    text: str
    raw: str
    broken: bool = False

    def place_of(self, fragment: str) -> Span:
        """Where `fragment` stands in the text as written; the start of the scalar when it is written otherwise."""
        at = self.raw.find(fragment)
        if at < 0:
            return self.span
        before = self.raw[:at].split("\n")
        column = len(before[-1]) + (self.span.column if len(before) == 1 else 1)
        return Span(self.span.line + len(before) - 1, column)


@dataclass(frozen=True, slots=True)
class Listing:
    """A list."""

    span: Span
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a table with its value."""

    key: Scalar
    value: Node


@dataclass(frozen=True, slots=True)
class Table:
    """A mapping in the order written; its keys are unique texts."""

    span: Span
    entries: tuple[Entry, ...]

    def get(self, key: str) -> Entry | None:
        """The entry of that key."""
        return next((entry for entry in self.entries if entry.key.text == key), None)


Node: TypeAlias = Scalar | Listing | Table


def described(node: Node) -> str:
    """What a node is, for an error."""
    if isinstance(node, Listing):
        return "a list"
    if isinstance(node, Table):
        return "a mapping"
    if node.value is None:
        return "nothing"
    shown = node.text if len(node.text) <= 40 else node.text[:37] + "..."
    return repr(shown) if isinstance(node.value, str) else shown
