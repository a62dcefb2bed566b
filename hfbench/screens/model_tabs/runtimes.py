"""How the reference becomes a model, step by step, and what each runtime makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Resize

from hfbench.models.problem import counted
from hfbench.models.runtimes import RUNTIMES, Runtime
from hfbench.screens.model_tabs.explanation import ExplainedTab, Explanation
from hfbench.screens.model_tabs.told import step_facts, verdict_facts
from hfbench.screens.model_tabs.verdict_lines import STATES, title_of, verdict_state
from hfbench.screens.model_view import ModelView
from hfbench.widgets.glyphs import Glyphs, glyphs_of
from hfbench.widgets.help import Help
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import Record
from hfbench.widgets.record_table import RecordTable

if TYPE_CHECKING:
    from hfbench.actions.resolve import ResolveResult
    from hfbench.models.resolution.trace import Step

STEP_COLUMNS = (
    Column("number", "", align="right"),
    Column("state", ""),
    Column("step", "Step"),
    Column("looked", "Looked at", priority=2, flexible=True, min=20, max=22),
    Column("found", "Found", flexible=True, min=24, max=34),
    Column("why", "Why the next step", priority=1, flexible=True, min=20, max=200),
)
VERDICT_COLUMNS = (
    Column("state", ""),
    Column("runtime", "Runtime"),
    Column("config", "Config class", priority=3, flexible=True, min=14, max=30, middle=True),
    Column("model", "Model class", priority=2, flexible=True, min=16, max=40, middle=True),
    Column("files", "Files", priority=1),
    Column("rules", "Rules", priority=4),
    Column("reason", "Reason", flexible=True, min=40, max=200),
)


VERDICT_LINES = 2 + len(RUNTIMES)
"""The table of verdicts with its header, and the line that parts it from the steps."""


class Steps(RecordTable):
    """The steps in order."""

    help = Help(
        "Steps",
        "From the reference to what would be loaded: what was looked at, what was found, why the next step follows.\n"
        "`enter` opens all of a step, `tab` goes on to the verdicts. On the command line: hfbench resolve.",
    )


class Verdicts(RecordTable):
    """The runtimes below each other, so that they can be compared."""

    help = Help(
        "Verdicts",
        "Whether each runtime would load the model, by the rules of the version named, or of the package installed.\n"
        "`enter` opens all of a verdict: classes, files read and passed over, code that trust_remote_code would run.",
    )

    DEFAULT_CSS = "Verdicts { height: 5; margin-top: 1; }"


class RuntimesTab(ExplainedTab):
    """The resolution trace, then the verdicts side by side."""

    title: ClassVar[str] = "Runtimes"
    keys_to = Steps

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._resolution: ResolveResult | None = None
        self._explained: RecordTable | None = None

    def compose(self) -> ComposeResult:
        """Steps over verdicts, and room for one of them."""
        with Vertical(id="list"):
            yield Steps(STEP_COLUMNS, empty="resolving ...")
            yield Verdicts(VERDICT_COLUMNS, empty="resolving ...")
        yield Explanation()

    @property
    def steps(self) -> Steps:
        """The table of steps."""
        return self.query_one(Steps)

    @property
    def verdicts(self) -> Verdicts:
        """The table of verdicts."""
        return self.query_one(Verdicts)

    def show(self, view: ModelView) -> None:
        """Steps and verdicts come at once, with the answer of `resolve`."""
        resolution = view.judgement.resolution
        waits = "resolving ..." if view.judgement.under_way else _why_not(view)
        for table in (self.steps, self.verdicts):
            if table.empty != waits:
                table.empty = waits
                table.refresh()
        if resolution is self._resolution:
            return
        self._resolution = resolution
        glyphs = glyphs_of(self.app)
        steps = resolution.steps if resolution else ()
        self.steps.show([_step_record(number, step, glyphs) for number, step in enumerate(steps, 1)])
        told = resolution.runtimes if resolution else {}
        self._share_room()
        self.verdicts.show([_verdict_record(runtime, told[runtime], glyphs) for runtime in RUNTIMES if runtime in told])
        if self.explains:
            self._explain_current() if resolution else self.close_explanation()

    def on_resize(self, event: Resize) -> None:
        """The verdicts stand below the last step, or below as many as there is room for."""
        super().on_resize(event)
        self._share_room()

    def _share_room(self) -> None:
        room = self.size.height - VERDICT_LINES
        wanted = self.steps.total + 1
        self.steps.styles.height = min(wanted, room) if self.steps.total and room > 1 else "1fr"

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

    @on(RecordTable.Chosen)
    def _chosen(self, message: RecordTable.Chosen) -> None:
        if self.explains and self._explained is message.table:
            self.close_explanation()
            return
        self._explained = message.table
        self._explain_current()

    @on(RecordTable.Highlighted)
    def _highlighted(self, message: RecordTable.Highlighted) -> None:
        if self.explains and message.table is self._explained and self._resolution:
            self._explain_current()

    def _explain_current(self) -> None:
        table, resolution = self._explained or self.steps, self._resolution
        key = table.current
        if resolution is None or key is None:
            return
        if table is self.verdicts:
            runtime: Runtime = key  # type: ignore[assignment]
            verdict = resolution.runtimes[runtime]
            self.explain(title_of(runtime, verdict), list(verdict_facts(runtime, verdict, resolution.steps)))
            return
        step = resolution.steps[int(key) - 1]
        self.explain(f"{key} of {len(resolution.steps)}: {step.step}", list(step_facts(step)))


def _step_record(number: int, step: Step, glyphs: Glyphs) -> Record:
    state = STATES[step.state]
    cells = {
        "number": str(number),
        "state": glyphs.sign(state) or "-",
        "step": step.step,
        "looked": step.looked_at,
        "found": step.found,
        "why": step.why,
    }
    return Record(
        str(number), cells, states={"state": state, "looked": "muted", "why": "muted"}, order={"number": number}
    )


def _verdict_record(runtime: Runtime, verdict: Mapping[str, Any], glyphs: Glyphs) -> Record:
    from hfbench.actions.resolve import spoken

    state = verdict_state(verdict)
    files, ignored = len(verdict["files"]), len(verdict["ignored"])
    told = counted(files, "file") if files else "none"
    cells = {
        "state": glyphs.sign(state),
        "runtime": title_of(runtime, verdict),
        "rules": "installed" if verdict["installed"] else "shipped",
        "config": (verdict["class"] or "none") if runtime in ("transformers", "vllm") else "",
        "model": verdict["model_class"] or "none",
        "files": f"{told}, {ignored:,} not read" if ignored else told,
        "reason": spoken(runtime, verdict),
    }
    return Record(runtime, cells, states={"state": state, "config": "muted", "files": "muted", "rules": "muted"})


def _why_not(view: ModelView) -> str:
    return next((str(each) for each in view.judgement.troubles), "nothing was resolved")
