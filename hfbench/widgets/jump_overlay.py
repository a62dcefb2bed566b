"""Jump mode: a letter on every region that takes keys; pressing it goes there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.events import Key
from textual.geometry import Offset
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from textual.widgets import Label

from hfbench.widgets.jump_targets import assign_letters


@dataclass(frozen=True, slots=True)
class JumpTarget:
    """A region, its letter, and where the letter is shown on the screen."""

    letter: str
    widget: Widget
    at: Offset


def jump_targets(screen: Screen[object]) -> list[JumpTarget]:
    """Regions that are visible and take keys, from the top left; `jump_key` of a widget is its wish."""
    regions = [
        (widget, region)
        for widget in screen.focus_chain
        if (region := widget.region.intersection(screen.region)) and widget.display
    ]
    regions.sort(key=lambda entry: (entry[1].y, entry[1].x))
    letters = assign_letters([str(getattr(widget, "jump_key", "")) for widget, _ in regions])
    return [
        JumpTarget(letter, widget, region.offset)
        for letter, (widget, region) in zip(letters, regions, strict=True)
        if letter
    ]


class JumpOverlay(ModalScreen[Widget | None]):
    """Shows the letters over the screen below; answers with the widget chosen, or None."""

    DEFAULT_CSS = """
    JumpOverlay {
        background: transparent; layers: letters;
        & > Label {
            layer: letters; position: absolute; width: 3; height: 1; text-align: center; text-style: bold;
            background: $block-cursor-background; color: $block-cursor-foreground;
        }
    }
    """

    BINDINGS = [Binding("escape", "leave", "leave")]

    def __init__(self, targets: list[JumpTarget]) -> None:
        super().__init__()
        self.targets = {target.letter: target for target in targets}

    def compose(self) -> ComposeResult:
        """One label a target, at its corner."""
        for target in self.targets.values():
            label = Label(f" {target.letter} ")
            label.styles.offset = (target.at.x, target.at.y)
            yield label

    def on_key(self, event: Key) -> None:
        """A letter goes to its region; any other key leaves."""
        event.stop()
        target = self.targets.get(event.key)
        self.dismiss(target.widget if target else None)

    def action_leave(self) -> None:
        """Leave without moving."""
        self.dismiss(None)


def start_jump(app: App[Any]) -> None:
    """Enter jump mode on the screen in front; with nothing to jump to nothing happens."""
    targets = jump_targets(app.screen)

    def go(widget: Widget | None) -> None:
        if widget is not None and widget.is_attached:
            app.screen.set_focus(widget)

    if targets:
        app.push_screen(JumpOverlay(targets), go)
