"""bench.compare: two settings of a model, or two models, measured in turns in one run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from hfbench.actions.base import Spec, action
from hfbench.actions.bench_generate import Generate
from hfbench.actions.params import Problem, param
from hfbench.errors import UsageError
from hfbench.text import did_you_mean

if TYPE_CHECKING:
    from hfbench.compare.turns import TurnsResult
    from hfbench.gpu.generate_request import Request
    from hfbench.jobs.run import Run

GENERATE: Spec = Generate.spec  # type: ignore[attr-defined]
OF_BOTH = ("device", "ci", "budget", "warmup", "max_iterations")
"""Settings that one run has once."""


@action(
    "bench.compare",
    result="hfbench.compare.turns:TurnsResult",
    lease="device",
    needs=("torch", "transformers", "safetensors"),
    extra="torch",
    measures=True,
)
@dataclass(frozen=True, kw_only=True)
class BenchCompare:
    """Compare two settings of a model, or two models, in turns: a noisy neighbour slows both alike.

    A is what the fields say, B the same but for `b`. Both generate once a round, in random order; verdicts come from
    the ratios of the rounds. Without `b` it shows what this machine's noise looks like.
    """

    model: str = param("Folder, HF cache entry or Hub reference", kind="model", positional=True)
    b: tuple[str, ...] = param("What B has otherwise: FIELD=VALUE, such as dtype=bf16 or model=./other", default=())
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
    seed: int = param("Seed of the random prompt and of the order of turns", default=0, ge=0)
    ci: float = param("Stop when the ratios are known within this share", default=0.02, ge=0.0001, le=1)
    budget: float = param(
        "Time to warm up and measure, loading not counted; the round under way is finished",
        default=120.0,
        kind="duration",
        ge=0.001,
        unit="s",
    )
    warmup: int = param("Rounds before the first that counts", default=2, ge=0, le=1000)
    max_iterations: int = param("Most rounds to measure", default=1000, ge=1, le=1_000_000)
    fail_if: tuple[str, ...] = param("Exit 1 when this holds beyond doubt: 'tpot.p50 > 1.05x' (x of A)", default=())
    undecided: Literal["tell", "fail"] = param("What becomes of a condition that cannot be told", default="tell")
    within: float = param("Share within which two medians count as the same", default=0.02, ge=0.001, le=0.5)

    def perform(self, run: Run) -> TurnsResult:
        """Load and verify both, then measure in turns."""
        from hfbench.compare.turns import refuse_unreadable, turns_result

        ours, theirs = self.settings()
        refuse_unreadable(self.fail_if)
        from hfbench.engines.running.as_modes import EngineModes
        from hfbench.gpu.turns_measure import Turns  # torch enters here, in the worker

        a, b = (cast("Request", GENERATE.build(each)) for each in (ours, theirs))
        taken = Turns(a, b, run, EngineModes()).measure()
        return turns_result(
            taken, (ours, theirs), fail_if=self.fail_if, within=self.within, strict=self.undecided == "fail"
        )

    def settings(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The fields of A and of B as bench.generate has them; UsageError for what is no setting of one side."""
        known = {each.name: each for each in GENERATE.params}
        ours = {name: each.plain(getattr(self, name)) for name, each in known.items()}
        theirs = dict(ours)
        for text in self.b:
            name, equals, value = text.partition("=")
            name = name.strip().replace("-", "_")
            if not equals or name not in known:
                hint = did_you_mean(name, known) or "write for example dtype=bf16"
                raise UsageError(f"b: {text!r} is not FIELD=VALUE of a setting", where="bench.compare", remedy=hint)
            if name in OF_BOTH:
                raise UsageError(f"b: {name} is told for both, by --{name.replace('_', '-')}", where="bench.compare")
            try:
                theirs[name] = known[name].plain(known[name].parse(value))
            except Problem as problem:
                raise UsageError(f"b: {problem}", where="bench.compare") from None
        return ours, theirs
