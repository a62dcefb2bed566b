"""What a person sees of a run: one line a step on stderr, and one for each expectation that does not hold."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, NamedTuple

from hfbench.exits import Exit
from hfbench.jobs.events import Event
from hfbench.jobs.snapshot import JobSnapshot
from hfbench.scripts.expectation import Verdict
from hfbench.scripts.perform import Outcome, Status
from hfbench.scripts.plan import Cell, Plan, PlannedStep
from hfbench.text import printable
from hfbench.units import show_seconds, show_value


class Asked(NamedTuple):
    """What is expected of a step, as it stands in the script."""

    line: int
    text: str


class Progress:
    """Writes to stderr, and is silent when nobody listens there."""

    for_people: ClassVar[bool] = False
    """Whether stdout is its own, so that results go elsewhere or nowhere."""

    def __init__(self, plan: Plan) -> None:
        self.total = plan.count
        self.done = 0

    def planned(self, cell: Cell, step: PlannedStep) -> None:
        """A step that would be run."""

    def begin(self, cell: Cell, step: PlannedStep) -> None:
        """A step begins."""

    def seen(self, snapshot: JobSnapshot) -> None:
        """How far the job of a step is, told again and again while it runs."""

    def heard(self, event: Event) -> None:
        """What a step that is no job tells."""

    def step(self, cell: Cell, step: PlannedStep, outcome: Outcome) -> None:
        """A step is over."""
        self.done += 1
        told = f" {outcome.sentence()}" if outcome.error else ""
        say(f"{self.place(cell, step, self.done)} {outcome.status}, {show_seconds(outcome.seconds)}{told}")
        if outcome.status is Status.FAILED and outcome.error:
            for line in outcome.error.get("log", ()):
                say(f"  | {line}")

    def place(self, cell: Cell, step: PlannedStep, number: int) -> str:
        """`[3/4] batch=8 bench.generate`: which of all steps it is."""
        return " ".join(filter(None, (f"[{number}/{self.total}]", cell.label, step.spec.name)))

    def expectation(self, file: Path, asked: Asked, verdict: Verdict) -> None:
        """An expectation was asked; only what did not hold is worth a line."""
        if verdict.ok is not False:
            return
        why = verdict.reason or f"it is {_actual(verdict)}"
        say(f"{file}:{asked.line}: not as expected: {asked.text}; {why}")

    def say(self, sentence: str) -> None:
        """Something worth knowing meanwhile."""
        say(sentence)

    def end(self, steps: Mapping[str, int], expectations: Mapping[str, int], seconds: float, code: Exit) -> None:
        """The run is over."""
        counted = [f"{count} {name.replace('_', ' ')}" for name, count in steps.items() if count]
        asked = [f"{count} {name}" for name, count in expectations.items() if count]
        say(
            f"steps: {', '.join(counted) or 'none'}; expectations: {', '.join(asked) or 'none'}; "
            f"{show_seconds(seconds)}, exit {int(code)}"
        )


def say(line: str) -> None:
    """One line on stderr, without a prefix: editors read `file:line:column`."""
    try:
        sys.stderr.write(printable(line) + "\n")
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        pass  # nobody is listening any more: the results and the exit code still tell


def _actual(verdict: Verdict) -> str:
    if isinstance(verdict.actual, (int, float)) and not isinstance(verdict.actual, bool) and verdict.unit:
        if verdict.unit in ("s", "B"):
            return show_value(verdict.actual, verdict.unit)
        return f"{verdict.actual:.4g} {verdict.unit}"
    return "nothing" if verdict.actual is None else repr(verdict.actual)
