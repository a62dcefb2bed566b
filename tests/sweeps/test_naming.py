"""Cells are named by number or by value, and a slip is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from hfbench.errors import UsageError
from hfbench.sweeps.model import Axis, CellView, SweepSnapshot
from hfbench.sweeps.naming import cells_named

AXES = (Axis("dtype", ("bf16", "fp32")), Axis("batch", (1, 4)))
VALUES = [{"dtype": dtype, "batch": batch} for dtype in ("bf16", "fp32") for batch in (1, 4)]
CELLS = tuple(CellView(number=number, values=values) for number, values in enumerate(VALUES, 1))
SWEEP = SweepSnapshot(name="s", folder=Path("s"), state="running", axes=AXES, cells=CELLS)


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        (["3", "1"], (1, 3)),
        (["batch=4"], (2, 4)),
        (["batch=4", "dtype=fp32"], (4,)),
        (["batch=1", "batch=4"], (1, 2, 3, 4)),
        (["1", "batch=4", "dtype=fp32"], (1, 4)),
    ],
)
def test_numbers_add_up_and_values_narrow(words: list[str], numbers: tuple[int, ...]) -> None:
    assert cells_named(SWEEP, words) == numbers


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("5", "there is no cell 5"),
        ("first", "'first' names no cell"),
        ("batch=5", "no cell has batch=5. values: 1, 4"),
        ("dtpye=bf16", "Did you mean 'dtype'"),
    ],
)
def test_what_names_no_cell_is_refused(word: str, told: str) -> None:
    with pytest.raises(UsageError) as refused:
        cells_named(SWEEP, [word])
    assert told.lower() in str(refused.value).lower()
