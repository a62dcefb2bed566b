"""graph.verify as people ask for it: a model's folder in, a verdict and an exit code out."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hfbench.actions.base import InvalidParams
from hfbench.actions.graph_verify import GraphVerify, GraphVerifyResult
from hfbench.codec import decode, encode
from hfbench.errors import MissingError, UsageError
from hfbench.exits import Exit
from hfbench.jobs.run import Run

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


def verified(model: Path, **values: Any) -> GraphVerifyResult:
    request = GraphVerify.spec.build({"model": str(model), "device": "cpu", "threads": 1} | values)  # type: ignore[attr-defined]
    return request.perform(Run())  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def sliding(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose static cache counts tokens in Python, and takes another way once its window of 12 is full."""
    folder = tmp_path_factory.mktemp("models") / "sliding"
    config = transformers.MistralConfig(
        vocab_size=128,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        sliding_window=12,
        initializer_range=0.5,
    )
    torch.manual_seed(7)
    transformers.MistralForCausalLM(config).save_pretrained(folder)
    return folder


def test_a_llama_passes_with_a_tape_that_says_so(tiny_llama: Path) -> None:
    result = verified(tiny_llama, batch=(1, 3), steps=3)
    assert (result.verdict, result.fault, result.failed) == ("pass", "", False)
    assert [size.batch for size in result.report.sizes] == [3, 1]
    assert [(step.batch, step.step) for step in result.steps] == [(size, step) for size in (3, 1) for step in range(3)]
    assert result.report.capture.startswith("tape on the CPU")
    assert (result.report.dtype, result.headline) == ("fp32", "pass at batch 3, 1")
    assert decode(GraphVerifyResult, json.loads(json.dumps(encode(result)))) == result
    assert max(map(len, result.lines())) <= 80


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_half_precisions_pass_within_their_own_tolerance(tiny_llama: Path, dtype: str) -> None:
    result = verified(tiny_llama, batch=(2,), dtype=dtype)
    assert (result.verdict, result.report.dtype) == ("pass", dtype)
    assert result.report.tolerance_reason.startswith("a rounding is 2^-")


def test_a_real_model_that_counts_in_python_is_found(sliding: Path) -> None:
    result = verified(sliding, prompt=4, steps=4, batch=(1,))
    assert (result.verdict, result.fault, result.failed) == ("fail", "baked branch or scalar", True)
    assert [step.ok for step in result.steps] == [True, False, False, False]
    assert max(map(len, result.lines())) <= 80
    assert any("next: make what changes from step to step a tensor" in line for line in result.lines())


def test_a_replay_that_leaves_the_cache_is_a_fault_and_no_crash(sliding: Path) -> None:
    result = verified(sliding, prompt=9, steps=5, batch=(1,))
    assert (result.fault, result.steps) == ("baked branch or scalar", ())
    assert "a replay failed with IndexError" in result.evidence


def test_the_command_ends_with_one_when_a_replay_is_wrong(
    sliding: Path, hfbench: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    words = ["graph", "verify", sliding, "--device", "cpu", "--prompt", "4", "--steps", "5", "--batch", "1", "--json"]
    done = hfbench(*words)
    assert done.returncode == Exit.FAILED, done.stderr
    told = json.loads(done.stdout)
    assert (told["verdict"], told["fault"], len(told["steps"])) == ("fail", "baked branch or scalar", 5)


def test_what_cannot_be_is_refused(tiny_llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="a prompt of 61, a token to warm up and 4 steps exceed the context of 64"):
        verified(tiny_llama, prompt=61)
    with pytest.raises(InvalidParams, match="steps"):
        verified(tiny_llama, steps=2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(MissingError, match="there is no GPU 0") as caught:
        verified(tiny_llama, device="cuda:0")
    assert caught.value.exit is Exit.ENVIRONMENT
