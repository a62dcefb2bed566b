"""How the reference becomes a model, step by step, what each runtime makes of it, and one key that starts one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Resize
from textual.message import Message

from hfbench.errors import HfbenchError
from hfbench.screens.base import BenchScreen
from hfbench.screens.engines_recipe import first_values
from hfbench.screens.latest_wins import LatestWins
from hfbench.screens.model_tabs.explanation import ExplainedTab, Explanation
from hfbench.screens.model_tabs.runtimes_rows import row_facts, row_record, step_record
from hfbench.screens.model_tabs.told import step_facts
from hfbench.screens.model_view import ModelView
from hfbench.widgets.glyphs import glyphs_of
from hfbench.widgets.help import Help
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_table import RecordTable

if TYPE_CHECKING:
    from hfbench.actions.aside import Aside
    from hfbench.actions.resolve import ResolveResult
    from hfbench.actions.runtimes import RuntimesResult
    from hfbench.actions.serve_command import ServeCommandResult
    from hfbench.engines.runtimes.row import Row

STEP_COLUMNS = (
    Column("number", "", align="right"),
    Column("state", ""),
    Column("step", "Step"),
    Column("looked", "Looked at", priority=2, flexible=True, min=20, max=22),
    Column("found", "Found", flexible=True, min=24, max=34),
    Column("why", "Why the next step", priority=1, flexible=True, min=20, max=200),
)
RUNTIME_COLUMNS = (
    Column("state", ""),
    Column("runtime", "Runtime"),
    Column("starts", "Starts", priority=1),
    Column("rules", "Rules", priority=3),
    Column("precision", "On the card", priority=2, flexible=True, min=20, max=44),
    Column("reason", "Reason", flexible=True, min=30, max=200),
)
RUNTIMES = 10
RUNTIME_LINES = RUNTIMES + 2
"""The table of runtimes with its header, and the line that parts it from the steps."""
LEAST_STEPS = 4
"""Lines that the steps keep, their header among them, where the runtimes have to scroll."""


@dataclass(frozen=True)
class Question:
    """The fields to perform `serve.command` with."""

    values: dict[str, object]


@dataclass
class Composed(Message):
    """A serve command, or why there is none."""

    result: ServeCommandResult


@dataclass
class NotComposed(Message):
    """It could not be asked."""

    error: HfbenchError


class Steps(RecordTable):
    """The steps in order."""

    help = Help(
        "Steps",
        "From the reference to what would be loaded: what was looked at, what was found, why the next step follows.\n"
        "`enter` opens all of a step, `tab` goes on to the runtimes. On the command line: hfbench resolve.",
    )


class Verdicts(RecordTable):
    """The runtimes below each other, so that they can be compared."""

    help = Help(
        "Runtimes",
        "Whether each runtime carries the model out on the card here, by shipped or installed rules.\n"
        "`enter` opens all of a verdict. `x` starts it: a form filled in, or its serve command checked and copied.\n"
        "On the command line: hfbench runtimes, and --gpu for another card.",
    )

    DEFAULT_CSS = f"Verdicts {{ height: {RUNTIMES + 1}; margin-top: 1; }}"


class RuntimesTab(ExplainedTab):
    """The resolution trace, then the runtimes side by side."""

    title: ClassVar[str] = "Runtimes"
    keys_to = Steps

    BINDINGS: ClassVar[list[BindingType]] = [Binding("x", "launch", "start", id="runtimes.start")]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._resolution: ResolveResult | None = None
        self._matrix: RuntimesResult | None = None
        self._explained: RecordTable | None = None
        self._aside: Aside | None = None
        self._gone = False
        self._commands = LatestWins(self, self._compose_command, NotComposed)

    def compose(self) -> ComposeResult:
        """Steps over runtimes, and room for one of them."""
        with Vertical(id="list"):
            yield Steps(STEP_COLUMNS, empty="resolving ...")
            yield Verdicts(RUNTIME_COLUMNS, empty="resolving ...")
        yield Explanation()

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._gone = True
        self._commands.stop()
        if self._aside is not None:
            self._aside.close()

    @property
    def steps(self) -> Steps:
        """The table of steps."""
        return self.query_one(Steps)

    @property
    def verdicts(self) -> Verdicts:
        """The table of runtimes."""
        return self.query_one(Verdicts)

    @property
    def chosen(self) -> Row | None:
        """The runtime under the cursor of its table."""
        key = self.verdicts.current
        rows = self._matrix.rows if self._matrix else ()
        return next((row for row in rows if row.runtime == key), None)

    def show(self, view: ModelView) -> None:
        """Steps come with the answer of `resolve`, runtimes with that of `runtimes`."""
        resolution, matrix = view.judgement.resolution, view.judgement.matrix
        waits = "resolving ..." if view.judgement.under_way else _why_not(view)
        for table in (self.steps, self.verdicts):
            if table.empty != waits:
                table.empty = waits
                table.refresh()
        glyphs = glyphs_of(self.app)
        if resolution is not self._resolution:
            self._resolution = resolution
            steps = resolution.steps if resolution else ()
            self.steps.show([step_record(number, step, glyphs) for number, step in enumerate(steps, 1)])
        elif matrix is self._matrix:
            return
        if matrix is not self._matrix:
            self._matrix = matrix
            self.verdicts.show([row_record(row, glyphs) for row in matrix.rows] if matrix else [])
            self.refresh_bindings()
        self._share_room()
        if self.explains:
            self._explain_current() if resolution else self.close_explanation()

    def on_resize(self, event: Resize) -> None:
        """The runtimes stand below the last step, or below as many as there is room for."""
        super().on_resize(event)
        self._share_room()

    def _share_room(self) -> None:
        room = self.size.height
        below = min(RUNTIME_LINES, max(room - LEAST_STEPS, LEAST_STEPS))
        self.verdicts.styles.height = below - 1
        wanted = self.steps.total + 1
        fits = self.steps.total and room - below > 1
        self.steps.styles.height = min(wanted, room - below) if fits else "1fr"

    def copied(self) -> str:
        """The explanation that is read, else the row under the cursor in one sentence."""
        table = self.verdicts if self.verdicts.has_focus else self.steps
        row = table.rows[table.cursor] if len(table.rows) else None
        told = (
            [row.cells[key] for key in ("step", "runtime", "found", "reason", "why") if row.cells.get(key)]
            if row
            else []
        )
        return super().copied() or "; ".join(told)

    # -- starting -------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """`x` where the runtime under the cursor can be started from here."""
        if action == "launch":
            row = self.chosen if self.is_mounted else None
            return row is not None and bool(row.launch)
        return super().check_action(action, parameters)

    def action_launch(self) -> None:
        """Open the form of the runtime under the cursor, or copy the command that serves the model with it."""
        row = self.chosen
        if row is None or not row.launch:
            return
        if row.launch == "job":
            bench, values = self._screen.bench, dict[str, object](row.values)
            if row.action == "engine.build":
                from hfbench.actions.runtimes import name_of

                named = name_of(row.values["model"])
                values = first_values(named, bench.config.engines.roots, row.values["builder"]) | values
            bench.open_form(row.action, values)
        else:
            self._commands.ask(Question(dict(row.values)))

    def _compose_command(self, question: Question) -> Message:
        """In the thread of answers: the action is performed in a child process."""
        from hfbench.actions.aside import Aside

        if self._aside is None:
            self._aside = Aside()
        return Composed(self._aside.ask("serve.command", question.values, lambda: self._gone))

    @on(Composed)
    async def _composed(self, message: Composed) -> None:
        message.stop()
        if message.result.command:
            self._screen.notify(message.result.command, markup=False)
            await self._screen.copy(message.result.command)
        else:
            self._screen.bench.complain(message.result.headline)

    @on(NotComposed)
    def _not_composed(self, message: NotComposed) -> None:
        message.stop()
        self._screen.bench.complain(message.error)

    @property
    def _screen(self) -> BenchScreen:
        return cast(BenchScreen, self.screen)

    # -- explaining -----------------------------------------------------------

    @on(RecordTable.Chosen)
    def _opened(self, message: RecordTable.Chosen) -> None:
        if self.explains and self._explained is message.table:
            self.close_explanation()
            return
        self._explained = message.table
        self._explain_current()

    @on(RecordTable.Highlighted)
    def _highlighted(self, message: RecordTable.Highlighted) -> None:
        if message.table is self.verdicts:
            self.refresh_bindings()
        if self.explains and message.table is self._explained and self._resolution:
            self._explain_current()

    def _explain_current(self) -> None:
        table, resolution = self._explained or self.steps, self._resolution
        key: Any = table.current
        if resolution is None or key is None:
            return
        if table is self.verdicts:
            row = self.chosen
            if row is not None and self._matrix is not None:
                self.explain(row.title, list(row_facts(row, self._matrix, resolution)))
            return
        step = resolution.steps[int(key) - 1]
        self.explain(f"{key} of {len(resolution.steps)}: {step.step}", list(step_facts(step)))


def _why_not(view: ModelView) -> str:
    return next((str(each) for each in view.judgement.troubles), "nothing was resolved")
