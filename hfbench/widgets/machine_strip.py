"""The strip under every screen that says what the machine is doing."""

from __future__ import annotations

from hfbench.widgets.cells import Span
from hfbench.widgets.machine_text import StripState, machine_line
from hfbench.widgets.painted import Painted


class MachineStrip(Painted):
    """Cards with memory, utilisation, temperature and power, or the reason there are none."""

    DEFAULT_CSS = "MachineStrip { height: 1; padding: 0 1; }"

    def __init__(self, state: StripState | None = None, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.state = state or StripState()

    def show(self, state: StripState) -> None:
        """Show another moment; nothing is sent when the line stays the same."""
        self.state = state
        self.repaint()

    def lines(self, width: int, height: int) -> list[list[Span]]:
        """One line."""
        return [machine_line(self.state, width, self.glyphs)]
