"""The verdict: terms, what limits, grids and the most that fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hfbench.errors import UsageError
from hfbench.estimate.fit import FORMULAS, estimate, grid, largest_batch, largest_context
from hfbench.estimate.model import Reading
from hfbench.estimate.workload import Workload, check_layout
from hfbench.units import GIB

Read = Callable[..., Reading]
Work = Callable[..., Workload]
ConfigOf = Callable[..., dict[str, Any]]


@pytest.fixture
def llama(read: Read, config_of: ConfigOf) -> Reading:
    return read(config_of("llama"))


def test_the_total_is_the_sum_of_terms_that_each_have_a_formula(llama: Reading, work: Work) -> None:
    found = estimate(llama.model, work(llama, tp=2))
    assert found.total == sum(found.terms.values())
    assert found.terms.keys() <= FORMULAS.keys()
    assert {"weights", "kv_cache", "activations", "logits", "cuda_context", "graph_pools", "nccl"} == found.terms.keys()


def test_one_gpu_needs_no_buffers_between_ranks(llama: Reading, work: Work) -> None:
    assert "nccl" not in estimate(llama.model, work(llama)).terms


def test_weights_are_named_when_they_alone_pass_the_memory(llama: Reading, work: Work) -> None:
    assert estimate(llama.model, work(llama)).limiting(8 * GIB) == "weights"


def test_the_cache_is_named_when_all_else_fits(llama: Reading, work: Work) -> None:
    assert estimate(llama.model, work(llama, batch=4)).limiting(24 * GIB) == "kv_cache"


def test_nothing_is_named_when_it_fits(llama: Reading, work: Work) -> None:
    assert estimate(llama.model, work(llama)).limiting(80 * GIB) is None


def test_the_largest_context_fits_and_one_more_token_does_not(llama: Reading, work: Work) -> None:
    asked, memory = work(llama), 24 * GIB
    most = largest_context(llama.model, asked, memory)
    assert most is not None
    assert 0 < most < 131072
    assert estimate(llama.model, replace(asked, context=most)).total <= memory
    assert estimate(llama.model, replace(asked, context=most + 1)).total > memory


def test_the_largest_batch_fits_and_one_more_sequence_does_not(llama: Reading, work: Work) -> None:
    asked, memory = work(llama), 80 * GIB
    most = largest_batch(llama.model, asked, memory)
    assert most
    assert estimate(llama.model, replace(asked, batch=most)).total <= memory
    assert estimate(llama.model, replace(asked, batch=most + 1)).total > memory


def test_the_largest_context_ends_at_the_limit_of_the_model(llama: Reading, work: Work) -> None:
    assert largest_context(llama.model, work(llama), 10_000 * GIB) == 131072


def test_nothing_fits_a_gpu_smaller_than_the_weights(llama: Reading, work: Work) -> None:
    assert largest_context(llama.model, work(llama), GIB) == 0
    assert largest_batch(llama.model, work(llama), GIB) == 0


def test_a_grid_has_a_row_a_context_and_grows_both_ways(llama: Reading, work: Work) -> None:
    cells = grid(llama.model, work(llama), 80 * GIB, (4096, 32768, 131072), (1, 4, 16, 64))
    assert [[cell.batch for cell in row] for row in cells] == [[1, 4, 16, 64]] * 3
    totals = [[cell.total_bytes for cell in row] for row in cells]
    assert all(row == sorted(row) for row in totals)
    assert all(list(column) == sorted(column) for column in zip(*totals, strict=True))
    assert cells[0][0].fits
    assert cells[0][0].limiting is None
    assert not cells[-1][-1].fits
    assert cells[-1][-1].limiting == "kv_cache"


def test_a_runtime_without_chunks_passes_whole_prompts(llama: Reading, work: Work) -> None:
    chunked = estimate(llama.model, work(llama)).terms["activations"]
    whole = estimate(llama.model, work(llama, runtime="transformers")).terms["activations"]
    assert whole == 4 * chunked


@pytest.mark.parametrize(
    ("name", "ranks", "found"),
    [
        ("smollm2", {"tp": 2}, "9 heads do not divide by tp=2. Use tp=1 or 3 or 9"),
        ("llama", {"tp": 3}, "32 heads do not divide by tp=3"),
        ("llama", {"pp": 33}, "32 layers cannot be 33 stages"),
        ("llama", {"ep": 2}, "the model has no experts"),
        ("gpt_oss", {"ep": 3}, "32 experts do not divide by ep=3"),
        ("gpt_oss", {"tp": 4, "ep": 2}, "ep=2 is no multiple of tp=4"),
    ],
)
def test_ranks_that_do_not_divide_the_model_are_refused_with_those_that_do(
    read: Read, work: Work, config_of: ConfigOf, name: str, ranks: dict[str, int], found: str
) -> None:
    reading = read(config_of(name))
    with pytest.raises(UsageError) as caught:
        check_layout(reading.model, work(reading, **ranks))
    assert found in str(caught.value)


def test_expert_ranks_beyond_the_tensor_ranks_are_further_gpus(read: Read, work: Work, config_of: ConfigOf) -> None:
    reading = read(config_of("gpt_oss"))
    asked = work(reading, tp=2, pp=2, ep=8)
    check_layout(reading.model, asked)
    assert asked.gpus == 16
