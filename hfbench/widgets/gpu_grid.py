"""The GPUs of this machine with a cursor: tiles, or rows where there are many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Click
from textual.message import Message

from hfbench.gpu.telemetry import DeviceReading
from hfbench.widgets.cells import Span
from hfbench.widgets.gpu_tiles import GAP, Fold, Loads, fold, grid_lines
from hfbench.widgets.help import Help
from hfbench.widgets.painted import Painted
from hfbench.widgets.unstyled_focus import UnstyledFocus


class GpuGrid(UnstyledFocus, Painted, can_focus=True, inherit_bindings=False):
    """Paints what it is given; `cursor` is the place of a card in the list."""

    help = Help(
        "GPUs",
        "A tile a card, or a row where tiles do not fit. Memory is that of the whole card. `n/a` stands where the "
        "driver does not answer; why, the lines below say. Arrows choose a card, `enter` opens the job that works "
        "on it, `e` explains its memory, `pgup` and `pgdn` scroll what is told of it, `y` copies its UUID.",
    )

    DEFAULT_CSS = "GpuGrid { height: auto; }"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1, 0)", "up", show=False),
        Binding("down,j", "move(1, 0)", "down", show=False),
        Binding("left", "move(0, -1)", "left", show=False),
        Binding("right", "move(0, 1)", "right", show=False),
        Binding("home", "end(0)", "first", show=False),
        Binding("end", "end(-1)", "last", show=False),
        Binding("enter", "choose", "open job", id="gpus.open-job"),
        Binding("pageup", "scroll_below(-1)", "page up", show=False),
        Binding("pagedown", "scroll_below(1)", "page down", show=False),
    ]

    @dataclass
    class Moved(Message):
        """The cursor is on another card."""

        index: int

    @dataclass
    class Chosen(Message):
        """`enter` on a card."""

        device: DeviceReading

    @dataclass
    class Scrolled(Message):
        """What stands below is to scroll by pages."""

        pages: int

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.devices: tuple[DeviceReading, ...] = ()
        self.loads: Loads = {}
        self.cursor = 0
        self.room = 0

    @property
    def shows_loads(self) -> bool:
        """True when tiles show the past loads, which else have to be told below."""
        return self._fold().lines > 1

    @property
    def current(self) -> DeviceReading | None:
        """The card under the cursor."""
        return self.devices[self.cursor] if self.cursor < len(self.devices) else None

    def show(self, devices: Sequence[DeviceReading], loads: Loads, room: int) -> None:
        """Paint these cards in at most `room` lines."""
        self.devices, self.loads, self.room = tuple(devices), loads, room
        self.cursor = max(0, min(self.cursor, len(self.devices) - 1))
        height = min(self._fold().height(len(self.devices)), max(1, room)) if self.devices else 0
        if self.styles.height is None or self.styles.height.value != height:
            self.styles.height = height
        self.repaint()

    def lines(self, width: int, height: int) -> list[list[Span]]:
        """The grid."""
        return grid_lines(
            self.devices,
            self.loads,
            self.cursor,
            at=self._fold(),
            height=height,
            focused=self.has_focus,
            glyphs=self.glyphs,
        )

    def watch_has_focus(self, _has_focus: bool) -> None:
        """The cursor shows where keys go."""
        self.repaint()

    def on_click(self, event: Click) -> None:
        """A click moves the cursor; a second one opens the job."""
        at = self._fold()
        row = event.y - 1 if at.lines == 1 else event.y // (at.lines + 1)
        column = min(at.columns - 1, event.x // (at.width + GAP))
        place = row * at.columns + column
        if row >= 0 and place < len(self.devices) and len(self.devices) < self.room:
            self._go(place)
            if event.chain == 2:
                self.action_choose()

    def action_move(self, rows: int, columns: int) -> None:
        """Move the cursor by rows and columns of the fold; past the last card it stays."""
        at = self._fold()
        place = self.cursor + rows * at.columns + columns
        if 0 <= place < len(self.devices) and (columns == 0 or at.place(place)[0] == at.place(self.cursor)[0]):
            self._go(place)

    def action_end(self, place: int) -> None:
        """To the first or the last card."""
        if self.devices:
            self._go(place % len(self.devices))

    def action_choose(self) -> None:
        """Tell that the card is chosen."""
        if self.current:
            self.post_message(self.Chosen(self.current))

    def action_scroll_below(self, pages: int) -> None:
        """Tell that what stands below is to scroll."""
        self.post_message(self.Scrolled(pages))

    def _go(self, place: int) -> None:
        self.cursor = place
        self.repaint()
        self.post_message(self.Moved(place))

    def _fold(self) -> Fold:
        return fold(len(self.devices), self.size.width or 80, self.room)
