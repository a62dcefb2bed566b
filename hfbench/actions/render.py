"""Results as lines of text: what a result class says of itself, else its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any

from hfbench.actions.base import Spec
from hfbench.codec import decode
from hfbench.line_width import lines_of
from hfbench.text import printable


def result_lines(spec: Spec, data: Mapping[str, Any], *, width: int | None = None) -> list[str]:
    """A result's lines, safe to print; where its class has `lines()` as wide as the terminal, or `width` cells."""
    if hasattr(spec.result, "lines"):
        try:
            result: Any = decode(spec.result, data)
            with lines_of(width) if width is not None else nullcontext():
                return [printable(line) for line in result.lines()]
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError):
            pass  # written by another version: its fields are still worth showing
    return field_lines(data)


def field_lines(data: Mapping[str, Any]) -> list[str]:
    """The fields of a result whose class is not known, safe to print."""
    return list(_fields(data, ""))


def _fields(data: Mapping[str, Any], indent: str) -> Iterator[str]:
    width = max((len(str(key)) for key in data), default=0)
    for key, value in data.items():
        name = printable(str(key))
        if isinstance(value, Mapping) and value:
            yield f"{indent}{name}"
            yield from _fields(value, indent + "  ")
        elif isinstance(value, list) and len(value) > 8:
            yield f"{indent}{name:<{width}}  {len(value)} values"
        else:
            yield f"{indent}{name:<{width}}  {printable(str(value))}"
