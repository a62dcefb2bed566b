"""rule: what a check rule looks for, why, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.errors import UsageError, begun
from hfbench.models.problem import Severity
from hfbench.text import did_you_mean

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

WIDTH = 80


@dataclass(frozen=True, kw_only=True)
class RuleResult:
    """One rule in words. `judges` says what it needs: a model's folder, a file of weights, or a reference."""

    id: str
    name: str
    severity: Severity
    summary: str
    why: str
    remedy: str
    judges: str
    since: str

    def lines(self) -> list[str]:
        """The rule's page, at most 80 columns wide."""
        told = [f"{self.id} {self.name}", *wrap(begun(self.summary), WIDTH), ""]
        told += wrap(f"Why: {self.why}", WIDTH) + wrap(f"Remedy: {self.remedy}", WIDTH)
        return [*told, "", f"{self.severity}; judges {self.judges}; since hfbench {self.since}"]


@action("rule", result=RuleResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class Rule:
    """Explain a check rule by its id or name: what it looks for, why, and what to do about a finding."""

    rule: str = param("Id or name of a rule, such as HB142 or missing-shard", positional=True)

    def perform(self, run: Run) -> RuleResult:
        """Look the rule up; UsageError offers the nearest when there is none of that id or name."""
        from hfbench.checks.base import rules
        from hfbench.checks.pages import JUDGES

        known = rules()
        names = {each.name: each for each in known.values()}
        given = self.rule.strip()
        found = known.get(given.upper()) or names.get(given.lower())
        if found is None:
            near = did_you_mean(given.upper() if given[:2].upper() == "HB" else given.lower(), [*known, *names])
            raise UsageError(f"there is no rule {given[:80]!r}", remedy=near or "hfbench check --json names the ids")
        return RuleResult(
            id=found.id,
            name=found.name,
            severity=found.severity,
            summary=found.summary,
            why=found.why,
            remedy=found.remedy,
            judges=JUDGES[found.scope],
            since=found.since,
        )
