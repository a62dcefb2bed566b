"""Work that nobody would see is left out: styles that no focus changes, blanks behind other widgets, the same text."""

from __future__ import annotations

from typing import Any

import pytest
from textual.containers import Vertical
from textual.css.stylesheet import Stylesheet
from textual.widgets import Static

from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.facts_table import FactsTable
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import Record
from hfbench.widgets.record_table import RecordTable
from hfbench.widgets.see_through import SeeThrough


@pytest.fixture
def styled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every node whose styles are looked up."""
    nodes: list[Any] = []
    apply = Stylesheet.apply

    def noted(self: Stylesheet, node: Any, **more: Any) -> None:
        nodes.append(node)
        apply(self, node, **more)

    monkeypatch.setattr(Stylesheet, "apply", noted)
    return nodes


def table(id: str) -> RecordTable:
    made = RecordTable((Column("name", "Name"),), id=id)
    made.show([Record(f"{id}{number}", {"name": f"{id}{number}"}) for number in range(3)])
    return made


def background(pilot: Any, x: int, y: int) -> Any:
    """The colour behind a cell, as it is painted."""
    [part, *_] = pilot.app.screen._compositor.render_strips()[y].crop(x, x + 1)
    return part.style.bgcolor


async def test_a_table_shows_that_it_has_the_keys_and_looks_up_no_style_for_it(stage: Any, styled: list[Any]) -> None:
    first, second = table("a"), table("b")
    first.styles.height = second.styles.height = 6
    async with stage(first, second) as pilot:
        line_of_second = second.region.y + 1
        without = background(pilot, 4, line_of_second)
        for _ in range(2):  # styles of a line are looked up when it is first painted
            await pilot.press("tab")
            await pilot.pause()
        assert pilot.app.focused is first
        styled.clear()
        await pilot.press("tab")
        await pilot.pause()
        assert pilot.app.focused is second
        assert second.has_focus
        assert not first.has_focus
        assert not styled
        assert background(pilot, 4, line_of_second) != without
        assert background(pilot, 4, first.region.y + 1) == without


async def test_a_container_that_paints_nothing_lets_the_screen_be_seen(stage: Any) -> None:
    class Unseen(SeeThrough, Vertical):
        DEFAULT_CSS = "Unseen { height: 6; }"

    async with stage(Unseen(Static("inside")), Static("below")) as pilot:
        lines = pilot.app.picture()
        assert [line.rstrip() for line in lines[:7]] == ["inside", "", "", "", "", "", "below"]
        assert {len(line) for line in lines} == {80}
        assert background(pilot, 40, 3) == background(pilot, 40, 20)


async def test_the_same_facts_again_lay_nothing_out(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[bool] = []
    refresh = FactsTable.refresh

    def noted(self: FactsTable, *regions: Any, layout: bool = False, **more: Any) -> FactsTable:
        told.append(layout)
        return refresh(self, *regions, layout=layout, **more)

    monkeypatch.setattr(FactsTable, "refresh", noted)
    facts, laid = FactsTable(), list[bool]()
    async with stage(facts) as pilot:
        for shown in (["1"], ["1"], ["2"], ["2", "3"]):
            told.clear()
            facts.show([Fact(f"fact {number}", value) for number, value in enumerate(shown)])
            await pilot.pause()
            laid.append(any(told))
        assert laid == [True, False, False, True]  # new, the same, another value on as many lines, a line more
        assert "fact 1  3" in pilot.app.picture()[1]
