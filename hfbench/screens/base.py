"""The frame every screen shares: where am I, the body, what the machine does, what can I do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, cast

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from hfbench.screens.messages import Trouble
from hfbench.widgets.breadcrumb import Breadcrumb
from hfbench.widgets.clipboard import copy_text
from hfbench.widgets.filter_bar import FilterBar
from hfbench.widgets.help import Help
from hfbench.widgets.key_line import KeyLine
from hfbench.widgets.machine_strip import MachineStrip
from hfbench.widgets.machine_text import StripState
from hfbench.widgets.see_through import SeeThrough

if TYPE_CHECKING:
    from hfbench.app import Workbench

COLUMNS, ROWS = 80, 24
"""The smallest terminal that shows all there is; below it a line says so."""

LEAST_COLUMNS, LEAST_ROWS = 60, 16
"""Below this a screen shows only what size it needs."""


class Body(SeeThrough, Vertical):
    """What stands between title line and strip."""


class BenchScreen(Screen[None]):
    """A screen of the workbench. Subclasses give `trail` and `body`; data comes in messages, never from reading."""

    help: ClassVar[Help]

    has_own_figures: ClassVar[bool] = False
    """Whether it is about runs of its own: the figure of the latest job would be taken for theirs."""

    filters: ClassVar[bool] = False
    """Whether `/` filters something here."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back", show=False, id="screen.back"),
        Binding("slash", "filter", "filter", show=False, id="screen.filter"),
    ]

    DEFAULT_CSS = """
    BenchScreen {
        & > #body { height: 1fr; padding: 0 1; }
        & > #small { display: none; height: 1fr; }
        &.-small > #body, &.-small > TourCard, &.-small > MachineStrip { display: none; }
        &.-small > #small { display: block; }
        &.-cramped > #small { display: block; height: 1; padding: 0 1; color: $text-warning; }
    }
    """

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """As Textual's own, but a widget that takes or loses the keys repaints itself, not all of the screen."""

    _focused_before: Widget | None = None
    """What had the keys before the terminal became too small to show it."""

    @property
    def bench(self) -> Workbench:
        """The application, by its own type."""
        return cast("Workbench", self.app)

    def trail(self) -> tuple[str, ...]:
        """Where the user is, from the outside in."""
        return (self.name or "",)

    def status(self) -> tuple[str, ...]:
        """What stands at the right of the title line."""
        return self.bench.machine.status

    @property
    def at_rest(self) -> bool:
        """True when nothing more is being read for this screen."""
        return self.is_mounted and self.bench.machine.complete

    @property
    def unnamed_actions(self) -> tuple[str, ...]:
        """Actions whose keys work and would only say why nothing can be done now: the key line leaves them out."""
        return ()

    @property
    def takes_keys(self) -> bool:
        """False while the effect of the last key is still on its way: the next one waits a moment for it."""
        return True

    def body(self) -> ComposeResult:
        """The widgets between title and strip."""
        yield from ()

    def compose(self) -> ComposeResult:
        """The frame around the body."""
        yield Breadcrumb(self.trail())
        with Body(id="body"):
            yield from self.body()
        yield Static(id="small", markup=False)
        yield MachineStrip(self._strip)
        yield KeyLine()

    @property
    def in_front(self) -> bool:
        """True when no other screen of the workbench covers this one; a question asked over it does not count.

        Painting a covered screen would make Textual paint all of the one that covers it; and when the
        application ends, a screen outlives its widgets for a moment.
        """
        screens = (screen for screen in reversed(self.app.screen_stack) if isinstance(screen, BenchScreen))
        return self.app.is_running and next(screens, None) is self

    def _on_timer_update(self) -> None:
        """Textual lays out and paints here; what a slow line cannot carry yet stays marked, and is painted later."""
        if self.bench.may_paint:
            super()._on_timer_update()

    def on_screen_resume(self) -> None:
        """Show what happened while another screen was in front."""
        if self.is_mounted and self.in_front:
            self.machine_changed()

    def on_resize(self, event: events.Resize) -> None:
        """Say which size is needed when there is too little room, instead of hiding things without a word."""
        width, height = event.size
        small = width < LEAST_COLUMNS or height < LEAST_ROWS
        if small and not self.has_class("-small"):
            self._focused_before = self.focused
        elif not small and self.has_class("-small") and self._focused_before and self._focused_before.is_attached:
            self.call_after_refresh(self.set_focus, self._focused_before)
        cramped = not small and (width < COLUMNS or height < ROWS)
        self.set_class(small, "-small")
        self.set_class(cramped, "-cramped")
        if small or cramped:
            self.query_one("#small", Static).update(_too_small(width, height) if small else _cramped(width, height))

    @on(Trouble)
    def _trouble(self, message: Trouble) -> None:
        self.bench.complain(message.error)

    def machine_changed(self) -> None:
        """The watchers saw something: screens that show GPUs or jobs repaint them too."""
        self.refresh_frame()

    def refresh_frame(self) -> None:
        """Bring title line and strip up to date."""
        if self.is_mounted:
            recording = ("recording",) if self.bench.machine.recording else ()
            self.query_one(Breadcrumb).show(self.trail(), (*self.status(), *recording))
            self.query_one(MachineStrip).show(self._strip)

    @property
    def _strip(self) -> StripState:
        """What the machine does."""
        strip = self.bench.machine.strip
        return replace(strip, latest="") if self.has_own_figures else strip

    @property
    def filter_bar(self) -> FilterBar | None:
        """The filter of what is seen, if that has one."""
        return next((bar for bar in self.query(FilterBar) if bar.parent is not None and _in_view(bar)), None)

    def action_back(self) -> None:
        """First clear a filter that is kept; then to the screen below. The first screen stays."""
        for bar in self.query(FilterBar):
            if bar.text and _in_view(bar):
                bar.close(keep=False)
                return
        if len(self.app.screen_stack) > 1:
            self.app.pop_screen()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """`/` only where there is something to filter."""
        return action != "filter" or self.filters

    def action_filter(self) -> None:
        """Open the filter of this screen, if it has one."""
        if bar := self.filter_bar:
            bar.open()

    async def copy(self, text: str) -> None:
        """Copy a text and say by which route."""
        self.notify(await copy_text(self.app, text), markup=False)


def _too_small(width: int, height: int) -> str:
    need = f"hfbench needs {LEAST_COLUMNS}x{LEAST_ROWS}, and is made for {COLUMNS}x{ROWS} or more"
    return f"this terminal is {width}x{height}: {need}"


def _cramped(width: int, height: int) -> str:
    """One line that itself fits into the smallest terminal that has it."""
    return f"this terminal is {width}x{height}: some is left out below {COLUMNS}x{ROWS}"


def _in_view(bar: FilterBar) -> bool:
    """True unless something that holds the bar, such as a tab behind another, is hidden."""
    return all(node.display for node in bar.ancestors if isinstance(node, Widget))
