"""bench.modes: several ways of executing one model, measured in turns in one run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hfbench.actions.base import action
from hfbench.actions.params import param

if TYPE_CHECKING:
    from hfbench.gpu.modes_result import ModesResult
    from hfbench.jobs.run import Run


@action(
    "bench.modes",
    result="hfbench.gpu.modes_result:ModesResult",
    lease="device",
    needs=("torch", "transformers", "safetensors"),
    extra="torch",
    measures=True,
)
@dataclass(frozen=True, kw_only=True)
class Modes:
    """Compare ways of executing a model: eager, static cache, torch.compile, CUDA graph and engines.

    Every mode generates once in each round, so that whatever slows the machine slows all of them; each is compared with
    eager before it is timed.
    """

    model: str = param("Folder, HF cache entry or Hub reference", kind="model", positional=True)
    modes: tuple[str, ...] = param(
        "Modes to compare with eager; an engine by its folder",
        default=("static-cache", "compile"),
        choices=("eager", "static-cache", "compile", "cudagraph"),
        opening="engine:",
    )
    device: str = param("Where to run: auto for the first GPU or else cpu, cuda:N, cpu", default="auto", kind="device")
    dtype: Literal["auto", "bf16", "fp16", "fp32"] = param(
        "Weights as; auto takes the engine's, else the checkpoint's", default="auto"
    )
    batch: int = param("Sequences in flight", default=1, ge=1, le=4096)
    prompt: int = param("Length of the random prompt, used when no text is given", default=128, ge=1, unit="token")
    prompt_text: str = param("Prompt to use instead of a random one", default="")
    prompt_file: Path | None = param("UTF-8 file with the prompt", default=None, kind="path")
    new_tokens: int = param("Tokens to generate in each iteration", default=64, ge=2, unit="token")
    compile_mode: Literal["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"] = param(
        "Mode of torch.compile, for mode compile", default="default"
    )
    attention: Literal["sdpa", "eager"] = param("Attention implementation", default="sdpa")
    threads: int = param("CPU threads of torch; 0 takes every CPU of the process", default=0, ge=0, le=4096)
    seed: int = param("Seed of the random prompt", default=0, ge=0)
    ci: float = param("Stop when every ratio to eager is known within this share", default=0.02, ge=0.0001, le=1)
    budget: float = param(
        "Time to warm up and measure, loading not counted; the round under way is finished",
        default=120.0,
        kind="duration",
        ge=0.001,
        unit="s",
    )
    warmup: int = param("Rounds before the first that counts", default=2, ge=0, le=1000)
    max_iterations: int = param("Most rounds to measure", default=1000, ge=1, le=1_000_000)

    def perform(self, run: Run) -> ModesResult:
        """Verify every mode, warm up, and measure in turns."""
        from hfbench.engines.running.as_modes import EngineModes
        from hfbench.gpu.modes_measure import measure_modes  # torch enters here, in the worker

        return measure_modes(self, run, EngineModes())
