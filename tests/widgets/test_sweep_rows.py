"""Sweeps and cells as rows and lines: nothing is cut without a sign, and states are words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.commands.sweep import describe
from hfbench.sweeps.model import Axis, CellState, CellView, Figure, SweepSnapshot, SweepState, counted_cells
from hfbench.widgets.cells import spans_width
from hfbench.widgets.glyphs import ASCII, UNICODE
from hfbench.widgets.sweep_rows import cell_lines, cell_record, head_lines


def cell(number: int, state: CellState, **more: object) -> CellView:
    return CellView(number=number, values={"batch": number}, state=state, **more)  # type: ignore[arg-type]


def sweep(*cells: CellView, left_s: float | None = 90.0, left_from: str = "the first 2 cells") -> SweepSnapshot:
    axes = (Axis("batch", tuple(each.number for each in cells)),)
    told = {"left_s": left_s, "left_from": left_from, "axes": axes, "cells": cells}
    return SweepSnapshot(name="s", folder=Path("/s"), state="running", **told)  # type: ignore[arg-type]


BEST = cell(1, "finished", metrics={"tpot.p50": Figure(0.008, "s", "lower")})


def test_counts_name_every_state_there_is() -> None:
    counts = sweep(BEST, cell(2, "failed"), cell(3, "skipped"), cell(4, "running"), cell(5, "queued")).counts()
    assert counted_cells(counts, "running", "s runs them") == "1 finished, 1 running, 1 queued, 1 failed, 1 skipped"


@pytest.mark.parametrize("state", ["stopped", "interrupted"])
def test_nothing_is_queued_in_a_sweep_that_nobody_conducts_and_it_is_told_what_runs_it(state: SweepState) -> None:
    snapshot = replace(sweep(BEST, cell(2, "queued"), cell(3, "queued")), state=state)
    [first, *_] = head_lines(snapshot, BEST, "tpot.p50", 80, UNICODE)
    assert "".join(text for text, _ in first) == "1 finished, 2 not run (s runs them)"
    assert cell_record(cell(2, "queued"), "", False, UNICODE, state).cells["state"] == "not run"
    told = "\n".join(describe(snapshot))
    assert "2 not run (hfbench sweep resume s runs them)" in told
    assert "queued" not in told


def test_a_figure_in_doubt_has_its_sign_and_its_reason_wherever_it_is_told() -> None:
    told = cell(1, "finished", metrics={"tpot.p50": Figure(0.008, "s", "lower", "n=1, busy-machine")})
    assert cell_record(told, "tpot.p50", False, UNICODE).cells["metric"] == "8.00 ms?"
    text = "\n".join("".join(part for part, _ in line) for line in cell_lines(told, ["tpot.p50"], False, 80, UNICODE))
    assert "8.00 ms? n=1, busy-machine" in text
    [_, best] = head_lines(replace(sweep(told), state="finished"), told, "tpot.p50", 80, UNICODE)
    assert "tpot.p50 8.00 ms?" in "".join(part for part, _ in best)


def test_what_is_left_has_a_line_of_its_own_where_the_first_has_no_room() -> None:
    cells = [cell(number, "queued") for number in range(2, 2000)]
    wide = head_lines(sweep(BEST, *cells), BEST, "tpot.p50", 100, UNICODE)
    narrow = head_lines(sweep(BEST, *cells), BEST, "tpot.p50", 40, UNICODE)
    assert len(wide) == 2
    assert len(narrow) == 3
    assert "about 1 m 30 s left" in "".join(text for text, _ in narrow[1])


@given(st.integers(30, 140), st.sampled_from([UNICODE, ASCII]), st.booleans())
def test_no_line_of_the_head_is_wider_than_the_screen(width: int, glyphs: object, known: bool) -> None:
    states: list[CellState] = ["finished", "failed", "skipped", "running", "queued"]
    cells = [cell(number, states[number % 5]) for number in range(2, 900)]
    lines = head_lines(
        sweep(BEST, *cells, left_s=1e6 if known else None),
        BEST,
        "tpot.p50",
        width,
        glyphs,  # type: ignore[arg-type]
    )
    assert all(spans_width(line) <= width for line in lines)


@pytest.mark.parametrize(
    ("state", "more", "word"),
    [
        ("queued", {}, "queued"),
        ("running", {"progress": 0.57}, "! 57%"),
        ("running", {}, "! running"),
        ("finished", {}, "ok finished"),
        ("failed", {"reason": "out of memory"}, "x failed"),
        ("skipped", {"reason": "no compiler"}, "~ skipped"),
    ],
)
def test_each_state_is_a_word_with_its_sign_and_reasons_are_told(state: CellState, more: dict, word: str) -> None:
    record = cell_record(cell(1, state, **more), "", False, UNICODE)
    assert record.cells["state"] == word
    assert record.cells["reason"] == more.get("reason", "")


def test_a_cell_is_told_with_its_attempt_jobs_expectations_and_metrics() -> None:
    told = cell(
        3,
        "finished",
        attempt=2,
        jobs=("2026-x-aaaaaa",),
        on="slurm:debug",
        seconds=4.0,
        expectations=(2, 1),
        metrics=BEST.metrics,
    )
    text = "\n".join("".join(part for part, _ in line) for line in cell_lines(told, ["tpot.p50"], True, 80, UNICODE))
    for part in ("batch=3  (marked)", "attempt 2", "2 of 3 expectations hold", "aaaaaa on slurm:debug", "8.00 ms"):
        assert part in text
