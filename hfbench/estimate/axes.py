"""What may be asked around what is asked: contexts and batches of a grid, and ranks that the model's shape allows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hfbench.errors import UsageError

if TYPE_CHECKING:
    from hfbench.estimate.workload import Model, Workload

ROWS, COLUMNS = 6, 5
LEAST_CONTEXT, MOST_CONTEXT = 512, 2**30
NO_LIMIT = 2**17
"""Where the grid ends of a model that tells no limit."""
MOST_BATCH = 2**20
BATCH_STEP = 4
MOST_RANKS = 64


def contexts_around(context: int, limit: int | None) -> tuple[int, ...]:
    """Contexts that double, up to the model's limit and the one asked for, which is among them."""
    end = max(limit or NO_LIMIT, context)
    ladder = [LEAST_CONTEXT]
    while ladder[-1] < end and ladder[-1] < MOST_CONTEXT:
        ladder.append(ladder[-1] * 2)
    beyond = {each for each in (limit, context) if each}
    steps = sorted({each for each in ladder if each <= end} | beyond)
    return _window(steps, steps.index(context), ROWS)


def batches_around(batch: int) -> tuple[int, ...]:
    """Batches four times as large each, the one asked for among them."""
    ladder = [1]
    while ladder[-1] < batch or len(ladder) < COLUMNS:
        ladder.append(ladder[-1] * BATCH_STEP)
    steps = sorted({each for each in ladder if each <= MOST_BATCH} | {batch})
    return _window(steps, steps.index(batch), COLUMNS)


def allowed_ranks(model: Model, work: Workload) -> dict[str, tuple[int, ...]]:
    """Numbers of tensor-parallel ranks, stages and expert ranks that `check_layout` accepts, each by itself."""
    alone = replace(work, pp=1, ep=1)
    return {
        "tp": tuple(n for n in range(1, MOST_RANKS + 1) if _allowed(model, replace(alone, tp=n))),
        "pp": tuple(n for n in range(1, MOST_RANKS + 1) if _allowed(model, replace(alone, tp=1, pp=n))),
        "ep": tuple(n for n in range(1, MOST_RANKS + 1) if _allowed(model, replace(work, pp=1, ep=n))),
    }


def _allowed(model: Model, work: Workload) -> bool:
    from hfbench.estimate.workload import check_layout  # a screen reads only the numbers above

    try:
        check_layout(model, work)
    except UsageError:
        return False
    return True


def _window(steps: Sequence[int], place: int, size: int) -> tuple[int, ...]:
    """So many steps, the last ones unless the place lies before them."""
    start = min(max(0, len(steps) - size), place)
    return tuple(steps[start : start + size])
