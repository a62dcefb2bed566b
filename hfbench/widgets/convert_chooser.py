"""The chooser of a conversion: arrows move between its keys and turn what they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Click
from textual.message import Message

from hfbench.widgets.cells import Span
from hfbench.widgets.convert_lines import Choice, chooser_lines
from hfbench.widgets.help import Help
from hfbench.widgets.painted import Painted
from hfbench.widgets.unstyled_focus import UnstyledFocus


class ConvertChooser(UnstyledFocus, Painted, can_focus=True, inherit_bindings=False):
    """Paints what it is given and says which key was meant; what that means is decided by who holds it."""

    help = Help(
        "Conversion",
        "Small letters turn what stands beside them, capital ones turn it back; here the arrows do too. `TP`, `PP` and "
        "`EP` are ranks that tensors, layers and experts are divided among; `l` walks through layouts that the model "
        "allows. A layout it does not is explained beside, with one that it does. Bars are the bytes of each rank.",
    )

    DEFAULT_CSS = "ConvertChooser { height: 1fr; }"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("right,space,enter", "turn(1)", "change", show=False, id="convert.change"),
        Binding("left", "turn(-1)", "change back", show=False, id="convert.change-back"),
    ]

    @dataclass
    class Turned(Message):
        """What stands beside a key is to change, forwards or backwards."""

        key: str
        steps: int

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.choice = Choice()
        self.cursor = 0

    def show(self, choice: Choice) -> None:
        """Paint this; the cursor stays on its key while there is one."""
        keys = [knob.key for knob in choice.knobs]
        key = self.key
        self.choice = choice
        self.cursor = keys.index(key) if key in keys else min(self.cursor, max(0, len(keys) - 1))
        self.repaint()

    @property
    def key(self) -> str:
        """The key under the cursor."""
        return self.choice.knobs[self.cursor].key if self.cursor < len(self.choice.knobs) else ""

    def lines(self, width: int, height: int) -> list[list[Span]]:
        """Keys and bars."""
        return chooser_lines(
            self.choice, self.cursor, focused=self.has_focus, width=width, height=height, glyphs=self.glyphs
        )

    def watch_has_focus(self, _has_focus: bool) -> None:
        """The cursor shows where keys go."""
        self.repaint()

    def on_click(self, event: Click) -> None:
        """A click goes to a key, another one turns it."""
        row = event.y - 1
        if 0 <= row < len(self.choice.knobs):
            self.cursor = row
            self.repaint()
            if event.chain == 2:
                self.action_turn(1)

    def action_move(self, rows: int) -> None:
        """Go to another key."""
        self.cursor = max(0, min(len(self.choice.knobs) - 1, self.cursor + rows))
        self.repaint()

    def action_turn(self, steps: int) -> None:
        """Tell that what stands beside the key is to change."""
        if self.key:
            self.post_message(self.Turned(self.key, steps))
