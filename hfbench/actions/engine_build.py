"""engine.build: turn a model into an engine for fixed shapes, and prove it against eager."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from hfbench.actions.base import action, spec_of
from hfbench.actions.params import command_line, param
from hfbench.engines.fitting import SHORT_NEW_TOKENS, SHORT_PROMPT, fitting
from hfbench.engines.manifest import Proof, ShapeProfile, recipe_of
from hfbench.line_width import cut, cut_end, room
from hfbench.models.problem import counted
from hfbench.paths import expand
from hfbench.text import printable
from hfbench.units import show_bytes, show_seconds

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

LABEL = 9
CONTINUED = " \\"
"""Ends a line of a command that goes on."""


@dataclass(frozen=True, kw_only=True)
class EngineBuildResult:
    """An engine, its proof and what it took. `bytes` counts its files, `id` is made of all that determines it."""

    folder: str
    id: str
    recipe: str = ""
    """Of what was asked for: every build of it has the same."""
    builder: str
    model: str
    device: str
    dtype: str
    shapes: ShapeProfile
    files: int
    bytes: int
    seconds: float
    """Of the build, without its proof."""
    verdict: str
    """`proven`, `differs` or `not run`."""
    proof: Proof | None
    signed_by: str
    licence: str

    @property
    def headline(self) -> str:
        """`aoti engine, proven: 516 MiB in 2.1 min`."""
        return f"{self.builder} engine, {self.verdict}: {show_bytes(self.bytes)} in {show_seconds(self.seconds)}"

    def lines(self) -> list[str]:
        """Where it is, what it was built for, and a line for each shape it was compared at."""
        shapes = self.shapes
        prompts = f"{shapes.min_prompt} to {shapes.max_prompt}"
        rows = [
            ("", self.headline),
            ("engine", cut(printable(self.folder), LABEL)),
            ("model", cut(printable(self.model), LABEL)),
            ("for", f"{self.device}, {self.dtype}, batch {shapes.batch}, prompts {prompts}, context {shapes.context}"),
            ("files", f"{counted(self.files, 'file')}, id {self.id}, recipe {self.recipe}"),
            *(("licence", text) for text in [printable(self.licence)] if text),
            *(("signed", text) for text in [printable(self.signed_by)] if text),
            *(("proof", line) for line in _proof_lines(self.proof)),
        ]
        told = [text if not label else cut_end(f"{label:<{LABEL}}{text}") for label, text in rows]
        return [*told, *(line for command in _next_commands(self) for line in _copyable(command))]


def _next_commands(result: EngineBuildResult) -> list[str]:
    """The commands that load it and measure it beside eager."""
    from hfbench.actions.registry import find
    from hfbench.engines.running.open_engine import has_runner

    check, modes = find("engine.check").params, find("bench.modes").params
    loading = {"engine": result.folder, "load": True}
    told = [command_line(("hfbench", "engine", "check"), check, loading)]
    if has_runner(result.builder):
        measured = {"model": result.model, "modes": ["static-cache", f"engine:{result.folder}"]}
        device = {"device": "cpu"} if result.device == "cpu" else {}
        asked = {**measured, **device, **fitting(result.shapes, SHORT_PROMPT, SHORT_NEW_TOKENS)}
        told.append(command_line(("hfbench", "bench", "modes"), modes, asked))
    return told


def _copyable(command: str) -> list[str]:
    """A command under its label, in lines that a shell reads as one: broken between words alone."""
    most = room() - LABEL - len(CONTINUED)
    lines: list[str] = []
    for word in map(shlex.quote, shlex.split(command)):
        if lines and len(lines[-1]) + 1 + len(word) <= most:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    labelled = [f"{'' if number else 'next':<{LABEL}}{line}" for number, line in enumerate(map(printable, lines))]
    return [*(line + CONTINUED for line in labelled[:-1]), labelled[-1]]


def _proof_lines(proof: Proof | None) -> list[str]:
    """One line a shape, and what is wrong."""
    if proof is None:
        return []
    lines = [
        f"{case.batch} x {case.prompt}, {counted(case.steps, 'step')}: off by {case.relative:.1e} of the largest logit,"
        f" {case.argmax_agreement:.0%} alike, greedy {'the same' if case.greedy_equal else 'other tokens'}"
        for case in proof.cases
    ]
    return [*lines, f"{proof.verdict}: {proof.why}"] if proof.why else lines


@action(
    "engine.build",
    result=EngineBuildResult,
    lease="device",
    needs=("torch", "transformers", "safetensors"),
    extra="torch",
)
@dataclass(frozen=True, kw_only=True)
class EngineBuild:
    """Build an engine of a model for fixed shapes, and prove it against eager.

    The folder appears when it is complete: the builder's files, the build log, and a manifest of all the engine depends
    on with the proof. An engine whose logits differ from eager's is refused.
    """

    model: str = param("Folder, HF cache entry or Hub reference", kind="model", positional=True)
    out: Path = param("Folder to make; it appears when the engine is complete", kind="path")
    builder: Literal["aoti", "compile", "onnx", "openvino", "trtllm"] = param(
        "What builds it: AOTInductor, torch.compile's caches, ONNX, OpenVINO, TensorRT-LLM", default="aoti"
    )
    device: str = param(
        "What to build for: auto for the first GPU or else cpu, cuda:N, cpu", default="auto", kind="device"
    )
    dtype: Literal["auto", "bf16", "fp16", "fp32"] = param(
        "Weights as; auto keeps the checkpoint's, onnx and openvino take fp32", default="auto"
    )
    batch: int = param("Sequences of every call", default=1, ge=1, le=4096)
    min_prompt: int = param("Shortest prompt", default=1, ge=1, unit="token")
    max_prompt: int = param("Longest prompt", default=128, ge=1, unit="token")
    context: int = param("Length of the cache: prompt and new tokens together", default=256, ge=2, unit="token")
    attention: Literal["sdpa", "eager"] = param("Attention implementation", default="sdpa")
    threads: int = param("CPU threads of torch; 0 takes every CPU of the process", default=0, ge=0, le=4096)
    template: str = param("Template of TensorRT-LLM, for builder trtllm", default="")
    set: tuple[str, ...] = param("Options of TensorRT-LLM, each flag=value, for builder trtllm", default=())
    tp: int = param("Tensor-parallel ranks, for builder trtllm", default=1, ge=1, le=1024)
    pp: int = param("Pipeline stages, for builder trtllm", default=1, ge=1, le=1024)
    require_signature: bool = param("Build from a model only that somebody trusted has signed", default=False)
    replace: bool = param("Take the place of an engine that stands there, once this one is complete", default=False)
    keep_unproven: bool = param("Keep an engine that differs from eager, with that verdict", default=False)

    @classmethod
    def needs_for(cls, values: Mapping[str, object]) -> tuple[tuple[str, ...], str]:
        """Modules and extra of the builder that is asked for: plans are built by programs of another Python."""
        from hfbench.engines.builders.base import builder_of

        builder = builder_of(str(values.get("builder", cls.builder)))
        return builder.needs, builder.extra

    def perform(self, run: Run) -> EngineBuildResult:
        """Build beside the folder, prove, and give it its name."""
        from hfbench.engines.build import build_engine  # torch enters here, in the worker

        spec = spec_of(self)
        words = shlex.split(command_line(("hfbench", "engine", "build"), spec.params, spec.values(self)))
        made = build_engine(self, expand(str(self.out)).absolute(), run, argv=tuple(words))
        manifest = made.manifest
        return EngineBuildResult(
            folder=str(made.folder),
            id=made.id,
            recipe=recipe_of(manifest),
            builder=manifest.builder,
            model=self.model,
            device=manifest.built_on.gpu.name if manifest.built_on.gpu else "cpu",
            dtype=manifest.dtype,
            shapes=manifest.shapes,
            files=len(manifest.files),
            bytes=sum(each.size for each in manifest.files),
            seconds=manifest.seconds,
            verdict=manifest.proof.verdict if manifest.proof else "not run",
            proof=manifest.proof,
            signed_by=manifest.source.signed_by,
            licence=manifest.source.licence,
        )
