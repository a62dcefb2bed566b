"""Engines of one tiny llama, each built once a run however many processes want it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from hfbench.actions.engine_build import EngineBuild, EngineBuildResult
from hfbench.jobs.run import Run

BATCH, SHORTEST, LONGEST, CONTEXT = 2, 1, 12, 24
SHAPES = {"batch": BATCH, "min_prompt": SHORTEST, "max_prompt": LONGEST, "context": CONTEXT}


def built(builder: str, root: Path) -> Path:
    """The folder of an engine below a root that all processes of a run share."""
    root.mkdir(parents=True, exist_ok=True)
    folder = root / builder
    with (root / f"{builder}.lock").open("w") as lock, pytest.MonkeyPatch.context() as patch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            patch.setenv("HFBENCH_HOME", str(root / "home"))
            build(tiny_model(root / "model"), folder, builder)
    return folder


def build(model: Path, folder: Path, builder: str, run: Run | None = None, **more: object) -> EngineBuildResult:
    """Build for the shapes of these tests on one thread."""
    asked = {"model": str(model), "out": folder, "builder": builder, "device": "cpu", "threads": 1, **SHAPES, **more}
    return EngineBuild(**asked).perform(run or Run())  # type: ignore[arg-type]


def tiny_model(folder: Path, layers: int = 2) -> Path:
    """A llama of few layers with random weights, in fp32, without a tokenizer; its context is 64."""
    if folder.exists():
        return folder
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=128,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=0,
        initializer_range=0.3,
    )
    torch.manual_seed(5)
    partial = folder.with_name(f"{folder.name}.{os.getpid()}")
    transformers.LlamaForCausalLM(config).save_pretrained(partial)
    try:
        partial.rename(folder)
    except OSError:  # another process was first
        pass
    return folder
