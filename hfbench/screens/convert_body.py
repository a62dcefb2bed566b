"""The body of the Convert screen: the chooser beside the plan, trouble below them, the walls last."""

from __future__ import annotations

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical

from hfbench.errors import HfbenchError
from hfbench.screens.convert_view import ConvertView
from hfbench.widgets.convert_chooser import ConvertChooser
from hfbench.widgets.convert_panes import Halves, PlanSide, RowDetail, Walls
from hfbench.widgets.facts_lines import facts_lines
from hfbench.widgets.filter_bar import FilterBar
from hfbench.widgets.glyphs import glyphs_of
from hfbench.widgets.notice import Notice
from hfbench.widgets.plan_table import PlanTable
from hfbench.widgets.record_table import RecordTable
from hfbench.widgets.see_through import SeeThrough
from hfbench.widgets.wall_lines import scene_facts

SIDES = 2
"""Cells beside the body."""

WIDE = 110
"""Cells of the terminal from which on the chooser takes some more."""


class ConvertBody(SeeThrough, Vertical):
    """Paints what is known of a conversion, and opens rows of its plan."""

    DEFAULT_CSS = """
    ConvertBody {
        & ConvertChooser { width: 26; margin-right: 2; }
        & #trouble { margin-top: 1; }
        &.-wide ConvertChooser { width: 30; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self.view = ConvertView()

    def compose(self) -> ComposeResult:
        """All of it; notices and the row in full are hidden until they have something to say."""
        with Halves():
            yield ConvertChooser()
            with PlanSide():
                yield FilterBar()
                yield Notice(id="refusal")
                yield PlanTable()
                yield RowDetail()
        yield Notice(id="trouble")
        yield Walls()

    def on_resize(self, event: events.Resize) -> None:
        """The chooser takes more cells where there are some."""
        self.set_class(event.size.width + SIDES >= WIDE, "-wide")

    def show(self, view: ConvertView, *, plan: bool) -> None:
        """Show this; the plan and its refusal only where they are other ones."""
        self.view = view
        glyphs, size = glyphs_of(self.app), self.screen.size
        self.query_one(ConvertChooser).show(view.choice())
        facts = scene_facts(view.scene(), glyphs)
        walls = self.query_one(Walls)
        walls.fit(facts_lines(facts, max(1, size.width - SIDES), glyphs), size.height)
        walls.show(lambda width: facts_lines(facts, width, glyphs))
        if plan:
            self._show_plan()

    def complain(self, error: HfbenchError) -> None:
        """Say what went wrong with something that was asked for."""
        self.query_one("#trouble", Notice).show_error(error)

    def calm(self) -> None:
        """Take that away."""
        self.query_one("#trouble", Notice).clear()

    def close_row(self) -> bool:
        """Close the row that is told in full; False where none is."""
        detail = self.query_one(RowDetail)
        if not detail.display:
            return False
        detail.display = False
        self.screen.set_focus(self.query_one(PlanTable))
        return True

    @on(FilterBar.Changed)
    def _filter(self, message: FilterBar.Changed) -> None:
        self.query_one(PlanTable).filter = message.text

    @on(RecordTable.Chosen)
    def _chosen(self) -> None:
        detail = self.query_one(RowDetail)
        detail.display = not detail.display
        self._show_row()

    @on(RecordTable.Highlighted)
    def _highlighted(self) -> None:
        self._show_row()

    def _show_plan(self) -> None:
        view, table = self.view, self.query_one(PlanTable)
        refusal = self.query_one("#refusal", Notice)
        refusal.show_error(view.refusal) if view.refusal else refusal.clear()
        table.display = view.refusal is None
        table.empty = "planning ..." if view.planning else "nothing would be written"
        table.show(view.rows.records)
        if view.refusal is not None:
            self.query_one(RowDetail).display = False
            if self.screen.focused is table:
                self.screen.set_focus(self.query_one(ConvertChooser))
        self._show_row()

    def _show_row(self) -> None:
        detail, key = self.query_one(RowDetail), self.query_one(PlanTable).current
        if detail.display:
            facts, glyphs = self.view.rows.facts.get(key or "", ()), glyphs_of(self.app)
            detail.show(lambda width: facts_lines(facts, width, glyphs))
