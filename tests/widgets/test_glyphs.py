"""Signs and bars, in block characters and in ASCII."""

from __future__ import annotations

from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.widgets.cells import spans_width, width_of
from hfbench.widgets.glyphs import ASCII, UNICODE, Glyphs, glyphs, glyphs_of
from hfbench.widgets.help import Help
from hfbench.widgets.help_lines import help_lines


def test_ascii_is_ascii_and_both_have_the_same_widths() -> None:
    assert "".join(astuple(ASCII)).isascii()
    assert len(ASCII.levels) == len(UNICODE.levels) == 9
    for ours, theirs in zip(astuple(ASCII), astuple(UNICODE), strict=True):
        assert width_of(ours) == width_of(theirs) or ours == ASCII.ellipsis


def test_every_state_that_has_a_colour_has_a_sign() -> None:
    signs = [UNICODE.sign(state) for state in ("ok", "warn", "error", "unknown")]
    assert signs == ["ok", "!", "x", "~"]
    assert UNICODE.sign("") == UNICODE.sign("muted") == ""


@given(st.floats(), st.integers(2, 40))
def test_a_bar_is_as_wide_as_asked_and_full_only_when_done(fraction: float, width: int) -> None:
    bar = ASCII.bar(fraction, width)
    assert len(bar) == width
    assert (bar == "#" * width) == (fraction >= 1)
    assert (bar == "." * width) == (not fraction > 0)


def test_an_app_that_decided_nothing_gets_block_characters() -> None:
    class Decided:
        glyphs: Glyphs = glyphs(ascii=True)

    assert glyphs_of(Decided()) is ASCII
    assert glyphs_of(object()) is UNICODE


@pytest.mark.parametrize("width", [16, 30, 54])
def test_help_fits_its_width_and_marks_keys(width: int) -> None:
    keys = [("up k", "Up", "here"), ("enter", "open what the cursor is on", "here"), ("q", "quit", "everywhere")]
    lines = help_lines(Help("Table", "`/` filters, `enter` opens.\nA second line."), keys, width)
    assert all(spans_width(line) <= width for line in lines)
    assert ("/", "key") in lines[1]
    text = ["".join(part for part, _ in line) for line in lines]
    assert [line for line in text if line.startswith("Keys")] == ["Keys here", "Keys everywhere"]
