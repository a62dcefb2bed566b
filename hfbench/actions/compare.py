"""compare: whether one measurement is faster than another, and how certain that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from hfbench.actions.base import action
from hfbench.actions.params import param

if TYPE_CHECKING:
    from hfbench.compare.result import CompareResult
    from hfbench.jobs.run import Run


@action("compare", result="hfbench.compare.result:CompareResult", inline=True)
@dataclass(frozen=True, kw_only=True)
class Compare:
    """Compare jobs, sweeps, baselines or result files: FASTER, SLOWER, SAME or UNDECIDED, with ratio and interval.

    What the others are measured against comes first. A run that measured several things in turns may stand alone.
    """

    things: tuple[str, ...] = param(
        "A, B and further ones: job ids, sweeps, baselines, result files; job:, sweep:, baseline: or file: before one"
        " says which",
        positional=True,
    )
    fail_if: tuple[str, ...] = param(
        "Exit 1 when this holds beyond doubt, or one lacks it: 'tpot.p50 > 1.05x' (x of A) or 'ttft.p99 > 80 ms'",
        default=(),
    )
    undecided: Literal["tell", "fail"] = param("What becomes of a condition that cannot be told", default="tell")
    within: float = param("Share within which two medians count as the same", default=0.02, ge=0.001, le=0.5)

    def perform(self, run: Run) -> CompareResult:
        """Read both sides and judge every metric they share."""
        from hfbench.compare.comparing import compare

        found = compare(self.things, fail_if=self.fail_if, within=self.within, strict=self.undecided == "fail")
        for each in found.open_conditions:
            run.log(each, level="warning")
        return found
