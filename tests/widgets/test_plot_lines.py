"""Plots: nothing breaks them, and no outlier gets lost."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hfbench.widgets.cells import spans_width
from hfbench.widgets.plot_lines import Series, plot

FULL = "█"


def text(series: Series, width: int = 40, height: int = 6, *, ascii: bool = False) -> list[str]:
    return ["".join(part for part, _ in line) for line in plot(series, width, height, ascii=ascii)]


def inked(line: str) -> int:
    return sum(sign in "▘▝▀▖▌▞▛▗▚▐▜▄▙▟█" for sign in line)


@given(
    st.lists(st.floats(width=64), max_size=50),
    st.integers(0, 130),
    st.integers(0, 12),
    st.sampled_from(["", "s", "B", "ms", "tok/s"]),
    st.booleans(),
    st.booleans(),
)
@example([0.0, 0.0], 1, 5, "", False, False)
def test_any_samples_fit_any_size(
    ys: list[float], width: int, height: int, unit: str, ascii: bool, scatter: bool
) -> None:
    lines = plot(Series(ys, [float(x) for x in range(len(ys))], unit, "title", scatter), width, height, ascii=ascii)
    assert len(lines) <= height
    assert all(spans_width(line) <= width for line in lines)
    assert len({style for line in lines for _, style in line if style}) <= 4


def test_no_sample_says_so() -> None:
    assert text(Series(title="tpot")) == ["tpot", "no samples yet"]


def test_samples_without_a_number_say_so() -> None:
    assert text(Series([math.nan, math.inf]))[-1] == "none of 2 samples is a finite number"


def test_lost_samples_are_counted() -> None:
    assert text(Series([1.0, math.nan, 2.0], title="t"))[0] == "t  1 of 3 samples not finite"


def test_one_sample_and_a_constant_draw_a_level_line() -> None:
    assert sum(map(inked, text(Series([5.0])))) == 1
    rows = [line for line in text(Series([5.0] * 400), height=5) if inked(line)]
    assert len(rows) == 1
    assert inked(rows[0]) >= 30


def test_one_outlier_in_a_hundred_thousand_samples_is_seen_at_the_top() -> None:
    ys = [8.0] * 100_000
    ys[77_777] = 16.0
    top, *_, bottom = text(Series(ys, unit="ms"), width=80, height=5)
    assert inked(top) == 1
    assert inked(bottom) > 60
    assert 0.7 < top.index(next(sign for sign in top if sign in "▘▝▀▖▌▞▛▗▚▐▜▄▙▟█")) / 80 < 0.85


@pytest.mark.parametrize(
    ("ys", "unit", "top", "bottom"),
    [
        ([0.0081, 0.0086], "s", "8.60 ms", "8.10 "),
        ([2.0 * 2**30, 3.0 * 2**30], "B", "3.00 GiB", "2.00 "),
        ([120.0, 125.0], "tok/s", "125.0 tok/s", "120.0 "),
        ([-1.0, 1.0], "", "1.0", "-1.0"),
    ],
)
def test_labels_hold_the_unit_and_enough_digits(ys: list[float], unit: str, top: str, bottom: str) -> None:
    lines = text(Series(ys, unit=unit), height=4)
    assert lines[0].strip().startswith(top)
    assert lines[-1].strip().startswith(bottom.strip())


def test_time_stands_below_when_there_is_room() -> None:
    assert text(Series([1.0, 2.0], [10.0, 82.0]), height=6)[-1].split() == ["0", "s", "1", "m", "12", "s"]


def test_ascii_stays_ascii_and_a_repaint_stays_small() -> None:
    series = Series([math.sin(x / 9) for x in range(4000)], unit="s", title="wave")
    assert "".join(text(series, 120, 8, ascii=True)).isascii()
    assert len("\n".join(text(series, 120, 6)).encode()) < 3000
