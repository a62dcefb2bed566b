"""Contexts, batches and ranks around what is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.estimate.axes import (
    COLUMNS,
    MOST_BATCH,
    MOST_CONTEXT,
    ROWS,
    allowed_ranks,
    batches_around,
    contexts_around,
)
from hfbench.estimate.model import Reading
from hfbench.estimate.workload import Workload, check_layout


@pytest.mark.parametrize(
    ("context", "limit", "expected"),
    [
        (32768, 131072, (4096, 8192, 16384, 32768, 65536, 131072)),
        (4096, 131072, (4096, 8192, 16384, 32768, 65536, 131072)),
        (512, 131072, (512, 1024, 2048, 4096, 8192, 16384)),
        (5000, 8192, (1024, 2048, 4096, 5000, 8192)),
        (300, 512, (300, 512)),
        (65536, 32768, (2048, 4096, 8192, 16384, 32768, 65536)),
        (1, None, (1, 512, 1024, 2048, 4096, 8192)),
    ],
)
def test_contexts_double_up_to_the_limit_and_hold_the_one_asked_for(
    context: int, limit: int | None, expected: tuple[int, ...]
) -> None:
    assert contexts_around(context, limit)[-len(expected) :] == expected


@pytest.mark.parametrize(
    ("batch", "expected"), [(1, (1, 4, 16, 64, 256)), (7, (4, 7, 16, 64, 256)), (1024, (4, 16, 64, 256, 1024))]
)
def test_batches_grow_fourfold_and_hold_the_one_asked_for(batch: int, expected: tuple[int, ...]) -> None:
    assert batches_around(batch) == expected


@given(st.integers(1, MOST_CONTEXT), st.none() | st.integers(1, 2**40), st.integers(1, MOST_BATCH))
def test_axes_are_short_and_rising_whatever_is_asked(context: int, limit: int | None, batch: int) -> None:
    for axis, value, most in (
        (contexts_around(context, limit), context, ROWS),
        (batches_around(batch), batch, COLUMNS),
    ):
        assert value in axis
        assert list(axis) == sorted(set(axis))
        assert 1 <= len(axis) <= most


def test_the_ranks_that_are_allowed_are_those_that_the_check_accepts(
    read: Callable[..., Reading], work: Callable[..., Workload], config_of: Callable[..., dict[str, Any]]
) -> None:
    reading = read(config_of("smollm2"))
    ranks = allowed_ranks(reading.model, work(reading))
    assert ranks == {"tp": (1, 3, 9), "pp": tuple(range(1, 31)), "ep": (1,)}
    for name, values in ranks.items():
        for value in values:
            check_layout(reading.model, work(reading, **{name: value}))


def test_expert_ranks_are_multiples_of_the_tensor_ranks(
    read: Callable[..., Reading], work: Callable[..., Workload], config_of: Callable[..., dict[str, Any]]
) -> None:
    reading = read(config_of("gpt_oss"))
    assert allowed_ranks(reading.model, work(reading, tp=4))["ep"] == (1, 4, 8, 16, 32)
