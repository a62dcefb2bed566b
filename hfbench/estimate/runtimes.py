"""What runtimes take and allow beyond the model, read from `overheads.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from hfbench.errors import UsageError
from hfbench.units import MIB

SIZES: dict[str, float] = {
    "float32": 4,
    "float16": 2,
    "bfloat16": 2,
    "fp8": 1,
    "int8": 1,
    "fp4": 0.5,
}
"""Bytes of an element."""

SPELLINGS = {
    "fp32": "float32",
    "f32": "float32",
    "float": "float32",
    "fp16": "float16",
    "f16": "float16",
    "half": "float16",
    "bf16": "bfloat16",
    "float8_e4m3fn": "fp8",
    "float8_e5m2": "fp8",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "f8": "fp8",
    "nvfp4": "fp4",
}
COMPUTING = ("float32", "float16", "bfloat16")


@dataclass(frozen=True, kw_only=True)
class Runtime:
    """One runtime. `prefill_tokens` of 0 means whole prompts at once; `latent` that it keeps latent vectors."""

    name: str
    usable: float
    prefill_tokens: int
    graph_bytes: int
    context_bytes: int
    nccl_bytes: int
    latent: bool
    vocab_multiple: int
    """Rows of the vocabulary are padded to a multiple of this."""

    @property
    def computing(self) -> str:
        """The type it computes in when a model says float32 or nothing (vLLM casts float32 down)."""
        return "bfloat16" if self.name == "vllm" else "float32"


@lru_cache(maxsize=1)
def runtimes() -> dict[str, Runtime]:
    """All by name."""
    read = tomllib.loads((files("hfbench.estimate") / "overheads.toml").read_text("utf-8"))
    return {
        name: Runtime(
            name=name,
            usable=told["usable"],
            prefill_tokens=told["prefill_tokens"],
            graph_bytes=told["graph_mib"] * MIB,
            context_bytes=read["cuda_context"]["mib"] * MIB,
            nccl_bytes=read["nccl"]["mib"] * MIB,
            latent=told["latent"],
            vocab_multiple=told["vocab_multiple"],
        )
        for name, told in read["runtimes"].items()
    }


def dtype_named(text: str) -> str:
    """The full name of a type, however it is abbreviated; UsageError when there is no such type."""
    name = text.strip().lower().removeprefix("torch.")
    name = SPELLINGS.get(name, name)
    if name not in SIZES:
        raise UsageError(f"{text[:40]!r} is not a type of numbers", remedy=f"use one of {', '.join(SIZES)}")
    return name
