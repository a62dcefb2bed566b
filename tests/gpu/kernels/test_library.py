"""The kernels hfbench brings: their references say what the libraries they name do, and a spoiled kernel is refused."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kernel_files import write
from wrong_variants import WRONG

from hfbench.gpu.kernels.declaration import Case
from hfbench.gpu.kernels.loading import shipped

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytestmark = pytest.mark.timeout(600)

NEW = sorted(WRONG)
FAULTS = [(kernel, fault) for kernel in NEW for fault in WRONG[kernel]]


def library(name: str) -> Any:
    """The module of a kernel, as a program would import it."""
    return importlib.import_module(f"hfbench.gpu.kernels.library.{name}")


@pytest.fixture(scope="module")
def spoiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """What the cases of each spoiled kernel came to, and of each as it is."""
    folder = tmp_path_factory.mktemp("spoiled")
    for kernel in NEW:
        text = shipped()[kernel].read_text("utf-8")
        write(folder, text, name=f"{kernel}.py")
        for number, change in enumerate(WRONG[kernel].values()):
            write(folder, text, change, name=f"{kernel}__{number}.py")
    script = Path(__file__).with_name("wrong_run.py")
    environment = {**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, str(script), str(folder)], env=environment, capture_output=True, text=True, timeout=540
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, list[dict[str, Any]]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("kernel", NEW)
def test_the_kernel_as_it_is_is_right(spoiled: dict[str, list[dict[str, Any]]], kernel: str) -> None:
    assert {row["verdict"] for row in spoiled[kernel]} <= {"ok", "inapplicable"}, spoiled[kernel]
    assert sum(row["verdict"] == "ok" for row in spoiled[kernel]) >= 3


@pytest.mark.parametrize(("kernel", "fault"), FAULTS)
def test_a_spoiled_kernel_is_refused(spoiled: dict[str, list[dict[str, Any]]], kernel: str, fault: str) -> None:
    rows = spoiled[f"{kernel}__{list(WRONG[kernel]).index(fault)}"]
    verdicts = {row["verdict"] for row in rows}
    assert verdicts & {"differs", "out-of-bounds"}, rows
    assert ("out-of-bounds" in verdicts) >= ("too many" in fault), rows
    assert "error" not in verdicts, rows


@pytest.mark.parametrize("kernel", NEW)
def test_the_declaration_is_of_problems_that_occur(kernel: str) -> None:
    declared = library(kernel).KERNEL
    assert set(declared.dtypes) >= {"fp16", "bf16", "fp32"}
    assert declared.sizes
    case = Case(shape=declared.sizes[-1], dtype=declared.dtypes[0])
    assert declared.bytes_moved(case) > 2**24
    assert declared.flops(case) > 0
    small = Case(shape=declared.shapes[-1], dtype="fp32")
    given = declared.arguments(**declared.inputs(small))
    assert any(declared.applies(given, config.constants) for config in declared.configs)


def test_the_models_are_their_formulas() -> None:
    def moved(kernel: str, dtype: str, **shape: int) -> int:
        return int(library(kernel).KERNEL.bytes_moved(Case(shape=shape, dtype=dtype)))

    assert moved("add_rmsnorm", "bf16", R=3, C=5) == 2 * (2 * 3 * 5 + 2 * 3 * 5 + 5)
    assert moved("silu_mul", "fp16", R=3, C=5) == 2 * (3 * 10 + 3 * 5)
    assert moved("rope", "bf16", T=2, H=3, D=8, ROT=4, I=0) == 2 * (2 * 2 * 3 * 8) + 2 * (2 * 2 * 4) + 2 * 8
    assert moved("penalties", "fp32", R=2, V=7, IN=1) == 2 * (4 * 7 + 4 * 7 + 4 * 7 + 4 * 7) + 2 * 3 * 4
    assert moved("top_k_top_p", "fp32", R=2, V=7) == 2 * (4 * 7 + 4 * 7) + 2 * 8
    # words of 4 bytes, a row of packed zeros and a row of scales for each of two groups, and what comes out
    assert moved("dequant_int4", "fp16", K=48, N=16, G=32, OFF=1) == 6 * 16 * 4 + 2 * (2 * 4 + 16 * 2) + 48 * 16 * 2
    assert moved("dequant_fp8", "bf16", M=130, N=256) == 130 * 256 * 3 + 2 * 2 * 4


@pytest.mark.parametrize("kernel", ["add_rmsnorm", "silu_mul", "rope"])
def test_what_torch_would_compute_is_the_reference(kernel: str) -> None:
    declared = library(kernel).KERNEL
    for shape in declared.shapes:
        inputs = declared.inputs(Case(shape=shape, dtype="fp32"))
        found, expected = declared.eager(**inputs), declared.reference(**inputs)
        pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
        for one, other in pairs:
            torch.testing.assert_close(one.double(), other, rtol=1e-5, atol=1e-5)


def test_the_examples_of_the_docstrings_are_true() -> None:
    ones = torch.ones(2)
    total, y = library("add_rmsnorm").reference(torch.tensor([[1.0, 1.0]]), torch.tensor([[2.0, 3.0]]), ones, 0.0)
    assert total.tolist() == [[3.0, 4.0]]
    assert y[0].tolist() == pytest.approx([0.848, 1.131], abs=1e-3)
    silu = library("silu_mul").reference(torch.tensor([[1.0, 2.0, 10.0, 100.0]]))
    assert silu[0].tolist() == pytest.approx([7.31, 176.2], abs=0.05)
    quarter = (torch.zeros(1, 2), torch.ones(1, 2), torch.zeros(1, dtype=torch.int64))
    x = torch.tensor([[[1.0, 2.0, 3.0, 4.0]]])
    assert library("rope").reference(x, *quarter, 0).flatten().tolist() == [-3, -4, 1, 2]
    assert library("rope").reference(x, *quarter, 1).flatten().tolist() == [-2, 1, -4, 3]
    byte = torch.tensor([[0x38]], dtype=torch.uint8).view(torch.float8_e4m3fn)
    assert library("dequant_fp8").reference(byte, torch.ones(1, 1), torch.float32).item() == 1
    word = torch.tensor([[0x76543210]], dtype=torch.int32).expand(1, 8)
    zeros = torch.tensor([[0x77777777]], dtype=torch.int32)
    w = library("dequant_int4").reference(word, zeros, torch.full((1, 8), 0.5), 8, 1)
    assert w[:, 0].tolist() == [-4, -3.5, -3, -2.5, -2, -1.5, -1, -0.5]
    strengths = (torch.tensor([2.0]), torch.tensor([0.5]), torch.tensor([0.25]))
    logits, none, twice = torch.tensor([[2.0]]), torch.tensor([[0]]), torch.tensor([[2]])
    assert library("penalties").reference(logits, none + 1, none, *strengths, False).item() == 1
    assert library("penalties").reference(logits, none, twice, *strengths, False).item() == -0.25


def test_ties_of_top_k_and_top_p_are_kept_together() -> None:
    reference, infinite = library("top_k_top_p").reference, float("inf")
    logits = torch.tensor([[2.0, 1.0, 1.0, 0.0]])
    kept = [[2.0, 1.0, 1.0, -infinite]]
    assert reference(logits, torch.tensor([2]), torch.tensor([1.0])).tolist() == kept
    assert reference(logits, torch.tensor([0]), torch.tensor([0.7])).tolist() == kept
    assert reference(logits, torch.tensor([0]), torch.tensor([0.5])).tolist() == [[2.0] + [-infinite] * 3]
    assert reference(logits, torch.tensor([0]), torch.tensor([0.0])).tolist() == [[2.0] + [-infinite] * 3]
    assert reference(logits, torch.tensor([-1]), torch.tensor([1.0])).tolist() == logits.tolist()


@pytest.mark.parametrize(("k", "p"), [(5, 1.0), (0, 0.8), (20, 0.6), (1, 0.9), (400, 0.99)])
def test_top_k_and_top_p_are_those_of_transformers(k: int, p: float) -> None:
    process = pytest.importorskip("transformers.generation.logits_process")
    torch.manual_seed(k)
    logits = 3 * torch.randn(4, 300)
    expected = process.TopKLogitsWarper(k)(None, logits) if k else logits
    expected = process.TopPLogitsWarper(p)(None, expected) if p < 1 else expected
    found = library("top_k_top_p").reference(logits, torch.full((4,), k), torch.full((4,), p))
    assert torch.equal(found.float(), expected)
    assert 0 < found.isfinite().sum() < 4 * 300 or k == 400


def test_repetition_is_that_of_transformers() -> None:
    process = pytest.importorskip("transformers.generation.logits_process")
    torch.manual_seed(3)
    logits, tokens = 5 * torch.randn(3, 50), torch.randint(0, 50, (3, 20))
    counts = torch.stack([row.bincount(minlength=50) for row in tokens])
    expected = process.RepetitionPenaltyLogitsProcessor(1.3)(tokens, logits.clone())
    off, nothing = torch.zeros(3), torch.zeros_like(counts)
    for prompt, output in ((counts, nothing), (nothing, counts)):
        found = library("penalties").reference(logits, prompt, output, torch.full((3,), 1.3), off, off, False)
        torch.testing.assert_close(found.float(), expected)


@pytest.mark.parametrize(("family", "style"), [("llama", 0), ("cohere", 1)])
def test_rope_is_that_of_transformers(family: str, style: int) -> None:
    model = pytest.importorskip(f"transformers.models.{family}.modeling_{family}")
    inputs = library("rope").inputs(Case(shape={"T": 6, "H": 3, "D": 16, "ROT": 16, "I": style}, dtype="fp32"))
    cos, sin = (inputs[name][inputs["positions"]] for name in ("cos", "sin"))
    wide = [each.repeat_interleave(2, dim=-1) if style else torch.cat((each, each), dim=-1) for each in (cos, sin)]
    heads_first = inputs["x"].transpose(0, 1)[None]
    expected, _ = model.apply_rotary_pos_emb(heads_first, heads_first, wide[0][None], wide[1][None])
    found = library("rope").reference(**inputs)
    torch.testing.assert_close(found.float(), expected[0].transpose(0, 1))
