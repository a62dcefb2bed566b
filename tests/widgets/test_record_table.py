"""The record table on a screen."""

from __future__ import annotations

import re

import pytest

from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import Record
from hfbench.widgets.record_table import RecordTable

COLUMNS = (
    Column("name", "Name", flexible=True, min=14),
    Column("type", "Type", priority=2),
    Column("params", "Params", align="right", priority=3),
    Column("size", "Size", align="right"),
    Column("state", "State", priority=1, flexible=True),
)


def record(number: int, state: str = "ok") -> Record:
    return Record(
        f"key-{number}",
        {
            "name": f"model-with-a-rather-long-name-{number:05}",
            "type": "llama",
            "params": f"{number}M",
            "size": f"{1000 + number % 9000}.5 MiB",
            "state": state,
        },
        {"state": "ok" if state == "ok" else "error"},
        {"params": number},
    )


@pytest.mark.parametrize("width", [*range(40, 60, 3), 80, 120, 200])
async def test_no_number_is_cut_at_any_width(stage, width) -> None:
    table = RecordTable(COLUMNS)
    table.show([record(number) for number in range(30)])
    async with stage(table, size=(width, 10)) as pilot:
        for line in pilot.app.picture()[1:]:
            assert re.search(r" \d{4}\.5 MiB\b", line)
            assert len(line) == width


async def test_the_cursor_stays_with_its_row_when_records_change(stage) -> None:
    table = RecordTable(COLUMNS)
    async with stage(table) as pilot:
        table.show([record(number) for number in range(5)])
        await pilot.press("down", "down")
        assert table.current == "key-2"
        table.show([record(number) for number in (9, 8, 7, 2, 1)])
        assert (table.current, table.cursor) == ("key-2", 3)
        table.show([record(1)])
        assert table.current == "key-1"
        table.show([])
        assert table.current is None
        await pilot.press("enter", "down", "end", "home", "pagedown")
        assert pilot.app.heard_of(RecordTable.Chosen) == []


async def test_it_tells_which_row_is_under_the_cursor_once(stage) -> None:
    table = RecordTable(COLUMNS)
    table.show([record(number) for number in range(3)])
    async with stage(table) as pilot:
        await pilot.press("down", "up", "up")
        table.show([record(number) for number in range(3)])
        await pilot.press("enter")
        await pilot.pause()
        assert [m.key for m in pilot.app.heard_of(RecordTable.Highlighted)] == ["key-0", "key-1", "key-0"]
        assert [m.key for m in pilot.app.heard_of(RecordTable.Chosen)] == ["key-0"]


async def test_an_empty_table_says_what_to_press(stage) -> None:
    table = RecordTable(COLUMNS, empty="no models yet; press s to search the Hub")
    async with stage(table) as pilot:
        assert "press s to search the Hub" in pilot.app.picture()[2]
        table.show([record(1)])
        table.filter = "qwen"
        await pilot.pause()
        assert "no row matches the filter" in pilot.app.picture()[2]


async def test_the_order_shows_in_the_header(stage) -> None:
    table = RecordTable(COLUMNS, sort="params", descending=True)
    table.show([record(number) for number in (3, 30, 4)])
    async with stage(table) as pilot:
        assert "Params▼" in pilot.app.picture()[0]
        assert ["30M" in pilot.app.picture()[1], " 4M" in pilot.app.picture()[2], " 3M" in pilot.app.picture()[3]] == [
            True
        ] * 3
        table.sort_by(None)
        await pilot.pause()
        assert "▼" not in pilot.app.picture()[0]


async def test_ten_thousand_rows_and_a_row_found_by_key(stage) -> None:
    table = RecordTable(COLUMNS)
    async with stage(table) as pilot:
        table.show([record(number) for number in range(10_000)])
        assert table.move_to("key-9000")
        await pilot.pause()
        assert any(line.startswith(">") and "09000" in line for line in pilot.app.picture())
        assert not table.move_to("absent")
        table.filter = "09000"
        await pilot.pause()
        assert (table.shown, table.total, table.current) == (1, 10_000, "key-9000")
