"""The Compare screen: what differs between two runs, then a verdict a metric with its interval and what spoils it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from hfbench.errors import HfbenchError, Interrupted
from hfbench.screens.background import Background, Stopped
from hfbench.screens.base import BenchScreen
from hfbench.screens.messages import Latest
from hfbench.screens.sweep_asks import Post
from hfbench.text import shell_line
from hfbench.widgets.compare_rows import columns_of, detail_lines, records_of, side_lines
from hfbench.widgets.filter_bar import FilterBar
from hfbench.widgets.glyphs import glyphs_of
from hfbench.widgets.help import Help
from hfbench.widgets.line_block import LineBlock
from hfbench.widgets.list_and_detail import ListAndDetail
from hfbench.widgets.notice import Notice
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_table import RecordTable

if TYPE_CHECKING:
    from hfbench.compare.result import CompareResult, Pair

COMPARING = "comparing ..."
ACTION = "compare"

HELP = Help(
    "Compare",
    "What differs between the two stands first: settings, hardware, versions. Then a row a metric: both medians, the "
    "ratio with its 95 % interval, and the verdict FASTER, SLOWER, SAME or UNDECIDED of the second against the first. "
    "`!` beside a verdict says that something spoils it, such as throttling or drift: below stands what.\n"
    "`n` shows the next pair where there are several, `x` changes which one comes first, `u` compares again, `w` "
    "writes a report, `y` copies the command, `/` filters, `o` walks through the orders, `tab` goes to the text.",
)


@dataclass
class Compared(Latest):
    """What a comparison came to, or why there is none."""

    result: CompareResult | None
    error: HfbenchError | None = None


class CompareTable(RecordTable):
    """Differences and verdicts."""

    help = HELP

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "screen.read_row", "read"),
        Binding("o", "order", "order", show=False),
    ]


class CompareScreen(BenchScreen):
    """Two runs or more, all compared with the first."""

    has_own_figures = True

    help = HELP

    filters = True

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "next_pair", "next pair", id="compare.next"),
        Binding("x", "swap", "swap", id="compare.swap"),
        Binding("u", "update", "update", id="compare.update"),
        Binding("w", "report", "report", id="compare.report"),
        Binding("y", "copy_command", "copy command", id="compare.copy"),
        Binding("slash", "filter", "filter", id="screen.filter"),
    ]

    DEFAULT_CSS = """
    CompareScreen {
        & #sides { margin-bottom: 1; }
        & ListAndDetail.-wide > RecordTable { width: 66%; }
    }
    """

    def __init__(self, sides: Sequence[str]) -> None:
        super().__init__()
        self.sides = tuple(sides)
        self.result: CompareResult | None = None
        self._at = 0
        self._asked = False
        self._comparing = Background(self, lambda error: Compared(None, error))

    def trail(self) -> tuple[str, ...]:
        """Which ones."""
        first, *others = (side.rpartition("-")[2] or side for side in self.sides)
        return ("Compare", f"{first} with {', '.join(others[:2])}" + (" ..." if len(others) > 2 else ""))

    @property
    def at_rest(self) -> bool:
        """Compared."""
        return super().at_rest and self._asked

    @property
    def pair(self) -> Pair | None:
        """The pair in view."""
        return self.result.pairs[self._at] if self.result and self._at < len(self.result.pairs) else None

    def body(self) -> ComposeResult:
        """Trouble, both sides, the rows, one of them."""
        yield FilterBar()
        yield Notice()
        yield LineBlock(id="sides")
        yield ListAndDetail(CompareTable((Column("what", "What"),), empty=COMPARING))

    def on_mount(self) -> None:
        """Compare in a child process."""
        self.set_focus(self.query_one(CompareTable))
        self.action_update()

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._comparing.stop()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Another pair only where there is one."""
        if action == "next_pair":
            return self.result is not None and len(self.result.pairs) > 1
        return super().check_action(action, parameters)

    @on(Compared)
    def _compared(self, message: Compared) -> None:
        if not self.is_attached or not self.app.is_running:
            return  # leaving: the widgets are gone already
        self._asked = True
        self.result, notice = message.result, self.query_one(Notice)
        self._at = min(self._at, max(0, len(message.result.pairs) - 1)) if message.result else 0
        if message.error is not None:
            notice.show_error(message.error)
        else:
            notice.clear()
        self.query_one(CompareTable).empty = "nothing to compare: they have no metric in common, and differ in nothing"
        self.refresh_bindings()
        self._paint()

    @on(RecordTable.Highlighted)
    def _moved(self) -> None:
        if self.in_front:
            self._paint_one()
            self.query_one(ListAndDetail).to_top()

    @on(FilterBar.Changed)
    def _filter(self, message: FilterBar.Changed) -> None:
        self.query_one(CompareTable).filter = message.text

    # -- keys -----------------------------------------------------------------

    def action_update(self) -> None:
        """Compare again."""
        self._asked = False
        sides = self.sides

        def comparing(stopped: Stopped, post: Post) -> None:
            post(compared(sides, stopped))

        self._comparing.start(comparing)

    def action_read_row(self) -> None:
        """Give the keys to the text, which says all of the row."""
        self.set_focus(self.query_one(ListAndDetail).detail)

    def action_next_pair(self) -> None:
        """The next one against the first."""
        if self.result and self.result.pairs:
            self._at = (self._at + 1) % len(self.result.pairs)
            self._paint()

    def action_swap(self) -> None:
        """Measure against the one that was measured."""
        first = self._at + 1
        if first < len(self.sides):
            others = [side for at, side in enumerate(self.sides) if at != first]
            self.sides = (self.sides[first], *others)
            self._at = 0
            self.action_update()

    def action_report(self) -> None:
        """The form of a report about what is compared."""
        self.bench.open_form("report", {"subject": self.sides[0], "against": self.sides[1:]})

    async def action_copy_command(self) -> None:
        """The command that says the same."""
        await self.copy(shell_line(["hfbench", ACTION, *self.sides]))

    # -- painting -------------------------------------------------------------

    def on_screen_resume(self) -> None:
        """Show what came while another screen was in front."""
        super().on_screen_resume()
        self._paint()

    def _paint(self) -> None:
        if not self.is_mounted or not self.in_front:
            return
        result, pair, glyphs = self.result, self.pair, glyphs_of(self.app)
        self.refresh_frame()
        table = self.query_one(CompareTable)
        if result is not None and pair is not None:
            self.query_one("#sides", LineBlock).show(lambda width: side_lines(result, pair, width, glyphs))
            table.take_columns(columns_of(pair))
            table.show(records_of(pair, glyphs))
        else:
            self.query_one("#sides", LineBlock).show(lambda width: ())
            table.show([])
        self.query_one(ListAndDetail).share_room()
        self._paint_one()

    def _paint_one(self) -> None:
        result, pair, glyphs = self.result, self.pair, glyphs_of(self.app)
        key = self.query_one(CompareTable).current
        self.query_one(ListAndDetail).detail.show(
            lambda width: detail_lines(result, pair, key, width, glyphs) if result and pair and key else []
        )


def compared(sides: Sequence[str], stopped: Stopped) -> Compared:
    """What the action `compare` says of these, from a child process; an error is told as one."""
    from hfbench.actions.aside import Aside

    with Aside() as aside:
        try:
            return Compared(aside.ask(ACTION, {"things": list(sides)}, stopped))
        except Interrupted:
            return Compared(None)
        except HfbenchError as error:
            return Compared(None, error)
