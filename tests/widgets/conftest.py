"""A one-widget application, and what of it is on the screen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from parsed_once import style_sheets_parsed_once  # noqa: F401 - every test here has them
from settled import deterministic_pauses  # noqa: F401 - every test here has these pauses
from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.message import Message
from textual.pilot import Pilot
from textual.widget import Widget

from hfbench.paths import packaged_themes
from hfbench.theming import DEFAULT_THEME, load_themes
from hfbench.widgets.glyphs import glyphs


class Bench(App[None]):
    """Shows the widgets given and keeps every message they post."""

    BINDINGS = [Binding("question_mark", "help", "help", show=False), Binding("q", "quit", "quit", show=False)]

    def __init__(self, *shown: Widget, theme: str = DEFAULT_THEME, ascii: bool = False) -> None:
        super().__init__()
        self.shown = shown
        self.glyphs = glyphs(ascii)
        self.heard: list[Message] = []
        for loaded in load_themes([packaged_themes()]).loaded.values():
            self.register_theme(loaded)
        self.theme = theme

    def compose(self) -> ComposeResult:
        yield from self.shown

    def heard_of(self, kind: type[Message]) -> list[Message]:
        return [message for message in self.heard if isinstance(message, kind)]

    def picture(self) -> list[str]:
        """The text of every line on the screen."""
        return [strip.text for strip in self.screen._compositor.render_strips()]

    def hear(self, message: Message) -> None:
        if all(message is not other for other in self.heard):  # it passes every node on its way up
            self.heard.append(message)


Stage = Callable[..., AbstractAsyncContextManager[Pilot[None]]]


@pytest.fixture
def stage() -> Stage:
    """Run a Bench with widgets at a size; the first one that can has the focus."""

    @asynccontextmanager
    async def run(
        *shown: Widget, size: tuple[int, int] = (80, 24), theme: str = DEFAULT_THEME, ascii: bool = False
    ) -> AsyncIterator[Pilot[None]]:
        app = Bench(*shown, theme=theme, ascii=ascii)
        async with app.run_test(size=size, message_hook=app.hear) as pilot:
            await pilot.pause()
            yield pilot

    return run
