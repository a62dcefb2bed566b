"""The verdict on an engine: every rule that applies, and what they come to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

# Each module declares its rules when it is imported.
from hfbench.engines.compatibility import contents, cuda, device, host, python, tensorrt  # noqa: F401
from hfbench.engines.compatibility.rule import RULES, Case, Row

Verdict = Literal["loads here", "will not load", "cannot tell"]


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What the rules come to."""

    verdict: Verdict
    rows: tuple[Row, ...]


def judge(case: Case) -> Judgement:
    """Ask every rule that applies to an engine."""
    rows = tuple(row for rule in RULES.values() if (row := rule.row(case)) is not None)
    return Judgement(verdict=verdict_of(rows), rows=rows)


def verdict_of(rows: Iterable[Row]) -> Verdict:
    """One mismatch is enough; without any, one unknown leaves it open."""
    found = {row.status for row in rows}
    return "will not load" if "mismatch" in found else "cannot tell" if "unknown" in found else "loads here"
