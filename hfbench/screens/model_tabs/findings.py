"""The list of verdicts and findings: a cursor chooses one, and enter tells all about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from hfbench.checks.finding import Finding
from hfbench.screens.model_tabs.finding_lines import FINDING, OTHERS, Line, Shown, finding_key, kind_of
from hfbench.screens.model_tabs.verdict_lines import VERDICT
from hfbench.screens.model_view import ModelView
from hfbench.widgets.cells import Span
from hfbench.widgets.help import Help
from hfbench.widgets.line_table import MARK
from hfbench.widgets.painted import Painted, strip_of
from hfbench.widgets.unstyled_focus import UnstyledFocus


class Findings(UnstyledFocus, Painted, can_focus=True):
    """Verdicts and findings with a cursor; who holds it decides what explaining one means."""

    help = Help(
        "Verdicts and findings",
        "First whether each runtime would load the model, by the rules of the version named; then what was found.\n"
        "`up` and `down` choose a line, `enter` explains it: evidence, remedy, and the rule it comes from.\n"
        "`y` copies the finding under the cursor. The same on the command line: hfbench resolve, hfbench check.",
    )

    DEFAULT_CSS = "Findings { height: auto; width: 1fr; }"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("enter", "choose", "explain"),
    ]

    @dataclass
    class Chosen(Message):
        """`enter` on a verdict or a finding; the key says which."""

        key: str

    @dataclass
    class Moved(Message):
        """The cursor is on another entry."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.shown: Shown | None = None
        self.current = ""
        self._moved = False
        """Until it is moved the cursor is on what matters most, whichever answer came first."""
        self._entries: tuple[int, list[Line]] | None = None

    @property
    def finding(self) -> Finding | None:
        """The finding under the cursor."""
        number = self.current.removeprefix(FINDING)
        known = self.shown.findings if self.shown else ()
        return known[int(number)] if number.isdigit() and int(number) < len(known) else None

    @property
    def others(self) -> tuple[Finding, ...]:
        """The findings that the line under the cursor stands for, when it says only how many there are."""
        number = self.current.removeprefix(OTHERS)
        known = self.shown.findings if self.shown else ()
        first = known[int(number)] if number.isdigit() and int(number) < len(known) else None
        return tuple(each for each in known[int(number) :] if kind_of(each) == kind_of(first)) if first else ()

    @property
    def runtime(self) -> str:
        """The runtime whose verdict is under the cursor, empty for none."""
        return self.current.removeprefix(VERDICT) if self.current.startswith(VERDICT) else ""

    def show(self, view: ModelView, *, room: int | None = None) -> bool:
        """Show what is known now; the cursor stays on its line.

        True when all of it fits into `room` lines with an empty one between verdicts and findings; else there is none,
        for what is wrong must be seen without a key.
        """
        before = self.finding
        height = len(self._lines(self.size.width))
        self.shown, self._entries = Shown(view, view.findings, spaced=True), None
        spaced = room is None or len(self._lines(self.size.width)) <= room
        if not spaced:
            self.shown, self._entries = Shown(view, view.findings, spaced=False), None
        if before is not None and self.finding != before:  # others came before it
            places = [number for number, each in enumerate(self.shown.findings) if _same(each, before)]
            self.current = finding_key(places[0]) if places else self.current
        keys = self._keys()
        if not self._moved or self.current not in keys:
            self.current = finding_key(0) if finding_key(0) in keys else keys[0] if keys else ""
        if len(self._lines(self.size.width)) != height:
            self.refresh(layout=True)
        self.repaint()
        return spaced

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Textual's hook: as many lines as there are at this width."""
        return len(self._lines(width))

    def lines(self, width: int, height: int) -> list[list[Span]]:
        """What is painted; the mark stands on the first line of the entry under the cursor."""
        marked = self._first_line(width)
        return [
            [(self.glyphs.cursor.ljust(MARK), ""), *spans[1:]] if number == marked else spans
            for number, (_, spans) in enumerate(self._lines(width))
        ]

    def render_line(self, y: int) -> Strip:
        """Textual's line interface: the entry under the cursor stands out while it takes the keys."""
        if self.has_focus and y == self._first_line(self.size.width):
            lines = self._current()
            return strip_of(self, lines[y] if y < len(lines) else [], self.size.width, over="cursor")
        return super().render_line(y)

    def on_focus(self) -> None:
        """The cursor shows where keys go."""
        self._refresh_current()

    def on_blur(self) -> None:
        """The cursor shows where keys go."""
        self._refresh_current()

    def on_click(self, event: Click) -> None:
        """A click chooses, a second one explains."""
        lines = self._lines(self.size.width)
        if event.y < len(lines) and lines[event.y][0]:
            self._go(lines[event.y][0])
            if event.chain == 2:
                self.action_choose()

    def action_move(self, steps: int) -> None:
        """The next entry; beyond the last and before the first the text around the list scrolls."""
        keys = self._keys()
        place = keys.index(self.current) + steps if self.current in keys else 0
        if keys and 0 <= place < len(keys):
            self._go(keys[place])
        elif scroller := self._scroller():
            scroller.scroll_relative(y=steps, animate=False)

    def action_choose(self) -> None:
        """Explain the entry under the cursor."""
        if self.current:
            self.post_message(self.Chosen(self.current))

    def go_to(self, key: str) -> None:
        """Put the cursor on an entry, if there is one of that key."""
        if key in self._keys():
            self._go(key)

    def _go(self, key: str) -> None:
        self._moved = True
        self._refresh_current()
        self.current = key
        self.repaint()
        self._refresh_current()
        self._scroll_to_current()
        self.post_message(self.Moved())

    def _refresh_current(self) -> None:
        line = self._first_line(self.size.width)
        if line is not None:
            self.refresh(Region(0, line, self.size.width, 1))

    def _scroll_to_current(self) -> None:
        scroller, first = self._scroller(), self._first_line(self.size.width)
        if scroller is None or first is None:
            return
        count = sum(key == self.current for key, _ in self._lines(self.size.width))
        top = self.region.y - scroller.region.y + scroller.scroll_offset.y + first
        if self.current == (self._keys() or [""])[0]:  # what stands above the list belongs to its beginning
            count, top = count + top, 0
        scroller.scroll_to_region(Region(0, top, 1, min(count, scroller.size.height)), animate=False, force=True)

    def _scroller(self) -> VerticalScroll | None:
        return next((node for node in self.ancestors if isinstance(node, VerticalScroll)), None)

    def _keys(self) -> list[str]:
        return list(dict.fromkeys(key for key, _ in self._lines(self.size.width) if key))

    def _first_line(self, width: int) -> int | None:
        return next((number for number, (key, _) in enumerate(self._lines(width)) if key and key == self.current), None)

    def _lines(self, width: int) -> list[Line]:
        if self._entries is None or self._entries[0] != width:
            self._entries = (width, self.shown.lines(width or 80, self.glyphs) if self.shown else [])
        return self._entries[1]


def _same(one: Finding, other: Finding) -> bool:
    """The same thing found by reading and by a rule."""
    return (one.file, one.message) == (other.file, other.message)
