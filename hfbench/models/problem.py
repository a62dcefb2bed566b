"""What is wrong with a model, told without stopping the reading of the rest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from hfbench.errors import HfbenchError, begun
from hfbench.text import clip_middle, printable

Severity = Literal["error", "warning", "info"]

LONGEST_NAME = 120
"""Cells of a foreign name inside a sentence: a tensor name may be a megabyte long."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing found. `code` names its kind for good; the sentence may be improved. Text is safe to paint."""

    severity: Severity
    where: str
    found: str
    remedy: str = ""
    code: str = ""

    def __post_init__(self) -> None:
        for part in ("where", "found", "remedy"):
            object.__setattr__(self, part, printable(getattr(self, part)).rstrip("."))

    def __str__(self) -> str:
        sentence = f"{self.where}: {self.found}" if self.where else self.found
        return f"{sentence}. {begun(self.remedy)}" if self.remedy else sentence


class ModelError(HfbenchError):
    """A file of a model cannot be read as what it should be; `code` names the kind of fault."""

    def __init__(self, code: str, found: str, *, where: object = "", remedy: str = "") -> None:
        self.code = code
        super().__init__(found, where=where, remedy=remedy)

    def problem(self, *, where: str = "", severity: Severity = "error", code: str = "") -> Problem:
        """The same, as something to list."""
        return Problem(
            severity=severity, where=where or self.where, found=self.found, remedy=self.remedy, code=code or self.code
        )


def quoted(name: object) -> str:
    """A name out of a file, in quotes, safe to paint and of bounded length."""
    return f"'{clip_middle(printable(str(name)[: 8 * LONGEST_NAME]), LONGEST_NAME, ellipsis='...')}'"


def counted(number: int, what: str) -> str:
    """`1 tensor`, `1,234 tensors`."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def listed(names: Iterable[str], most: int = 3) -> str:
    """The first names in quotes, and how many more there are."""
    every = list(names)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(map(quoted, every[:most])) + more


def worst(problems: Iterable[Problem]) -> Severity | None:
    """The severest among them, None when there are none."""
    found = {problem.severity for problem in problems}
    order: tuple[Severity, ...] = ("error", "warning", "info")
    return next((severity for severity in order if severity in found), None)
