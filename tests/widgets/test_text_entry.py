"""The entry for text: keys are text there, pasted lines stay lines, and the cursor is in view."""

from __future__ import annotations

from typing import Any

import pytest
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical

from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_table import RecordTable
from hfbench.widgets.text_entry import MOST_ROWS, TextEntry


class Pair(Vertical):
    """An entry, and the table that gets the keys back."""

    def compose(self) -> ComposeResult:
        yield TextEntry(back="RecordTable", hint="say something")
        yield RecordTable((Column("a", "A"),))


@pytest.fixture
def entry_of() -> Any:
    return lambda pilot: pilot.app.query_one(TextEntry)


async def test_every_printable_key_is_text(stage: Any, entry_of: Any) -> None:
    async with stage(Pair()) as pilot:
        entry = entry_of(pilot)
        entry.focus()
        await pilot.press(*"q?:;/[1B", "space", "é")
        assert entry.text == "q?:;/[1B é"
        assert pilot.app.is_running
        assert len(pilot.app.heard_of(TextEntry.Changed)) >= 1
        for key in ("slash", "question_mark", "q", "colon", "left_square_bracket", "minus"):
            assert key not in pilot.app.screen.active_bindings
        assert "escape" in pilot.app.screen.active_bindings


async def test_keys_edit_and_undo(stage: Any, entry_of: Any) -> None:
    async with stage(Pair()) as pilot:
        entry = entry_of(pilot)
        entry.focus()
        await pilot.press(*"one two", "ctrl+w", "left", "backspace", "home", "delete", "X", "end", "enter", "z")
        assert entry.text == "Xn \nz"
        await pilot.press("up", "ctrl+u")
        assert entry.text == "n \nz"
        await pilot.press("ctrl+z")
        assert entry.text == "Xn \nz"
        await pilot.press("ctrl+k", "ctrl+left", "ctrl+right", "ctrl+a", "ctrl+e")
        assert (entry.buffer.row, entry.buffer.column) == (0, 1)


async def test_pasted_lines_stay_lines(stage: Any, entry_of: Any) -> None:
    async with stage(Pair()) as pilot:
        entry = entry_of(pilot)
        entry.focus()
        await pilot.pause()
        pilot.app.post_message(events.Paste("a\tb\r\nc\rd\n\x1b[2J"))
        await pilot.pause()
        assert entry.text == "a\tb\nc\nd\n\x1b[2J"
        await pilot.pause()
        assert entry.size.height == MOST_ROWS
        assert [line.rstrip() for line in pilot.app.picture()[:3]] == ["c", "d", "\\x1b[2J"]


async def test_escape_and_down_on_the_last_line_give_the_keys_back_at_once(stage: Any, entry_of: Any) -> None:
    async with stage(Pair()) as pilot:
        entry, table = entry_of(pilot), pilot.app.query_one(RecordTable)
        for key in ("escape", "down"):
            entry.focus()
            await pilot.press("a", key, "b")
            assert pilot.app.focused is table
        assert entry.text == "aa"
        assert len(pilot.app.heard_of(TextEntry.Left)) == 2


@pytest.mark.parametrize("unit", ["x", "漢", "e\u0301", "\x1b"], ids=["plain", "wide", "combining", "escaped"])
async def test_the_cursor_is_in_view_wherever_it_goes(stage: Any, entry_of: Any, unit: str) -> None:
    async with stage(Pair(), size=(40, 10)) as pilot:
        entry = entry_of(pilot)
        entry.focus()
        entry.show(f"begin {unit * 300} end")
        await pilot.pause()
        assert "end" in pilot.app.picture()[0]
        await pilot.press("home")
        assert pilot.app.picture()[0].startswith("begin")
        for _ in range(60):
            await pilot.press("right")
            [line] = entry.lines(entry.size.width, 1)
            cursor = [text for text, style in line if style == "cursor"]
            assert len(cursor) == 1
            assert sum(map(len, (text for text, _ in line))) >= 1


async def test_the_hint_shows_while_there_is_no_text(stage: Any, entry_of: Any) -> None:
    async with stage(Pair()) as pilot:
        pilot.app.query_one(RecordTable).focus()
        await pilot.pause()
        assert pilot.app.picture()[0].startswith("say something")
        entry_of(pilot).focus()
        await pilot.press("a", "escape")
        await pilot.pause()
        assert pilot.app.picture()[0].rstrip() == "a"


async def test_a_click_moves_the_cursor(stage: Any, entry_of: Any) -> None:
    async with stage(Pair()) as pilot:
        entry = entry_of(pilot)
        entry.show("漢字ab")
        await pilot.pause()
        await pilot.click(TextEntry, offset=(4, 0))
        assert entry.buffer.column == 2
