"""graph.verify: whether a captured decode step of a model computes what the model would."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Literal

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.gpu.graphs.faults import REMEDY, Fault, Report, SizeCheck, StepCheck
from hfbench.text import clip, clip_middle, printable

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

WIDTH = 80
_ERRORS = ("against_eager", "against_no_cache")


@dataclass(frozen=True, kw_only=True)
class GraphVerifyResult:
    """The verdict, the fault that explains it, and every replayed step of every size; `failed` unless all pass."""

    verdict: str
    """`pass`, or `fail` when one size does."""
    fault: str
    """The name of the first fault; empty when there is none."""
    evidence: str
    remedy: str
    model: str
    steps: tuple[StepCheck, ...]
    """Of all sizes, the largest first."""
    report: Report

    @property
    def failed(self) -> bool:
        """True when a replay is not what the step computes."""
        return self.verdict != "pass"

    @property
    def headline(self) -> str:
        """`pass at batch 4, 1`, or the fault."""
        sizes = ", ".join(str(size.batch) for size in self.report.sizes)
        return f"fail: {self.fault}" if self.failed else f"pass at batch {sizes}"

    def lines(self) -> list[str]:
        """A line a size, then what is wrong; at most 80 columns wide."""
        report = self.report
        head = [
            clip_middle(f"model    {printable(self.model)}", WIDTH),
            clip(f"capture  {report.capture}", WIDTH),
            clip(f"run      {report.device} {report.device_name}, {report.dtype}, {report.attention}", WIDTH),
            f"allowed  {report.tolerance_eager:.1e} off eager, {report.tolerance_no_cache:.1e} off no cache,"
            " of the largest logit",
            "",
            f"{'batch':>5}  {'verdict':<8}{'steps':>5}{'operations':>12}{'off eager':>12}{'off no cache':>14}",
        ]
        told = [line for size in report.sizes for line in _found(size)]
        noted = (
            wrap(f"~ {printable(report.device_reason)}", WIDTH, subsequent_indent="  ") if report.device_reason else []
        )
        return [*head, *map(_row, report.sizes), *([""] if told or noted else []), *told, *noted]


@action(
    "graph.verify",
    result=GraphVerifyResult,
    lease="device",
    needs=("torch", "transformers", "safetensors"),
    extra="torch",
)
@dataclass(frozen=True, kw_only=True)
class GraphVerify:
    """Capture a model's decode step and check its replays against the step run eagerly and a forward without a cache.

    On a GPU with CUDA graphs; on the CPU with a tape that obeys their rules, which the result says.
    """

    model: str = param("Folder, HF cache entry or Hub reference", kind="model", positional=True)
    device: str = param("Where to run: auto for the first GPU or else cpu, cuda:N, cpu", default="auto", kind="device")
    dtype: Literal["auto", "bf16", "fp16", "fp32"] = param("Weights as; auto keeps the checkpoint's", default="auto")
    batch: tuple[int, ...] = param("Batch sizes to capture, the largest first", default=(4, 1), ge=1, le=4096)
    prompt: int = param("Length of the random prompt", default=16, ge=1, unit="token")
    steps: int = param("Steps to replay with fresh tokens", default=4, ge=3, le=1000)
    attention: Literal["sdpa", "eager"] = param("Attention implementation", default="sdpa")
    threads: int = param("CPU threads of torch; 0 takes every CPU of the process", default=0, ge=0, le=4096)
    seed: int = param("Seed of prompt and tokens", default=0, ge=0)

    def perform(self, run: Run) -> GraphVerifyResult:
        """Load the model, capture and check; torch enters here, in the worker."""
        from hfbench.gpu.graphs.work import verify_model

        report = verify_model(
            self.model,
            run,
            device=self.device,
            dtype=self.dtype,
            attention=self.attention,
            sizes=self.batch,
            prompt=self.prompt,
            steps=self.steps,
            threads=self.threads,
            seed=self.seed,
        )
        wrong = next((size for size in report.sizes if size.verdict != "pass"), None)
        return GraphVerifyResult(
            verdict="fail" if wrong else "pass",
            fault=wrong.fault if wrong else "",
            evidence=f"batch {wrong.batch}: {wrong.evidence}" if wrong else "",
            remedy=REMEDY[Fault(wrong.fault)] if wrong else "",
            model=self.model,
            steps=tuple(step for size in report.sizes for step in size.steps),
            report=report,
        )


def _worst(errors: list[float | None]) -> str:
    """The largest of the errors; `NaN` where one is none because a value was not finite."""
    known = [each for each in errors if each is not None]
    return "-" if not errors else "NaN" if len(known) < len(errors) else f"{max(known):.1e}"


def _row(size: SizeCheck) -> str:
    eager, no_cache = (_worst([getattr(step, name) for step in size.steps]) for name in _ERRORS)
    figures = f"{eager:>12}{no_cache:>14}"
    return f"{size.batch:>5}  {size.verdict:<8}{len(size.steps):>5}{size.operations:>12}{figures}"


def _found(size: SizeCheck) -> list[str]:
    lines = []
    for found in size.findings:
        text = printable(f"x  batch {size.batch}: {found.fault}: {found.evidence}")
        lines += wrap(text, WIDTH, subsequent_indent="   ", max_lines=4, placeholder=" ...")
    if size.findings:
        lines += wrap(f"   next: {REMEDY[size.findings[0].fault]}", WIDTH, subsequent_indent="   ")
    return lines
