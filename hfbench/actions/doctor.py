"""doctor: what is wrong with this machine, its Pythons and its settings."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.doctor.result import DoctorReport

if TYPE_CHECKING:
    from hfbench.jobs.run import Run


@dataclass(frozen=True, kw_only=True)
class DoctorResult(DoctorReport):
    """A report a check, by topic; `failed` when one of them is an error."""


@action("doctor", result=DoctorResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class Doctor:
    """Look for known traps: driver, cards, Pythons, memory, limits, disks, variables, terminal, jobs.

    Every check says what it read and where, and what to do. The other Pythons of the configuration are asked for their
    versions, which is remembered until they change. Nothing is changed and nothing is sent.
    """

    topics: tuple[str, ...] = param("Topics to look at; all when none is named", default=(), positional=True)
    only: tuple[str, ...] = param("Ids of the checks to make", default=())

    def perform(self, run: Run) -> DoctorResult:
        """Make the checks; UsageError for a topic or an id that is not known."""
        from hfbench.doctor.run import chosen, examine
        from hfbench.doctor.system import System

        checks = chosen(self.topics, self.only)
        report = examine(System(), checks, progress=lambda done, of: run.progress("checks", done, of))
        return DoctorResult(**{each.name: getattr(report, each.name) for each in fields(report)})
