"""What the list of sweeps and the page of one have in common: what can be done to a sweep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from textual import on, work
from textual.binding import Binding
from textual.message import Message

from hfbench.screens.background import Background, Stopped
from hfbench.screens.base import BenchScreen
from hfbench.screens.confirm import Confirm
from hfbench.screens.messages import Trouble
from hfbench.screens.sweep_form import FilledForm, form_of
from hfbench.sweeps.model import CellState, SweepState
from hfbench.text import shell_line


@dataclass(frozen=True)
class AtHand:
    """The sweep that keys mean."""

    name: str
    folder: Path
    state: SweepState
    counts: Mapping[CellState, int]


@dataclass
class SweepDone(Message):
    """Something was done to a sweep; a sentence about it."""

    told: str


@dataclass
class FormFilled(Message):
    """A sweep is ready to be edited."""

    form: FilledForm


URGENT_KEYS = (
    Binding("s", "resume", "resume", id="sweep.resume"),
    Binding("R", "rerun", "rerun", id="sweep.rerun"),
    Binding("c", "cancel", "cancel", id="sweep.cancel"),
)
"""For the BINDINGS of subclasses, before their own keys: each is there only while it can be done."""

OTHER_KEYS = (
    Binding("w", "report", "report", id="sweep.report"),
    Binding("e", "edit", "edit", id="sweep.edit"),
    Binding("y", "copy_command", "copy command", show=False, id="sweep.copy"),
)
"""For the BINDINGS of subclasses, before keys that can wait: those inherited would come first in the key line."""


class SweepKeys(BenchScreen):
    """A screen with a sweep at hand. Subclasses give `at_hand` and `look_again`, and take the keys above."""

    def __init__(self) -> None:
        super().__init__()
        self._doing = Background(self, Trouble)
        self._filling = Background(self, Trouble)

    @property
    def at_hand(self) -> AtHand | None:
        """The sweep under the cursor, or that of the page."""
        raise NotImplementedError

    @property
    def rerun(self) -> tuple[str, Callable[[], object]] | None:
        """What `R` would run again, and the deed; None where nothing says which cells. Here the cells that failed."""
        from hfbench.conduct.start import rerun_failed

        sweep = self.at_hand
        if sweep is None or not (count := sweep.counts["failed"]):
            return None
        cells = "1 failed cell" if count == 1 else f"{count:,} failed cells"
        return cells, partial(rerun_failed, sweep.folder)

    @property
    def unnamed_actions(self) -> tuple[str, ...]:
        """A sweep that runs is not run again."""
        return ("rerun",) if self.is_mounted and self.at_hand and self.at_hand.state == "running" else ()

    @property
    def takes_keys(self) -> bool:
        """Keys that follow one that opens a form are for the form."""
        return super().takes_keys and not self._filling.busy

    def look_again(self) -> None:
        """Something was done: what is shown may be old."""
        raise NotImplementedError

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what can be done to this sweep now."""
        sweep = self.at_hand if self.is_mounted else None
        match action:
            case "resume":
                return sweep is not None and sweep.state in ("stopped", "interrupted")
            case "cancel":
                return sweep is not None and sweep.state == "running"
            case "rerun" | "edit" | "report" | "copy_command" | "mark" | "delete" | "compare_marked":
                return sweep is not None
        return super().check_action(action, parameters)

    def action_resume(self) -> None:
        """Go on where it was left; finished cells are not done again."""
        from hfbench.conduct.start import resume

        if sweep := self.at_hand:
            self._do(partial(resume, sweep.folder), f"{sweep.name} goes on")

    @work
    async def action_rerun(self) -> None:
        """Ask, then run again what `rerun` tells."""
        if (sweep := self.at_hand) is None:
            return
        if sweep.state == "running":
            self.notify(f"{sweep.name} is running: R runs cells again once it is over, or cancelled by c", markup=False)
            return
        if (rerun := self.rerun) is None:
            told = f"no cell of {sweep.name} failed: enter opens it, and R there runs the cell under the cursor again"
            self.notify(told, markup=False)
            return
        which, deed = rerun
        if await self.app.push_screen_wait(Confirm(f"run {which} of {sweep.name} again?")):
            self._do(deed, f"{which} of {sweep.name} again")

    @work
    async def action_cancel(self) -> None:
        """Ask, then stop it; what finished stays."""
        from hfbench.conduct.start import cancel

        if (sweep := self.at_hand) is None:
            return
        if await self.app.push_screen_wait(Confirm(f"cancel {sweep.name}? finished cells stay")):
            self._do(partial(cancel, sweep.folder), f"{sweep.name} is asked to stop")

    def action_edit(self) -> None:
        """The form of its action, filled as this sweep was: what is changed there becomes another sweep."""
        if (sweep := self.at_hand) is not None and not self._filling.busy:
            self._filling.start(lambda stopped, post: post(FormFilled(form_of(sweep.folder))))

    @on(FormFilled)
    def _filled(self, message: FormFilled) -> None:
        if self.in_front:
            form = message.form
            self.bench.open_form(form.action, form.values, texts=form.texts, runs_in=form.runs_in, on=form.on)

    def action_report(self) -> None:
        """The form of a report about it."""
        if sweep := self.at_hand:
            self.bench.open_form("report", {"subject": sweep.name})

    async def action_copy_command(self) -> None:
        """The command that shows it."""
        if sweep := self.at_hand:
            await self.copy(shell_line(["hfbench", "sweep", "show", sweep.name]))

    def _do(self, deed: Callable[[], object], told: str) -> None:
        def doing(stopped: Stopped, post: Callable[[Message], None]) -> None:
            deed()
            post(SweepDone(told))

        self._doing.start(doing)

    @on(SweepDone)
    def _done(self, message: SweepDone) -> None:
        self.notify(message.told, markup=False)
        self.look_again()
