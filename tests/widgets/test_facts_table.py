"""A table of facts is as tall as its lines, whatever met which layout."""

from __future__ import annotations

from textual.app import App, ComposeResult

from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.facts_table import FactsTable


class Shown(App[None]):
    def compose(self) -> ComposeResult:
        yield FactsTable()


async def test_two_changes_around_one_layout_leave_the_height_of_the_second() -> None:
    async with Shown().run_test(size=(60, 10)) as pilot:
        table = pilot.app.query_one(FactsTable)
        table.show([Fact("a", "1"), Fact("b", "2"), Fact("c", "3")])
        pilot.app.screen._refresh_layout()  # as it may happen before the table's own request for one is dealt with
        table.show([Fact("a", "1")])
        await pilot.pause()
        assert table.size.height == 1
        table.show([])
        await pilot.pause()
        assert table.size.height == 0
