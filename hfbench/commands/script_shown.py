"""A script on a terminal: its steps as they begin and end, how far the one that runs is, and what each came to."""

from __future__ import annotations

import sys
from collections.abc import Callable

from hfbench.actions.render import result_lines
from hfbench.commands.watch import ProgressLine, is_live, redraw, status_line
from hfbench.jobs.events import Event
from hfbench.jobs.events import Progress as HowFar
from hfbench.jobs.snapshot import JobSnapshot
from hfbench.scripts.perform import Outcome, Status
from hfbench.scripts.plan import SECRET, Cell, Plan, PlannedStep
from hfbench.scripts.progress import Progress
from hfbench.text import printable
from hfbench.units import show_seconds


def shown_by(*, as_json: bool) -> Callable[[Plan], Progress]:
    """What shows a script: for people where stdout is a terminal and JSON was not asked for."""
    if not as_json and sys.stdout is not None and sys.stdout.isatty():
        return ForPeople
    return Live if is_live() else Progress


class Live(Progress):
    """Draws how far a step is on one line of stderr, which makes way for every other line."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self._live = is_live()
        self._line = ""
        """What is drawn at the moment."""
        self._inline = ProgressLine()

    def begin(self, cell: Cell, step: PlannedStep) -> None:
        """A line of its own for what an action in this process tells."""
        self._inline = ProgressLine()

    def seen(self, snapshot: JobSnapshot) -> None:
        """Draw the line again."""
        if self._live and (line := status_line(snapshot)) != self._line:
            self._line = line
            redraw(line)

    def heard(self, event: Event) -> None:
        """The same for an action in this process; its warnings are said when it is over."""
        if self._live and isinstance(event, HowFar):
            self._line = event.phase
            self._inline.show(event)

    def step(self, cell: Cell, step: PlannedStep, outcome: Outcome) -> None:
        """A step is over."""
        self._clear()
        super().step(cell, step, outcome)

    def say(self, sentence: str) -> None:
        """Something worth knowing meanwhile."""
        self._clear()
        super().say(sentence)

    def _clear(self) -> None:
        if self._line:
            self._line = ""
            redraw("")


class ForPeople(Live):
    """Has stdout for itself: a line as a step begins, its result as its own command prints it, a line as it ends."""

    for_people = True

    def planned(self, cell: Cell, step: PlannedStep) -> None:
        """A step that would be run, with the arguments that are not the usual ones."""
        self.done += 1
        shown = step.shown_values()
        own = [each for each in step.spec.params if getattr(step.request, each.name) != each.default]
        told = (f"{each.name}={SECRET if shown[each.name] == SECRET else each.text(shown[each.name])}" for each in own)
        _print(" ".join((self.place(cell, step, self.done), *told)))

    def begin(self, cell: Cell, step: PlannedStep) -> None:
        """A step begins."""
        super().begin(cell, step)
        _print(self.place(cell, step, self.done + 1))

    def step(self, cell: Cell, step: PlannedStep, outcome: Outcome) -> None:
        """Its result, and the line by which it is remembered; what went wrong is said on stderr."""
        self._clear()
        for line in result_lines(step.spec, outcome.result) if outcome.result is not None else ():
            _print(line)
        if outcome.status in (Status.FAILED, Status.TIMEOUT):
            super().step(cell, step, outcome)
        else:
            self.done += 1
            told = outcome.sentence() or str((outcome.result or {}).get("headline") or "")
            status = "refused, as it was to be" if outcome.status is Status.REFUSED else outcome.status
            ended = f"{self.place(cell, step, self.done)} {status}, {show_seconds(outcome.seconds)}"
            _print(f"{ended}: {told}" if told else ended)
        if self.done < self.total:
            _print("")


def _print(line: str) -> None:
    """A line on stdout; nobody may be there any more, which the signal that came with it tells."""
    try:
        print(printable(line), flush=True)
    except (OSError, ValueError):
        pass
