"""A captured step is right, or its fault is named: on the CPU, with a tape, a real model and a real StaticCache."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from faulty_steps import (  # noqa: E402 - it needs both
    BakedBranch,
    BakedScalar,
    BakedTensor,
    GrowingCache,
    NotFinite,
    NotReset,
    StaleCopy,
    StaleInput,
    Synchronises,
    Uninitialised,
    UninitialisedAtCapture,
    UnwrittenCache,
    WrongPositions,
)

from hfbench.gpu.graphs.faults import REMEDY, Fault, SizeCheck  # noqa: E402
from hfbench.gpu.graphs.recording import recorder_for  # noqa: E402
from hfbench.gpu.graphs.step import DecodeStep  # noqa: E402
from hfbench.gpu.graphs.tolerance import TOLERANCES, tolerance_of  # noqa: E402
from hfbench.gpu.graphs.verify import verify  # noqa: E402

CPU = torch.device("cpu")
PROMPT, STEPS = 8, 4


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Any:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def llama() -> Any:
    """Two layers with random weights."""
    config = transformers.LlamaConfig(
        vocab_size=128,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        initializer_range=0.5,
    )
    torch.manual_seed(3)
    return transformers.LlamaForCausalLM(config).eval()


def verified(
    model: Any, kind: Any = DecodeStep, *, sizes: tuple[int, ...] = (2,), **told: Any
) -> tuple[SizeCheck, ...]:
    torch.manual_seed(5)
    return verify(
        sizes,
        lambda batch: kind(model, CPU, batch=batch, room=24, **told),
        recorder=recorder_for(CPU),
        prompts=lambda batch: torch.randint(0, 128, (batch, PROMPT + 1 + STEPS)),
        steps=STEPS,
        tolerance=tolerance_of("fp32"),
    )


def test_a_right_step_passes_at_every_size_the_largest_captured_first(llama: Any) -> None:
    checks = verified(llama, sizes=(1, 4, 2))
    assert [check.batch for check in checks] == [4, 2, 1]
    assert {(check.verdict, check.fault) for check in checks} == {("pass", "")}
    steps = [step for check in checks for step in check.steps]
    assert [step.position for step in checks[0].steps] == [8, 9, 10, 11]
    assert all(step.ok and step.finite and step.inputs_in_place and step.cache_in_place for step in steps)
    assert max(step.against_eager or 0 for step in steps) == 0  # a tape runs the same code
    assert 0 < max(step.against_no_cache or 0 for step in steps) < TOLERANCES["fp32"].no_cache


@pytest.mark.parametrize(
    ("kind", "fault", "evidence"),
    [
        (StaleInput, "stale input", "tokens were captured at 0x"),
        (StaleCopy, "stale input", "two different tokens gave the same logits"),
        (GrowingCache, "growing cache", "layers.0.keys went from [2, 2, 8, 8] to [2, 2, 9, 8]"),
        (BakedBranch, "baked branch or scalar", "aten.mul.Tensor, is there only now"),
        (BakedScalar, "baked branch or scalar", "had 4.0 at capture and has 5.0"),
        (BakedTensor, "baked branch or scalar", "had 4.0 at capture and has 5.0"),
        (NotReset, "cache not reset after warm-up", "layers.0.cumulative_length is 11 and was 8"),
        (Synchronises, "sync during capture", ".item()"),
        (Uninitialised, "uninitialised cache", "before the warm-up 4 of 6 tensors had no memory"),
        (UninitialisedAtCapture, "uninitialised cache", "tensors had no memory yet"),
        (UnwrittenCache, "uninitialised cache", "layers.0.values holds values that are not finite"),
        (WrongPositions, "step differs from the forward without a cache", "replayed and run eagerly alike"),
        (NotFinite, "logits not finite", "step 0 gave NaN or infinity"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_each_fault_is_named_with_its_evidence(llama: Any, kind: Any, fault: str, evidence: str) -> None:
    [check] = verified(llama, kind)
    assert (check.verdict, check.fault) == ("fail", fault), check.findings
    assert evidence in check.evidence


@pytest.mark.parametrize("weight", ["norm.weight", "layers.0.mlp.down_proj.weight"])
def test_a_model_that_gives_nan_without_a_graph_is_not_blamed_on_the_cache(llama: Any, weight: str) -> None:
    """The second weight also puts NaN into what the prompt left in the cache of the next layer."""
    broken = copy.deepcopy(llama)
    broken.model.get_parameter(weight).data.fill_(float("inf"))
    [check] = verified(broken)
    assert [finding.fault for finding in check.findings] == ["logits not finite"]
    assert check.evidence == "step 0 gave NaN or infinity, and so does a forward without cache and graph"
    assert not any(step.ok for step in check.steps)


@pytest.mark.parametrize("how", ["item", "bool", "tolist", "mask", "nonzero", "cpu"])
def test_every_way_to_wait_for_the_device_is_refused(llama: Any, how: str) -> None:
    [check] = verified(llama, Synchronises, how=how)
    assert (check.fault, check.steps) == ("sync during capture", ())


@pytest.mark.parametrize("kind", [StaleInput, GrowingCache, NotReset])
def test_the_first_step_alone_would_not_tell(llama: Any, kind: Any) -> None:
    """Why several steps are replayed: with the inputs of the capture these three are right, or nearly."""
    [check] = verified(llama, kind)
    wrong = [step.step for step in check.steps if (step.against_eager or 0) > TOLERANCES["fp32"].eager]
    assert wrong
    assert wrong[-1] == STEPS - 1
    if kind is not NotReset:
        assert 0 not in wrong


def test_a_baked_branch_is_invisible_to_the_forward_without_a_cache(llama: Any) -> None:
    [check] = verified(llama, BakedBranch)
    assert max(step.against_no_cache or 9 for step in check.steps) < TOLERANCES["fp32"].no_cache
    assert max(step.against_eager or 0 for step in check.steps) > 0.1


def test_one_size_may_fail_while_others_pass(llama: Any) -> None:
    def make(batch: int) -> DecodeStep:
        return (NotReset if batch == 2 else DecodeStep)(llama, CPU, batch=batch, room=24)

    torch.manual_seed(5)
    checks = verify(
        (1, 2, 3),
        make,
        recorder=recorder_for(CPU),
        prompts=lambda batch: torch.randint(0, 128, (batch, PROMPT + 1 + STEPS)),
        steps=STEPS,
        tolerance=tolerance_of("fp32"),
    )
    assert [(check.batch, check.verdict) for check in checks] == [(3, "pass"), (2, "fail"), (1, "pass")]


def test_every_fault_has_a_remedy() -> None:
    assert set(REMEDY) == set(Fault)
