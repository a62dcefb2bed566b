"""Runs a plan: cell after cell, step after step, each waited for, each expectation asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hfbench.actions.base import Action, Spec
from hfbench.exits import Exit
from hfbench.scripts.expectation import Expectation, Verdict
from hfbench.scripts.interrupt import Stop
from hfbench.scripts.outcomes import WORDS, about, refusal_of, shown, told, verdict_on
from hfbench.scripts.perform import Outcome, Status, perform
from hfbench.scripts.plan import Cell, Plan, PlannedStep
from hfbench.scripts.progress import Asked, Progress
from hfbench.scripts.results import Results


@dataclass
class Counts:
    """How the steps and expectations of a run went; `not_run` are the steps never begun."""

    steps: dict[str, int] = field(default_factory=lambda: dict.fromkeys((*Status, "not_run"), 0))
    expectations: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("passed", "failed", "skipped"), 0))
    missing: int = 0
    """Steps that failed because this machine lacks something."""

    def exit(self) -> Exit:
        """The code of a run that was not interrupted: the environment before steps, steps before expectations."""
        if self.missing:
            return Exit.ENVIRONMENT
        if self.steps[Status.FAILED] or self.steps[Status.TIMEOUT]:
            return Exit.STEP
        return Exit.FAILED if self.expectations["failed"] else Exit.OK


def replay(
    plan: Plan,
    results: Results,
    progress: Progress,
    *,
    machine: Mapping[str, Any],
    revision: Mapping[str, Any] | None = None,
    skip_missing: bool = False,
    dispatched: Callable[[Spec, Action], object] = lambda spec, request: None,
) -> Exit:
    """Run a plan to its end or until something asks to stop, and write every event of it; the exit code.

    `machine` is the fingerprint of where it runs, `revision` that of the script.
    `dispatched` is told each action as it starts: a recorder may listen. A stop leaves no job behind.
    """
    with Stop() as stop:
        run = _Replay(plan, results, progress, stop, skip_missing, dispatched)
        return run.run(machine, revision)


class _Replay:
    def __init__(
        self,
        plan: Plan,
        results: Results,
        progress: Progress,
        stop: Stop,
        skip_missing: bool,
        dispatched: Callable[[Spec, Action], object],
    ) -> None:
        self.plan, self.results, self.progress, self.stop = plan, results, progress, stop
        self.skip_missing, self.dispatched = skip_missing, dispatched
        self.counts = Counts()
        self.saved: dict[str, Outcome] = {}

    def run(self, machine: Mapping[str, Any], revision: Mapping[str, Any] | None) -> Exit:
        """All of it."""
        began = time.monotonic()
        self.results.write("run_started", **about(self.plan, machine, git=revision))
        self._run_cells()
        self.counts.steps["not_run"] = self.plan.count - sum(self.counts.steps.values())
        code = self._exit()
        counts = {"steps": self.counts.steps, "expectations": self.counts.expectations}
        seconds = time.monotonic() - began
        self.results.write("run_finished", counts=counts, exit=int(code), duration_s=seconds)
        self.progress.end(self.counts.steps, self.counts.expectations, seconds, code)
        return code

    def _exit(self) -> Exit:
        if self.stop.exit is not None:
            return self.stop.exit
        if self.results.ended() and self.counts.steps["not_run"]:
            return Exit.INTERRUPTED
        return self.counts.exit()

    def _run_cells(self) -> None:
        for cell in self.plan.cells:
            self.saved = {}
            for step in cell.steps:
                if self._must_end() or not self._run_step(cell, step):
                    return

    def _must_end(self) -> bool:
        return self.stop.asked() or self.results.ended()

    def _run_step(self, cell: Cell, step: PlannedStep) -> bool:
        """Run one step and ask what is expected of it; False when the run ends here."""
        self.dispatched(step.spec, step.request)
        where = {"cell": dict(cell.values), "step": step.number, "line": step.line}
        self.progress.begin(cell, step)
        outcome = perform(
            step,
            stop=self.stop,
            ended=self._must_end,
            label=f"{self.plan.name} {cell.label}".strip(),
            started=lambda job: self.results.write("step_started", **where, action=step.spec.name, job=job),
            say=self.progress.say,
            seen=self.progress.seen,
            heard=self.progress.heard,
        )
        if outcome.missing and self.skip_missing:
            outcome = outcome.skipped()
        fails = None if outcome.interrupted else refusal_of(step, outcome)
        if fails and fails.ok:
            outcome = outcome.refused()
        self.counts.steps[outcome.status] += 1
        self.counts.missing += outcome.missing and outcome.status is not Status.SKIPPED
        self.results.write("step_finished", **where, action=step.spec.name, **shown(outcome))
        self.progress.step(cell, step, outcome)
        if step.save_as:
            self.saved[step.save_as] = outcome
        good = outcome.status in (Status.OK, Status.SKIPPED, Status.REFUSED)
        if step.fails and fails:
            good &= self._tell(Asked(step.fails.line, step.fails.text), fails, where)
        for expectation in () if outcome.interrupted else step.expectations:
            good &= self._ask(expectation, outcome, where)
        return good or step.on_fail == "continue"

    def _ask(self, expectation: Expectation, own: Outcome, where: dict[str, Any]) -> bool:
        """Judge one expectation and write the verdict; False when it does not hold."""
        return self._tell(Asked(expectation.line, expectation.text), verdict_on(expectation, own, self.saved), where)

    def _tell(self, asked: Asked, verdict: Verdict, where: dict[str, Any]) -> bool:
        self.counts.expectations[WORDS[verdict.ok]] += 1
        self.results.write("assert", **{**where, "line": asked.line}, expr=asked.text, **told(verdict))
        self.progress.expectation(self.plan.file, asked, verdict)
        return verdict.ok is not False
