"""bench.generate: time prefill and decode of one model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.gpu.generate_result import GenerateResult

if TYPE_CHECKING:
    from hfbench.jobs.run import Run


@action(
    "bench.generate",
    result=GenerateResult,
    lease="device",
    needs=("torch", "transformers", "safetensors"),
    extra="torch",
    measures=True,
)
@dataclass(frozen=True, kw_only=True)
class Generate:
    """Measure time to first token, time per token and throughput of a model.

    Greedy decoding with a KV cache, prefill and each decode step timed apart, all raw samples kept.
    """

    model: str = param("Folder, HF cache entry or Hub reference", kind="model", positional=True)
    device: str = param("Where to run: auto for the first GPU or else cpu, cuda:N, cpu", default="auto", kind="device")
    dtype: Literal["auto", "bf16", "fp16", "fp32"] = param("Weights as; auto keeps the checkpoint's", default="auto")
    batch: int = param("Sequences in flight", default=1, ge=1, le=4096)
    prompt: int = param("Length of the random prompt, used when no text is given", default=128, ge=1, unit="token")
    prompt_text: str = param("Prompt to use instead of a random one", default="")
    prompt_file: Path | None = param("UTF-8 file with the prompt", default=None, kind="path")
    new_tokens: int = param("Tokens to generate in each iteration", default=64, ge=2, unit="token")
    mode: str = param(
        "How decode steps are executed, or an engine's folder; all but eager are verified against it first",
        default="eager",
        choices=("eager", "static-cache", "compile", "cudagraph"),
        opening="engine:",
    )
    compile_mode: Literal["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"] = param(
        "Mode of torch.compile, for mode compile", default="default"
    )
    attention: Literal["sdpa", "eager"] = param("Attention implementation", default="sdpa")
    threads: int = param("CPU threads of torch; 0 takes every CPU of the process", default=0, ge=0, le=4096)
    seed: int = param("Seed of the random prompt", default=0, ge=0)
    ci: float = param("Stop when the median is known within this share", default=0.02, ge=0.0001, le=1)
    budget: float = param(
        "Time to warm up and measure after loading; the iteration under way is finished",
        default=60.0,
        kind="duration",
        ge=0.001,
        unit="s",
    )
    warmup: int = param("Iterations before the first that counts", default=2, ge=0, le=1000)
    max_iterations: int = param("Most iterations to measure", default=1000, ge=1, le=1_000_000)

    def perform(self, run: Run) -> GenerateResult:
        """Load, warm up and measure."""
        from hfbench.engines.running.as_modes import EngineModes
        from hfbench.gpu.generate import measure  # torch enters here, in the worker

        return measure(self, run, EngineModes())
