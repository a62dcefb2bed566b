"""MBU and MFU: what a step must move and compute, counted by hand, against ceilings that were measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hfbench.codec import decode, encode
from hfbench.gpu import ceilings as measuring
from hfbench.gpu.ceilings import measure_ceilings
from hfbench.gpu.reading import Unavailable
from hfbench.gpu.roofline import Ceilings, Roofline, StepWork, roofline, specification, step_work
from hfbench.models.reference import resolve

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

CEILINGS = Ceilings(copy=100.0, matmul=1000.0, matmul_dtype="bf16", copy_bytes=1, matmul_size=1)
WORK = StepWork(weight_bytes=40.0, kv_bytes=10.0, flops=100.0)
MATRICES = 2 * (32 * 32 * 2 + 32 * 16 * 2 + 3 * 32 * 64)
"""Of both layers of the tiny llama: q and o, k and v of half the heads, gate, up and down."""
NORMS, VOCABULARY = 5 * 32, 128 * 32


def loaded(folder: Path) -> Any:
    return transformers.AutoModelForCausalLM.from_pretrained(folder)


def test_a_step_reads_every_weight_but_the_embedding_and_its_caches(tiny_llama: Path) -> None:
    work = step_work(loaded(tiny_llama), resolve(str(tiny_llama)), dtype="fp32", batch=3, context=20)
    assert work.weight_bytes == 4 * (MATRICES + NORMS + VOCABULARY)
    a_token = 2 * 2 * 2 * 8 * 4  # keys and values, layers, heads, head_dim, bytes
    assert work.kv_bytes == 3 * 21 * a_token  # twenty read, one written
    attention = 4 * 4 * 8 * 20 * 2  # heads, head_dim, context, layers
    assert work.flops == 3 * (2 * (MATRICES + VOCABULARY) + attention)


def test_an_embedding_that_is_the_output_too_is_read_whole_and_once(tiny_copy: Path) -> None:
    config = json.loads((tiny_copy / "config.json").read_text()) | {"tie_word_embeddings": True}
    (tiny_copy / "config.json").write_text(json.dumps(config))
    work = step_work(loaded(tiny_copy), resolve(str(tiny_copy)), dtype="fp32", batch=1, context=8)
    assert work.weight_bytes == 4 * (MATRICES + NORMS + VOCABULARY)


def test_experts_have_a_reason_in_the_place_of_figures(tmp_path: Path) -> None:
    config = transformers.MixtralConfig(
        vocab_size=64,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        num_local_experts=4,
    )
    model = transformers.MixtralForCausalLM(config)
    model.save_pretrained(tmp_path)
    work = step_work(model, resolve(str(tmp_path)), dtype="fp32", batch=1, context=8)
    assert work.flops == Unavailable("which of its 4 experts a step reads is not known")


def test_shares_are_the_least_time_over_the_time_taken() -> None:
    found = roofline(WORK, tpot=2.0, context=8, ceilings=CEILINGS, card="NVIDIA H200")
    assert (found.mbu_measured, found.mfu_measured) == (0.25, 0.05)
    assert found.mbu == pytest.approx(50 / (2 * 4.8e12))
    assert found.mfu == pytest.approx(100 / (2 * 989e12))
    assert (found.bound, found.limit, found.spec_device) == ("memory", 0.5, "H200 SXM 141GB")
    assert decode(Roofline, json.loads(json.dumps(encode(found)))) == found


def test_a_large_batch_is_bound_by_what_it_computes() -> None:
    many = StepWork(weight_bytes=40.0, kv_bytes=10.0, flops=9000.0)
    found = roofline(many, tpot=18.0, context=8, ceilings=CEILINGS, card=None)
    assert (found.bound, found.limit, found.mfu_measured) == ("compute", 9.0, 0.5)


def test_what_is_not_known_is_a_reason_and_never_zero() -> None:
    found = roofline(WORK, tpot=2.0, context=8, ceilings=CEILINGS, card=None)
    assert found.mbu == found.mfu == found.spec_bandwidth == Unavailable("there is no table of processors")
    short = Ceilings(copy=Unavailable("short"), matmul=1.0, matmul_dtype="fp32", copy_bytes=1, matmul_size=1)
    blind = roofline(WORK, tpot=2.0, context=8, ceilings=short, card="NVIDIA H200")
    assert blind.bound == blind.limit == blind.mbu_measured == Unavailable("short")
    assert blind.mfu == Unavailable("the table has peaks for 16-bit types only")
    why = Unavailable("no idea")
    dark = roofline(StepWork(weight_bytes=why, kv_bytes=why, flops=why), tpot=1, context=1, ceilings=CEILINGS, card="X")
    assert dark.sentence == "not known: no idea"


@pytest.mark.parametrize(
    ("card", "device"),
    [
        ("NVIDIA H100 80GB HBM3", "H100 SXM 80GB"),
        ("NVIDIA H100 PCIe", "H100 PCIe 80GB"),
        ("NVIDIA H200", "H200 SXM 141GB"),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80GB"),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB"),
        ("Tesla V100-SXM2-32GB", "V100 32GB"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090 24GB"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada 48GB"),
        ("NVIDIA L4", "L4 24GB"),
    ],
)
def test_a_card_is_found_by_the_name_its_driver_tells(card: str, device: str) -> None:
    found = specification(card)
    assert not isinstance(found, Unavailable), found
    assert found.name == device


@pytest.mark.parametrize("card", ["NVIDIA Vapour 9000", "MIG instance MIG-1", ""])
def test_a_card_that_is_not_in_the_table_has_a_reason(card: str) -> None:
    assert isinstance(specification(card), Unavailable)


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_ceilings_are_measured_on_the_cpu(dtype: str) -> None:
    found = measure_ceilings(torch.device("cpu"), dtype)
    assert isinstance(found.copy, float)
    assert isinstance(found.matmul, float)
    assert 1e8 < found.copy < 2e12
    assert 1e8 < found.matmul < 1e15
    assert (found.matmul_dtype, found.copy_bytes) == (dtype, 2**28)
    assert found.matmul_size >= 256


def test_too_little_memory_costs_the_copy_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "available_memory", lambda: 2**28)
    found = measure_ceilings(torch.device("cpu"), "fp32")
    assert found.copy == Unavailable("too little memory was free for two buffers of 0.25 GiB")
    assert isinstance(found.matmul, float)
