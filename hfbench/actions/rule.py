"""rule: what a check rule looks for, why, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.errors import UsageError, begun
from hfbench.line_width import cut_end, paragraph
from hfbench.models.problem import Severity
from hfbench.text import did_you_mean

if TYPE_CHECKING:
    from hfbench.checks.base import Rule as CheckRule
    from hfbench.jobs.run import Run


@dataclass(frozen=True, kw_only=True)
class RuleLine:
    """One rule in a list."""

    id: str
    name: str
    severity: Severity
    summary: str


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
    rules: tuple[RuleLine, ...] = ()
    """All rules, where none was asked for; the other fields are then empty."""

    def lines(self) -> list[str]:
        """The rule's page, as wide as the terminal; of all rules a line each."""
        if self.rules:
            return [cut_end(f"{each.id} {each.severity:<8} {each.name}: {each.summary}") for each in self.rules]
        told = [f"{self.id} {self.name}", *paragraph(begun(self.summary)), ""]
        told += paragraph(f"Why: {self.why}") + paragraph(f"Remedy: {self.remedy}")
        return [*told, "", f"{self.severity}; judges {self.judges}"]


@action("rule", result=RuleResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class Rule:
    """Explain a check rule by its id or name: what it looks for, why, and what to do about a finding."""

    rule: str = param(
        "Id or name of a rule, such as HB142 or missing-shard; without one all are listed", default="", positional=True
    )

    def perform(self, run: Run) -> RuleResult:
        """Look the rule up, or list all; UsageError offers the nearest name when there is none like it."""
        from hfbench.checks.base import rules
        from hfbench.checks.pages import JUDGES

        known = rules()
        names = {each.name: each for each in known.values()}
        given = self.rule.strip()
        if not given:
            return _all(known.values())
        found = known.get(given.upper()) or names.get(given.lower())
        if found is None:
            numbered = given[:2].upper() == "HB"  # no number is nearer to another than to the rest
            near = "" if numbered else did_you_mean(given.lower(), names)
            remedy = near or "hfbench rule lists all of them, and docs/checks has a page of each"
            raise UsageError(f"there is no rule {given[:80]!r}", remedy=remedy)
        return RuleResult(
            id=found.id,
            name=found.name,
            severity=found.severity,
            summary=found.summary,
            why=found.why,
            remedy=found.remedy,
            judges=JUDGES[found.scope],
        )


def _all(known: Iterable[CheckRule]) -> RuleResult:
    lines = tuple(RuleLine(id=each.id, name=each.name, severity=each.severity, summary=each.summary) for each in known)
    return RuleResult(id="", name="", severity="info", summary="", why="", remedy="", judges="", rules=lines)
