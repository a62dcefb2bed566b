"""The lines around every screen: breadcrumb, keys, machine, progress. They fit, and cut no digit."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.widgets.breadcrumb_text import breadcrumb
from hfbench.widgets.cells import Span, spans_width
from hfbench.widgets.glyphs import ASCII, UNICODE
from hfbench.widgets.key_fit import HELP, QUIT, Key, fit_keys
from hfbench.widgets.machine_text import GpuLoad, StripState, machine_line
from hfbench.widgets.progress_text import Phase, phases_line

GIB = 2**30
BUSY = GpuLoad(0, "H200", 61 * GIB, 141 * GIB, 97.0, 64.0, 512.0)
IDLE = GpuLoad(1, "H200", 0, 141 * GIB, 0.0, 31.0, 80.0)


def joined(spans: list[Span]) -> str:
    return "".join(text for text, _ in spans)


def test_the_breadcrumb_says_where_and_on_what() -> None:
    line = joined(breadcrumb(("Models", "my-model", "Overview"), ("lab-3", "2x H200", "1 job"), 80, UNICODE))
    assert line.startswith("hfbench  Models > my-model > Overview   ")
    assert line.endswith("   lab-3 · 2x H200 · 1 job")
    assert len(line) == 80


def test_a_narrow_breadcrumb_keeps_the_last_step_longest() -> None:
    trail = ("Models", "a-very-long-model-name-v3", "Tensors")
    assert joined(breadcrumb(trail, ("lab-3",), 40, UNICODE)).rstrip().endswith("> Tensors")
    assert joined(breadcrumb(trail, ("lab-3",), 12, UNICODE)).strip() == "Tensors"


@given(st.lists(st.text(max_size=30), max_size=4), st.lists(st.text(max_size=20), max_size=3), st.integers(0, 130))
def test_the_breadcrumb_is_never_wider(trail: list[str], status: list[str], width: int) -> None:
    spans = breadcrumb(trail, status, width, ASCII)
    assert spans_width(spans) <= width
    assert "\x1b" not in joined(spans)


def test_help_and_quit_stay_at_the_end() -> None:
    keys = [Key("enter", "open"), Key("g", "group"), Key("o", "order"), Key("b", "biggest")]
    assert fit_keys(keys, 80) == [*keys, HELP, QUIT]
    assert fit_keys([], 14) == [HELP, QUIT]


def test_where_keys_are_left_out_help_says_that_there_are_more() -> None:
    keys = [Key("enter", "open"), Key("g", "group"), Key("o", "order"), Key("b", "biggest")]
    more = Key("?", "more")
    assert fit_keys(keys, 40) == [keys[0], keys[1], more, QUIT]
    assert fit_keys(keys, 14) == [more, QUIT]
    assert fit_keys(keys, 7) == [more]
    assert fit_keys(keys, 3) == []


@given(st.lists(st.builds(Key, st.text(max_size=5), st.text(max_size=12)), max_size=12), st.integers(14, 200))
def test_keys_are_whole_and_fit(keys: list[Key], width: int) -> None:
    shown = fit_keys(keys, width)
    assert sum(key.width for key in shown) + 2 * (len(shown) - 1) <= width
    wanted = [key for key in keys if key not in (HELP, QUIT)]
    help = HELP if len(wanted) == len(shown) - 2 else Key("?", "more")
    assert shown[-2:] == [help, QUIT]
    assert set(shown) <= {*keys, help, QUIT}


def test_the_strip_shows_two_cards_with_all_their_numbers_in_80_cells() -> None:
    line = joined(machine_line(StripState((BUSY, IDLE), latest="tpot 8.1 ms"), 80, ASCII))
    assert line.startswith("0 H200 61/141G 97% 64C 512W | 1 H200 0/141G idle 31C 80W  ")
    assert line.endswith("  tpot 8.1 ms")
    assert len(line) == 80


def test_eight_cards_fit_80_cells() -> None:
    cards = tuple(GpuLoad(index, "H200", 61 * GIB, 141 * GIB, 100.0, 64.0, 512.0) for index in range(8))
    line = joined(machine_line(StripState(cards, latest="tpot 8.1 ms"), 80, UNICODE))
    assert len(line) <= 80
    assert re.findall(r"(\d) 100%", line) == list("01234567")


def test_no_card_says_why_and_what_there_is() -> None:
    state = StripState(reason="no GPU: NVML library not found", host="cpu 2 cores 23 GiB")
    assert joined(machine_line(state, 60, UNICODE)).rstrip() == "no GPU: NVML library not found · cpu 2 cores 23 GiB"
    assert joined(machine_line(state, 20, UNICODE)) == "no GPU: NVML librar…"


def test_a_lost_card_and_missing_numbers_are_words_not_zeros() -> None:
    cards = (GpuLoad(0, "H200", reason="lost"), GpuLoad(1, "GB10"))
    assert joined(machine_line(StripState(cards), 60, ASCII)).rstrip() == "0 H200 x lost | 1 GB10 ~"


LOADS = st.builds(
    GpuLoad,
    st.integers(0, 15),
    st.sampled_from(["H200", "A100-SXM4-80GB", ""]),
    st.none() | st.integers(0, 10**12),
    st.none() | st.integers(0, 10**12),
    st.none() | st.floats(0, 100),
    st.none() | st.floats(0, 120),
    st.none() | st.floats(0, 2000),
    st.sampled_from(["", "", "lost"]),
)


@given(st.lists(LOADS, max_size=16), st.integers(40, 200))
def test_the_strip_fits_and_cuts_no_number(cards: list[GpuLoad], width: int) -> None:
    wide = joined(machine_line(StripState(tuple(cards)), 10_000, ASCII))
    line = joined(machine_line(StripState(tuple(cards)), width, ASCII))
    assert len(line) <= width
    assert set(re.findall(r"\d+%|\d+/\d+G", line)) <= set(re.findall(r"\d+%|\d+/\d+G", wide))


RUNNING = Phase("measure", "running", 0.57, 40)
PHASES = [Phase("verify", "done"), Phase("warm-up", "done"), RUNNING, Phase("report")]


def test_the_progress_line_names_phases_bar_share_and_time() -> None:
    assert joined(phases_line(PHASES, 80, ASCII)) == (
        "verify ok   warm-up ok   measure ###########......... 57%  ~40 s left   report"
    )


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (60, "verify ok   warm-up ok   measure ##.. 57%  ~40 s left"),
        (40, "measure ##.. 57%  ~40 s left"),
        (20, "measure ##.. 57%"),
        (11, "measure 57%"),
        (9, "me... 57%"),
    ],
)
def test_a_narrow_progress_line_loses_everything_but_the_share(width: int, expected: str) -> None:
    assert joined(phases_line(PHASES, width, ASCII)) == expected


@pytest.mark.parametrize("fraction", [-1.0, 0.0, 0.999, 1.0, 7.0, float("nan"), float("inf")])
def test_a_share_outside_its_bounds_stays_inside_them(fraction: float) -> None:
    line = joined(phases_line([Phase("x", "running", fraction, float("inf"))], 60, ASCII))
    shares = [int(share) for share in re.findall(r"(\d+)%", line)]
    assert all(0 <= share <= 100 for share in shares)
    assert (100 in shares) == (fraction >= 1.0)


def test_an_empty_progress_line_is_empty() -> None:
    assert phases_line([], 80, ASCII) == []
