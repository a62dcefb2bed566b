"""What a compatibility rule is: a function of a case, declared with the field it is about and the rule in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from hfbench.engines.files import LookedAt
from hfbench.engines.machine import Machine
from hfbench.engines.manifest import BUILDERS, BuiltOn, Manifest

Status = Literal["ok", "mismatch", "noted", "unknown"]
"""`mismatch` keeps the engine from loading, `noted` does not, `unknown` may."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """An engine on this machine. `card` is the number of the GPU it would run on."""

    manifest: Manifest
    here: Machine
    files: tuple[LookedAt, ...] = ()
    """The manifest's files as they lie in the engine's folder."""
    sealed: bool = True
    card: int = 0

    @property
    def built(self) -> BuiltOn:
        """The builder's machine."""
        return self.manifest.built_on

    @property
    def on_gpu(self) -> bool:
        """Whether the engine is for a GPU."""
        return self.built.gpu is not None


@dataclass(frozen=True, kw_only=True)
class Row:
    """What a rule says of one engine: both values, and where they do not fit what was found and what to do."""

    id: str = ""
    field: str = ""
    status: Status
    built: str
    here: str
    rule: str = ""
    found: str = ""
    remedy: str = ""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule. `says` is the true rule in a sentence; `judge` answers None where it does not apply."""

    id: str
    field: str
    says: str
    builders: tuple[str, ...]
    judge: Callable[[Case], Row | None]

    def row(self, case: Case) -> Row | None:
        """The row of a case, under the rule's name; None where the rule does not apply."""
        if case.manifest.builder not in self.builders:
            return None
        row = self.judge(case)
        return row and replace(row, id=self.id, field=self.field, rule=self.says)


RULES: dict[str, Rule] = {}
"""Every rule by its id."""

Judge = Callable[[Case], Row | None]


def rule(id: str, field: str, says: str, *, builders: tuple[str, ...] = BUILDERS) -> Callable[[Judge], Judge]:
    """Declare a function to be the rule of a field."""

    def declare(judge: Judge) -> Judge:
        if id in RULES:
            raise TypeError(f"the rule {id!r} is declared twice")
        RULES[id] = Rule(id=id, field=field, says=says, builders=builders, judge=judge)
        return judge

    return declare


def ok(built: object, here: object) -> Row:
    """Both fit."""
    return Row(status="ok", built=str(built), here=str(here))


def mismatch(built: object, here: object, found: str, remedy: str) -> Row:
    """It will not load."""
    return Row(status="mismatch", built=str(built), here=str(here), found=found, remedy=remedy)


def noted(built: object, here: object, found: str, remedy: str = "") -> Row:
    """It differs, and loads nonetheless."""
    return Row(status="noted", built=str(built), here=str(here), found=found, remedy=remedy)


def unknown(built: object, here: object, found: str, remedy: str = "") -> Row:
    """Nobody can tell from here whether it matters."""
    return Row(status="unknown", built=str(built), here=str(here), found=found, remedy=remedy)
