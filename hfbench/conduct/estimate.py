"""How long the cells of a sweep may take, from what earlier jobs took; and from what that is said."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from hfbench.jobs.history import History
from hfbench.jobs.state import State
from hfbench.scripts.plan import Plan, PlannedStep


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Seconds of one cell, and the source of the figure in words."""

    cell_s: float
    source: str

    def all_s(self, cells: int, at_once: int) -> float:
        """Seconds of so many cells, so many at once."""
        return self.cell_s * -(-cells // max(1, at_once))


def estimate(plan: Plan, jobs: Path) -> Estimate | None:
    """The mean time of a cell by the medians of finished jobs of the same actions and models; None where a step that
    is a job has no such earlier one."""
    wanted = {_key(step) for _, step in plan if not step.spec.inline}
    if not wanted:
        return Estimate(cell_s=0.0, source="steps that only read")
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    with closing(History(jobs)) as history:
        for row in history.rows():
            if row.state is State.FINISHED and (row.action, row.model) in wanted:
                found[row.action, row.model].append(row.seconds(time.time()))
    if wanted - found.keys():
        return None
    usual = {key: statistics.median(seconds) for key, seconds in found.items()}
    total = sum(usual[_key(step)] for _, step in plan if not step.spec.inline)
    count = sum(map(len, found.values()))
    actions = " and ".join(sorted({action for action, _ in found}))
    jobs_told = "1 earlier job" if count == 1 else f"{count} earlier jobs"
    model = "this model" if len({model for _, model in found}) == 1 else "these models"
    return Estimate(cell_s=total / len(plan.cells), source=f"{jobs_told} of {actions} with {model}")


def _key(step: PlannedStep) -> tuple[str, str]:
    """Action and model as the history tells them."""
    values = step.spec.values(step.request)
    return step.spec.name, str(values.get("model") or values.get("kernel") or "")
