"""The same picture in fewer bytes, as a terminal emulator sees it."""

from __future__ import annotations

from typing import Any

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.pen import RESET, PenSaver, selected

COLUMNS, ROWS = 24, 6

numbers = st.integers(0, 255).map(str)
colours = st.one_of(
    st.sampled_from(["30", "37", "39", "40", "47", "49", "90", "97", "100", "107"]),
    st.builds("{};5;{}".format, st.sampled_from(["38", "48"]), numbers),
    st.builds("{};2;{};{};{}".format, st.sampled_from(["38", "48"]), numbers, numbers, numbers),
)
known = st.lists(st.one_of(colours, st.sampled_from(["", "0", "1", "3", "4", "7", "9"])), max_size=4).map(";".join)
strange = st.sampled_from(["22", "27", "1;24", "23;38;5;7", "29"])
"""What switches an attribute off, which nothing here makes: it must be passed on."""
pens = st.one_of(known, known, known, strange).map("\x1b[{}m".format)
moves = st.builds("\x1b[{};{}H".format, st.integers(1, ROWS), st.integers(1, COLUMNS))
texts = st.text("ab █", min_size=1, max_size=4)
erasures = st.sampled_from(["\x1b[2J", "\x1b[K", "\x1b[1J", "\x1b[3X"])
outputs = st.lists(st.lists(st.one_of(pens, pens, moves, texts, erasures), max_size=12).map("".join), max_size=4)


class Emulator:
    """Feeds a terminal of its own."""

    def __init__(self) -> None:
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self.stream = pyte.Stream(self.screen)

    def shown(self, output: str) -> list[Any]:
        """Every cell with its colours and attributes, the cursor, and what it would draw with."""
        self.stream.feed(output)
        cursor = self.screen.cursor
        cells = [self.screen.buffer[y][x] for y in range(ROWS) for x in range(COLUMNS)]
        return [cells, cursor.x, cursor.y, cursor.attrs]


@given(outputs)
def test_a_terminal_shows_the_same_and_draws_on_with_the_same(written: list[str]) -> None:
    plain, saved, saver = Emulator(), Emulator(), PenSaver()
    for each in written:
        assert saved.shown(saver.save(each)) == plain.shown(each)


@given(outputs)
def test_it_is_never_longer_than_a_handful_of_bytes_more(written: list[str]) -> None:
    saver = PenSaver()
    for each in written:
        assert len(saver.save(each)) <= len(each) + len("\x1b[0m") * each.count("\x1b[") + len("\x1b[0m")


def test_spans_on_one_background_say_it_once() -> None:
    on = "48;2;20;23;28"
    line = f"\x1b[5;2H\x1b[37;{on}m ab\x1b[0m\x1b[31;{on}mcd\x1b[0m\n\x1b[6;2H\x1b[31;{on}me\x1b[0m"
    assert PenSaver().save(line) == f"\x1b[5;2H\x1b[37;{on}m ab\x1b[31mcd\n\x1b[6;2He\x1b[0m"


def test_what_is_erased_takes_the_background_that_was_asked_for() -> None:
    assert PenSaver().save("\x1b[41mx\x1b[0m\x1b[2J") == "\x1b[41mx\x1b[0m\x1b[2J"


def test_a_pen_left_on_is_left_on() -> None:
    saver = PenSaver()
    assert saver.save("\x1b[31m") == "\x1b[31m"
    assert saver.save("x\x1b[0m") == "x\x1b[0m"


@pytest.mark.parametrize("parameters", ["38", "38;5", "38;2;1;2", "48;9;1", "58;5;1", "999"])
def test_parameters_that_are_not_known_are_passed_on_and_all_behind_them(parameters: str) -> None:
    output = f"\x1b[{parameters}mx\x1b[31my\x1b[31mz\x1b[0m\x1b[32m\x1b[32ma\x1b[0m"
    assert PenSaver().save(output) == f"\x1b[{parameters}mx\x1b[31my\x1b[31mz\x1b[0m\x1b[32ma\x1b[0m"


def test_an_empty_parameter_is_a_reset() -> None:
    assert selected(selected(RESET, "1;31"), "") == RESET
