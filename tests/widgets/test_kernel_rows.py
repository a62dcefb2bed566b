"""Rows of the kernel matrix: a verdict in a word, counts of a kernel, and a row in full at 78 cells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hfbench.gpu.kernels.results import StaticRow
from hfbench.widgets.cells import spans_width
from hfbench.widgets.glyphs import ASCII, UNICODE
from hfbench.widgets.kernel_rows import KernelState, MatrixRow, Trial, cell_of, label_of, matrix_rows, row_lines

FINE = StaticRow(
    kernel="matmul",
    config="128x256x64 w8 s4",
    dtype="fp16",
    arch="sm_90",
    registers=237,
    spills=0,
    shared_bytes=147456,
    shared_limit=232448,
    verdict="ok",
    occupancy=0.125,
    limited_by="registers",
    warps=8,
    stages=4,
    matrix="wgmma",
)
REFUSED = replace(
    FINE,
    arch="sm_120",
    shared_limit=101376,
    verdict="refused",
    reason="147456 > 101376 bytes of shared memory",
    occupancy=0.0,
    limited_by="",
)
SENTENCE = "fine on H100/H200; refused on RTX 5090: 147456 > 101376 bytes of shared memory"
STATE = KernelState(
    kernel="matmul",
    name="matmul",
    summary="C = A x B",
    file="/somewhere/matmul.py",
    rows=(FINE, REFUSED),
    verdicts={FINE.config: SENTENCE},
)


@pytest.mark.parametrize(
    ("changes", "narrow", "wide", "state"),
    [
        ({}, "ok", "ok 237r 144k", "ok"),
        ({"shared_bytes": 32}, "ok", "ok 237r 32B", "ok"),
        ({"verdict": "refused", "shared_limit": 101376}, "x smem", "x smem 144k", "error"),
        ({"verdict": "refused"}, "x tmem", "x tmem", "error"),
        ({"verdict": "spills", "spills": 64}, "! spill", "! spills 64", "warn"),
        ({"verdict": "spills", "spills": 0, "loaded_spills": 8}, "! spill", "! spills 8", "warn"),
        ({"verdict": "failed"}, "x fails", "x fails", "error"),
        ({"verdict": "timeout"}, "~ slow", "~ slow", "unknown"),
        ({"verdict": "crash"}, "~ crash", "~ crash", "unknown"),
    ],
)
def test_a_cell_is_a_word_and_where_there_is_room_figures(
    changes: dict[str, Any], narrow: str, wide: str, state: str
) -> None:
    row = MatrixRow(STATE, FINE.config, {"sm_90": replace(FINE, **changes)})
    assert cell_of(row, "sm_90", ASCII, wide=False) == (narrow, state)
    assert cell_of(row, "sm_90", ASCII, wide=True) == (wide, state)
    assert cell_of(row, "sm_80", ASCII, wide=True) == ("-", "muted")


def test_a_kernels_own_row_counts_what_is_fine() -> None:
    heading = MatrixRow(replace(STATE, rows=(FINE, REFUSED, replace(FINE, config="b"))))
    assert cell_of(heading, "sm_90", ASCII, wide=False) == ("2/2", "ok")
    assert cell_of(heading, "sm_120", ASCII, wide=False) == ("0/1", "error")
    assert cell_of(heading, "sm_80", ASCII, wide=False) == ("-", "muted")
    mixed = MatrixRow(replace(STATE, rows=(FINE, replace(FINE, config="b", verdict="spills"))))
    assert cell_of(mixed, "sm_90", ASCII, wide=False) == ("1/2", "warn")


def test_a_folded_kernel_keeps_its_own_row_alone() -> None:
    assert [row.config for row in matrix_rows([STATE], ())] == ["", FINE.config]
    [folded] = matrix_rows([STATE], {"matmul"})
    assert label_of(folded, {"matmul"}, UNICODE) == "+ matmul"
    assert label_of(MatrixRow(replace(STATE, rows=(), work="waits")), (), UNICODE) == "  matmul (waits)"


def test_a_row_in_full_tells_every_figure_and_the_reason() -> None:
    row = matrix_rows([STATE], ())[1]
    lines = row_lines(row, 78, ASCII)
    text = ["".join(part for part, _ in line) for line in lines]
    assert max(map(spans_width, lines)) <= 78
    assert text[0] == "matmul  128x256x64 w8 s4: fp16, 8 warps, 4 stages"
    assert text[2].split() == ["sm_90", "ok", "237", "0", "147,456", "of", "232,448", "12%", "by", "registers"]
    assert text[3].split() == ["sm_120", "x", "smem", "237", "0", "147,456", "of", "101,376", "-"]
    assert "147456 > 101376 bytes of shared memory" in " ".join(" ".join(text).split())
    assert ("! " + SENTENCE[:30], "warn") in [(part[:32], style) for line in lines for part, style in line]


def test_the_largest_figures_there_are_fit_80_columns() -> None:
    row = MatrixRow(
        STATE, FINE.config, {"sm_100": replace(FINE, arch="sm_100", spills=123456, limited_by="shared memory")}
    )
    assert max(map(spans_width, row_lines(row, 78, UNICODE))) <= 78


def test_what_jobs_found_of_a_kernel_stands_below_it_and_says_when_its_file_changed_since() -> None:
    trials = (
        Trial(what="check", job="de26cf", text="66 ok"),
        Trial(what="time", job="697aed", text="there is no GPU 0", state="error", outdated=True),
    )
    text = ["".join(part for part, _ in line) for line in row_lines(MatrixRow(STATE), 78, ASCII, trials)]
    assert any(line.split(maxsplit=1) == ["check", "66 ok (job de26cf)"] for line in text)
    assert any("x there is no GPU 0 (job 697aed; the file was changed since)" in line for line in text)


def test_a_kernel_that_was_not_compiled_says_so() -> None:
    lines = row_lines(MatrixRow(replace(STATE, rows=())), 78, ASCII)
    assert "~ not compiled yet: s compiles it, which needs no GPU" in [
        "".join(p for p, _ in line[1:]) for line in lines
    ]
