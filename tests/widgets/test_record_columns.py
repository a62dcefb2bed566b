"""Columns at a width: numbers whole or absent, text shrinking before anything that matters is dropped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.widgets.record_columns import GAP, Column, lay_out

MODELS = (
    Column("name", "Name", flexible=True, min=16),
    Column("type", "Type", priority=2, flexible=True),
    Column("params", "Params", align="right", priority=3),
    Column("size", "Size", align="right"),
    Column("state", "State", priority=1, flexible=True),
)
WANTED = (40, 9, 5, 9, 20)


def keys(width: int) -> list[str]:
    return [placed.column.key for placed in lay_out(MODELS, WANTED, width)]


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (120, ["name", "type", "params", "size", "state"]),
        (78, ["name", "type", "params", "size", "state"]),
        (47, ["name", "type", "size", "state"]),
        (38, ["name", "size", "state"]),
        (30, ["name", "size"]),
        (20, ["name", "size"]),
        (12, ["name"]),
        (3, ["name"]),
        (0, []),
    ],
)
def test_columns_go_by_priority_and_the_last_text_is_cut(width: int, shown: list[str]) -> None:
    assert keys(width) == shown


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Column], list[int]]:
    count = draw(st.integers(1, 7))
    columns = [
        Column(
            f"c{number}",
            draw(st.sampled_from(["", "Name", "A long title"])),
            priority=draw(st.integers(0, 4)),
            flexible=draw(st.booleans()),
            min=draw(st.integers(0, 20)),
            max=draw(st.integers(0, 60)),
        )
        for number in range(count)
    ]
    return columns, draw(st.lists(st.integers(0, 60), min_size=count, max_size=count))


@given(tables(), st.integers(0, 200))
def test_no_rigid_column_is_ever_narrower_than_its_content(table: tuple[list[Column], list[int]], width: int) -> None:
    columns, wanted = table
    placed = lay_out(columns, wanted, width)
    needs = {column.key: want for column, want in zip(columns, wanted, strict=True)}
    assert sum(place.width for place in placed) + GAP * max(0, len(placed) - 1) <= width
    assert all(place.width >= needs[place.column.key] for place in placed if not place.column.flexible)
    assert [place.column for place in placed] == [c for c in columns if c in [place.column for place in placed]]


@given(tables(), st.integers(40, 200))
def test_a_wider_table_never_shows_less_of_importance(table: tuple[list[Column], list[int]], width: int) -> None:
    """A column is not dropped while a less important one is shown."""
    columns, wanted = table
    shown = {place.column.key for place in lay_out(columns, wanted, width)}
    dropped = [column.priority for column in columns if column.key not in shown]
    kept = [column.priority for column in columns if column.key in shown]
    assert not dropped or not kept or max(kept) <= min(dropped)
