"""One edit of the small model, and what one rule must say of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from small_model import Edit

from hfbench.models.problem import Severity


@dataclass(frozen=True)
class Case:
    """`severity` is the severest that the rule must find, None when it must find nothing."""

    id: str
    why: str
    edit: Edit
    severity: Severity | None
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.id}-{self.why.replace(' ', '-')}"


def error(id: str, why: str, edit: Edit, **options: Any) -> Case:
    """The rule must find an error."""
    return Case(id, why, edit, "error", options)


def warning(id: str, why: str, edit: Edit, **options: Any) -> Case:
    """The rule must find a warning and nothing worse."""
    return Case(id, why, edit, "warning", options)


def info(id: str, why: str, edit: Edit, **options: Any) -> Case:
    """The rule must find an info and nothing worse."""
    return Case(id, why, edit, "info", options)


def passes(id: str, why: str, edit: Edit, **options: Any) -> Case:
    """The rule must find nothing."""
    return Case(id, why, edit, None, options)
