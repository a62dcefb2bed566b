"""Maps as lines: every cell in its place, numbers with bars, and pages where there is no room."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.widgets.cells import spans_width
from hfbench.widgets.glyphs import ASCII, UNICODE, Glyphs
from hfbench.widgets.heat_lines import HeatCell, HeatMap, Window, heat_lines, height_of


def grid(height: int, width: int, **more: object) -> HeatMap:
    cells = tuple(
        tuple(HeatCell(y * width + x + 1, f"{y}.{x}", level=1 + (x + y) % 8) for x in range(width))
        for y in range(height)
    )
    told = {
        "title": "tpot.p50 in ms",
        "x": "batch",
        "y": "prompt",
        "columns": tuple(str(2**x) for x in range(width)),
        "rows": tuple(str(8 * y) for y in range(height)),
        "cells": cells,
    }
    return HeatMap(**(told | more))  # type: ignore[arg-type]


def text(
    map: HeatMap, cursor: tuple[int, int] = (0, 0), width: int = 80, height: int = 20, **more: object
) -> list[str]:
    told = {"focused": True, "glyphs": UNICODE} | more
    marked = told.pop("marked", frozenset())
    return ["".join(t for t, _ in line) for line in heat_lines(map, cursor, marked, width, height, **told)]  # type: ignore[arg-type]


def test_axes_stand_in_the_corner_and_values_over_their_columns() -> None:
    lines = text(grid(2, 3))
    assert lines[0].startswith("tpot.p50 in ms")
    assert lines[1].startswith("prompt \\ batch")
    assert [lines[1].index(str(value)) for value in ("1 ", "2 ")] == sorted(lines[1].index(v) for v in ("1 ", "2 "))
    assert "0.0 ▁▁▁" in lines[2]
    assert "1.2 ▄▄▄" in lines[3]


def test_cursor_mark_and_best_are_signs_and_not_only_colours() -> None:
    map = grid(1, 3, cells=((HeatCell(1, "5", best=True), HeatCell(2, "6"), HeatCell(3, "7")),), rows=("8",))
    line = text(map, (0, 2), marked=frozenset({2}))[2]
    assert "*5" in line
    assert "+6" in line
    assert "> 7" in line
    open_one = grid(1, 2, cells=((HeatCell(1, "5", best=True, undecided=True), HeatCell(2, "6")),), rows=("8",))
    assert "*5?" in text(open_one, (0, 1))[2]


def test_numbers_in_doubt_have_a_sign_and_the_others_keep_its_place_free() -> None:
    row = (HeatCell(1, "5.0", level=1, doubt=True), HeatCell(2, "6.0", level=8))
    line = text(grid(1, 2, cells=(row,), rows=("8",)), (0, 1))[2]
    assert "5.0? ▁" in line
    assert "6.0  █" in line


def test_a_map_too_wide_is_shown_by_pages_that_say_so() -> None:
    map = grid(3, 40)
    first, later = text(map, (0, 0)), text(map, (0, 39))
    page = Window.of(map, (0, 0), 80, 20).columns
    assert f"columns 1-{page} of 40" in first[0]
    assert "of 40" in later[0]
    assert "0.39" in later[2]
    assert "0.39" not in first[2]


def test_a_map_too_high_is_shown_by_pages_that_say_so() -> None:
    lines = text(grid(30, 2), (17, 0), height=12)
    assert len(lines) == 12
    assert "rows 11-20 of 30" in lines[0]
    assert any("17.0" in line for line in lines)


def test_ascii_bars_need_no_block_characters() -> None:
    assert all(line.isascii() for line in text(grid(3, 3), glyphs=ASCII))


@given(
    rows=st.integers(1, 30),
    columns=st.integers(1, 30),
    width=st.integers(48, 140),
    height=st.integers(3, 40),
    glyphs=st.sampled_from([UNICODE, ASCII]),
    data=st.data(),
)
def test_no_line_is_wider_than_the_room_and_the_cursor_is_always_in_view(
    rows: int, columns: int, width: int, height: int, glyphs: Glyphs, data: st.DataObject
) -> None:
    map = grid(rows, columns)
    cursor = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, columns - 1))
    lines = heat_lines(map, cursor, frozenset(), width, height, focused=True, glyphs=glyphs)
    assert len(lines) <= height
    assert len(lines) <= height_of(map)
    assert all(spans_width(line) <= width for line in lines)
    assert any(style == "cursor" for line in lines for _, style in line)


def test_a_cell_is_found_by_its_number() -> None:
    map = grid(2, 3)
    assert map.place(5) == (1, 1)
    assert map.place(99) is None
    assert map.at(5, 0) is None


@pytest.mark.parametrize("label", ["a-very-long-name-of-an-axis-that-goes-on", "x"])
def test_long_values_are_cut_and_numbers_are_not(label: str) -> None:
    map = grid(1, 2, columns=(label, label + "2"), rows=("8",))
    assert "0.1 ▂" in text(map)[2]
