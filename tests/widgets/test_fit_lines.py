"""The painted lines of a fit: keys with their settings, and the grid."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hfbench.actions.fit_text import cell_text, context_label, gib, verdict
from hfbench.estimate.facts import FitCell, FitReport
from hfbench.units import GIB, TIB
from hfbench.widgets.cells import spans_width
from hfbench.widgets.fit_lines import Knob, grid_spans, knob_lines
from hfbench.widgets.glyphs import ASCII, UNICODE

KNOBS = [Knob("d", "dtype", "as stored"), Knob("k", "kv", "fp8"), Knob("g", "gpu", "RTX PRO 6000 Blackwell 96GB")]


def cell(context: int, batch: int, total: float, limiting: str | None = None) -> FitCell:
    return FitCell(context=context, batch=batch, total_bytes=int(total), fits=limiting is None, limiting=limiting)


@pytest.fixture
def report() -> FitReport:
    grid = (
        (cell(4096, 1, 17.2 * GIB), cell(4096, 4, 322 * GIB, "kv_cache")),
        (cell(262144, 1, 99.4 * GIB, "weights"), cell(262144, 4, 1.21 * TIB, "weights")),
    )
    return FitReport(
        model="m", folder="/m", source="headers", parameters=1, tensors=1, weight_bytes=1, kv_bytes_per_token=1,
        kv_bytes_of_next_token=1, cache=(), terms={}, formulas={}, total_bytes=1, device=None, fits=None, limiting=None,
        largest_context=None, largest_batch=None, context=4096, context_limit=131072, batch=1, dtype="bfloat16",
        kv_dtype="fp8", tp=1, pp=1, ep=1, runtime="vllm", allowed={}, grid=grid, guesses=(), warnings=(), failed=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0.00"), (0.52 * GIB, "0.52"), (9.996 * GIB, "10.0"), (17.24 * GIB, "17.2"), (99.96 * GIB, "100"),
        (999.4 * GIB, "999"), (1000 * GIB, "1.0T"), (9.96 * TIB, "10T"), (999 * TIB, "999T"), (2**60, ">1P"),
    ],
)  # fmt: skip
def test_a_size_takes_four_letters_at_most(size: float, text: str) -> None:
    assert gib(size) == text
    assert len(gib(size)) <= 4


@pytest.mark.parametrize(
    ("context", "limit", "label"),
    [
        (4096, 8192, "4k"),
        (131072, 131072, "128k"),
        (131073, 131072, "131073!"),
        (2**20, None, "1M"),
        (300, 512, "300"),
        (2**20 - 1, 4, "1.0M!"),
        (2**30 - 1, 4, "1024M!"),
    ],
)
def test_a_context_is_named_shortly_and_marked_beyond_the_limit(context: int, limit: int | None, label: str) -> None:
    assert context_label(context, limit) == label


def test_keys_stand_beside_what_they_turn_and_no_line_is_too_long() -> None:
    for width in (20, 40, 78, 118):
        lines = knob_lines(KNOBS, width, ASCII)
        assert all(spans_width(line) <= width for line in lines)
        said = " ".join("".join(text for text, _ in line) for line in lines)
        assert "d dtype as stored" in said
        assert "k kv fp8" in said
    assert len(knob_lines(KNOBS, 118, UNICODE)) == 1
    assert [(text, style) for text, style in knob_lines(KNOBS, 78, ASCII)[0] if style == "key"] == [
        ("d", "key"), ("k", "key"), ("g", "key")
    ]  # fmt: skip


def test_the_grid_marks_its_cell_and_says_what_does_not_fit(report: FitReport) -> None:
    lines = grid_spans(report, (4096, 4), focused=True, stale=False, width=78, glyphs=ASCII)
    texts = ["".join(text for text, _ in line) for line in lines]
    assert texts[1].split() == ["batch", "1", "4"]
    assert texts[2].split() == ["4k", "ok", "17.2", ">x", "322", "kv"]
    assert texts[3].split() == ["256k!", "x", "99.4", "weight", "x", "1.2T", "weight"]
    assert [text for line in lines for text, style in line if style == "cursor"] == [">x 322 kv"]
    assert ("256k!   ", "warn") in lines[3]
    assert all(spans_width(line) <= 78 for line in lines)


@pytest.mark.parametrize("marked", [(4096, 1), (4096, 4), (262144, 1), (262144, 4), (None, 1)])
def test_the_sign_of_the_cursor_takes_no_room(report: FitReport, marked: tuple[int | None, int]) -> None:
    signed = grid_spans(report, marked, focused=True, stale=False, width=78, glyphs=ASCII)
    plain = grid_spans(report, (1, 1), focused=True, stale=False, width=78, glyphs=ASCII)
    texts, without = (["".join(text for text, _ in line) for line in each] for each in (signed, plain))
    assert sum(text.count(">") for text in texts) == 1
    assert [text.replace(">", " ") for text in texts] == without


def test_a_grid_of_what_was_asked_before_says_so(report: FitReport) -> None:
    lines = grid_spans(report, (8192, 1), focused=False, stale=True, width=78, glyphs=ASCII)
    assert "counting ..." in lines[0][0][0]
    assert {style for line in lines[2:] for _, style in line} <= {"muted", "warn", ""}


def test_nothing_known_is_no_grid(report: FitReport) -> None:
    assert grid_spans(replace(report, grid=()), (None, 1), focused=True, stale=False, width=78, glyphs=ASCII) == []


def test_every_term_has_a_short_name_in_a_cell() -> None:
    from hfbench.estimate.fit import FORMULAS

    for term in FORMULAS:
        assert len(cell_text(cell(1, 1, 5.5 * TIB, term))) < 14


def test_without_a_gpu_there_is_no_verdict(report: FitReport) -> None:
    assert verdict(report) == ("~", "no GPU to fit it to")
