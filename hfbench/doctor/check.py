"""The declaration of a check: an id, a title, a function of the system, and how long it may take."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from hfbench.doctor.result import Evidence, Verdict

if TYPE_CHECKING:
    from hfbench.doctor.system import System

TOPICS = (
    "driver",
    "cards",
    "torch",
    "memory",
    "processor",
    "limits",
    "disks",
    "hub",
    "compilers",
    "terminal",
    "jobs",
    "environments",
)
"""In the order in which they are told."""
USUAL_LIMIT = 4.0
"""Seconds a check may take before it is left alone and told as unknown."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a check says of the system it was shown."""

    verdict: Verdict
    found: str
    evidence: tuple[Evidence, ...] = ()
    remedy: str = ""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One known trap. The part of its id before the dot is its topic."""

    id: str
    title: str
    why: str
    """The first line of the function's docstring: what goes wrong for whoever falls into it."""
    limit: float
    look: Callable[[System], Outcome]

    @property
    def topic(self) -> str:
        """The heading it stands under."""
        return self.id.partition(".")[0]


def check(id: str, title: str, *, limit: float = USUAL_LIMIT) -> Callable[[Callable[[System], Outcome]], Check]:
    """Declare a function of the system to be a check; `limit` is the seconds it may take."""

    def declare(look: Callable[[System], Outcome]) -> Check:
        why = (look.__doc__ or "").strip().splitlines()
        return Check(id=id, title=title, why=why[0] if why else "", limit=limit, look=look)

    return declare


def all_checks() -> tuple[Check, ...]:
    """Every check of `hfbench.doctor.checks`, by topic, then in the order of its file."""
    import hfbench.doctor.checks as package

    modules = [importlib.import_module(f"{package.__name__}.{each.name}") for each in iter_modules(package.__path__)]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, Check)]
    return tuple(sorted(found, key=lambda each: TOPICS.index(each.topic)))


def saw(read: object, where: object) -> Evidence:
    """A piece of evidence."""
    return Evidence(read=str(read), where=str(where))


def ok(found: str, *evidence: Evidence) -> Outcome:
    """Nothing is wrong."""
    return Outcome(verdict="ok", found=found, evidence=evidence)


def warning(found: str, *evidence: Evidence, remedy: str) -> Outcome:
    """Something works, but worse, or will not for long."""
    return Outcome(verdict="warning", found=found, evidence=evidence, remedy=remedy)


def error(found: str, *evidence: Evidence, remedy: str) -> Outcome:
    """Something cannot work."""
    return Outcome(verdict="error", found=found, evidence=evidence, remedy=remedy)


def unknown(found: str, *evidence: Evidence, remedy: str = "") -> Outcome:
    """It cannot be told."""
    return Outcome(verdict="unknown", found=found, evidence=evidence, remedy=remedy)


def some(names: Iterable[object], most: int = 4) -> str:
    """`a, b and 3 more`: names inside a clause."""
    listed = [str(name) for name in names]
    rest = len(listed) - most
    return ", ".join(listed) if rest <= 0 else f"{', '.join(listed[:most])} and {rest} more"
