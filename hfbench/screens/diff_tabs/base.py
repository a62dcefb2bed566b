"""What the tabs of a comparison share."""

from __future__ import annotations

from typing import ClassVar

from textual.containers import Vertical
from textual.widget import Widget

from hfbench.screens.diff_view import DiffView
from hfbench.widgets.see_through import SeeThrough


class DiffTab(SeeThrough, Vertical):
    """One tab. It shows views and keeps nothing else of the comparison."""

    title: ClassVar[str]
    section: ClassVar[str]
    """The part of the result whose differences are counted beside the title; empty for none."""
    keys_to: ClassVar[type[Widget]]
    """The widget that wants the keys most."""
    filters: ClassVar[bool] = True
    """Whether `/` does something here."""

    DEFAULT_CSS = "DiffTab { height: 1fr; }"

    @property
    def at_rest(self) -> bool:
        """False while the tab is still at work on what it shows."""
        return True

    def show(self, view: DiffView) -> None:
        """Show what is known now."""
        raise NotImplementedError

    def copied(self) -> str:
        """What is under the cursor, empty when there is nothing."""
        return ""

    def take_focus(self) -> None:
        """Give the keys to the widget that wants them most."""
        self.screen.set_focus(self.query_one(self.keys_to))
