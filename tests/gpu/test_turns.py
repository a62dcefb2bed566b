"""bench.compare on a tiny model: both sides really run, in turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hfbench.actions.bench_compare import BenchCompare
from hfbench.compare.result import Outcome
from hfbench.compare.turns import TurnsResult
from hfbench.errors import UsageError
from hfbench.jobs.run import Run

FEW: dict[str, Any] = {
    "device": "cpu",
    "dtype": "fp32",
    "prompt": 4,
    "new_tokens": 3,
    "threads": 1,
    "warmup": 1,
    "max_iterations": 12,
    "budget": 20.0,
}


def measured(model: Path, **more: Any) -> TurnsResult:
    """A short comparison."""
    return BenchCompare(model=str(model), **{**FEW, **more}).perform(Run())


@pytest.fixture(scope="module")
def modes(tiny_llama: Path) -> TurnsResult:
    """Eager against a static cache."""
    return measured(tiny_llama, b=("mode=static-cache", "batch=2"), fail_if=("tpot.p50 > 1000x", "tpot.p50 < 1000x"))


def test_both_generate_once_a_round_and_either_may_begin(modes: TurnsResult) -> None:
    a, b = modes.rows
    assert modes.rounds == len(modes.first) == a.metrics.tpot.n == b.metrics.tpot.n == modes.ratio.n
    assert set(modes.first) == {"A", "B"}


def test_what_differs_is_told_and_the_other_mode_was_verified(modes: TurnsResult) -> None:
    assert modes.differ == {"mode": ("eager", "static-cache"), "batch": (1, 2)}
    assert (modes.rows[0].batch, modes.rows[1].batch) == (1, 2)
    assert modes.rows[1].verified is not None
    assert "both run the same weights, read once" in modes.notes


def test_the_ratio_is_that_of_the_rounds(modes: TurnsResult) -> None:
    a, b = (row.metrics.tpot.samples for row in modes.rows)
    assert modes.ratio.samples == [later / first for first, later in zip(a, b, strict=True)]
    found = {each.metric: each for each in modes.compared}
    assert list(found) == ["ttft", "tpot", "e2e", "throughput", "prefill_rate"]
    assert found["tpot"].ratio == modes.ratio.p50
    assert found["tpot"].method == "in turns"


def test_a_budget_that_ends_in_the_warm_up_leaves_one_round_and_is_told(tiny_llama: Path) -> None:
    found = measured(tiny_llama, budget=0.001, warmup=5)
    assert (found.rounds, found.stop_reason) == (1, "budget-spent")
    assert any(note.endswith("ended it after 1 round, which was the first and not warmed up") for note in found.notes)


def test_conditions_are_asked_of_the_run(modes: TurnsResult) -> None:
    assert [each.outcome for each in modes.conditions] == [Outcome.PASSES, Outcome.FAILS]
    assert modes.exit == 1


def test_without_b_the_noise_of_the_machine_is_shown(tiny_llama: Path) -> None:
    found = measured(tiny_llama)
    assert found.differ == {}
    assert any("nothing: A and B are the same" in line for line in found.lines())


@pytest.mark.parametrize(
    ("b", "found"),
    [
        ("dtpe=bf16", "did you mean 'dtype'"),
        ("bf16", "not FIELD=VALUE"),
        ("batch=0", "below the least value 1"),
        ("budget=5", "is told for both, by --budget"),
        ("device=cuda:0", "is told for both, by --device"),
    ],
)
def test_what_is_no_setting_of_one_side_is_refused_before_anything_is_loaded(b: str, found: str) -> None:
    with pytest.raises(UsageError) as caught:
        measured(Path("/nowhere"), b=(b,))
    assert found in str(caught.value).replace("Did", "did")


@pytest.mark.parametrize(
    ("text", "found"),
    [("tpot > fast", "a number is missing"), ("tpto > 1x", "did you mean 'tpot'"), ("tpot > 5 GiB", "is a time")],
)
def test_a_condition_that_cannot_be_asked_is_refused_before_anything_is_loaded(text: str, found: str) -> None:
    with pytest.raises(UsageError) as caught:
        measured(Path("/nowhere"), fail_if=(text,))
    assert found in str(caught.value).replace("Did", "did")
