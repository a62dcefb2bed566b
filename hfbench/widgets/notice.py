"""One sentence where something is missing or wrong: what was found, where, and what to do."""

from __future__ import annotations

from textual.widgets import Static

from hfbench.errors import HfbenchError
from hfbench.pages import read_command
from hfbench.text import printable
from hfbench.widgets.cells import Span
from hfbench.widgets.facts_table import content_of
from hfbench.widgets.glyphs import State, glyphs_of


def notice_lines(found: str, where: str, remedy: str, sign: str, state: State) -> list[list[Span]]:
    """The sentence with its sign; the remedy stands on a line of its own."""
    place = f"{printable(where)}: " if where else ""
    head: list[Span] = [(f"{sign} ", state)] if sign else []
    lines = [[*head, (place, "muted"), (printable(found).rstrip("."), "" if sign else state)]]
    if remedy:
        lines.append([(" " * len(f"{sign} ") if sign else "", ""), (printable(remedy).rstrip("."), "muted")])
    return lines


class Notice(Static):
    """An error, a warning or an empty state. Hidden while it has nothing to say."""

    DEFAULT_CSS = "Notice { height: auto; width: 1fr; display: none; }"

    def __init__(
        self, found: str = "", *, where: str = "", remedy: str = "", state: State = "muted", id: str | None = None
    ) -> None:
        super().__init__(id=id)
        self.found, self.where, self.remedy, self.state = found, where, remedy, state
        self._said: tuple[str, ...] | None = None

    def show(self, found: str, *, where: str = "", remedy: str = "", state: State = "error") -> None:
        """Say this."""
        self.found, self.where, self.remedy, self.state = found, where, remedy, state
        self._say()

    def show_error(self, error: HfbenchError, *, keys: str = "") -> None:
        """Say what an error says, in its parts, which page tells more, and which keys of the screen help."""
        more = read_command(error.page) if error.page else ""
        remedy = " · ".join(filter(None, (error.remedy, more, keys)))
        self.show(error.found, where=error.where, remedy=remedy, state="error")

    def clear(self) -> None:
        """Say nothing and take no room."""
        self.show("", state="muted")

    def on_mount(self) -> None:
        """Say what was given before."""
        self._say()

    def _say(self) -> None:
        saying = (self.found, self.where, self.remedy, self.state)
        if not self.is_attached or saying == self._said:
            return
        self._said = saying
        self.display = bool(self.found)
        sign = glyphs_of(self.app).sign(self.state)
        self.update(content_of(notice_lines(self.found, self.where, self.remedy, sign, self.state)))
