"""inspect: what a model is, from its files alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.line_width import cut, paragraph, room
from hfbench.models.facts import ModelSummary
from hfbench.models.problem import Problem, counted
from hfbench.text import clip_middle, printable
from hfbench.units import show_bytes, show_count

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

LABEL = 11
SHOWN_DTYPES = 5
SHOWN_TENSORS = 3
SHOWN_PROBLEMS = 5

_SIGNS = {"error": "x", "warning": "!", "info": "~"}


@dataclass(frozen=True, kw_only=True)
class InspectResult(ModelSummary):
    """The facts of a model; `failed` when a file is missing or broken."""

    failed: bool

    def lines(self) -> list[str]:
        """The facts for people, as wide as the terminal."""
        rows = [*_identity(self), *_weights(self), *_shape(self), *_tensors(self), *_findings(self)]
        return [f"{label:<{LABEL}}{text}".rstrip() for label, text in rows]


@action("inspect", result=InspectResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class Inspect:
    """Read what a model is: parameters, dtypes, shape, tokenizer, and what is wrong with its files."""

    model: str = param("Folder, or repository in the Hugging Face cache", kind="model", positional=True)
    cache_dir: Path | None = param("Hugging Face cache to look in", default=None, kind="path")

    def perform(self, run: Run) -> InspectResult:
        """Summarise the folder; NotFound when it holds no model at all."""
        from hfbench.models.summary import summarise

        summary = summarise(self.model, cache_dir=self.cache_dir)
        facts = {field.name: getattr(summary, field.name) for field in fields(summary)}
        return InspectResult(failed=summary.broken, **facts)


Row = tuple[str, str]


def _identity(result: ModelSummary) -> Iterator[Row]:
    kind = " ".join(filter(None, [result.architecture, f"({result.model_type})" if result.model_type else ""]))
    yield "model", _fit(result.model)
    yield "type", _fit(kind or "not told by a configuration")
    commit = f" at {result.commit[:12]}" if result.commit else ""
    yield "folder", _fit(result.folder)
    size = f"{counted(result.files, 'file')}, {show_bytes(result.disk_bytes)}"
    left = "; of the weights only the headers are here" if result.source == "remote" else ""
    yield "source", _fit(f"{result.source}{commit}, {size}{left}")


def _weights(result: ModelSummary) -> Iterator[Row]:
    stored = show_bytes(result.weight_bytes)
    files, tensors = counted(result.shards, "file"), counted(result.tensors, "tensor")
    yield "weights", f"{result.format}, {files} read, {tensors}, {stored}"
    if not result.tensors:
        return
    packed = f", stored elements ({result.quantization})" if result.quantization else ""
    yield "parameters", _fit(f"{show_count(result.parameters)} ({result.parameters:,}){packed}")
    for place, (dtype, share) in enumerate(list(result.dtypes.items())[:SHOWN_DTYPES]):
        part = 100 * share.bytes / result.weight_bytes if result.weight_bytes else 0.0
        text = f"{dtype:<12}{show_bytes(share.bytes):>10}  {part:5.1f} %  {counted(share.tensors, 'tensor')}"
        yield "" if place else "dtypes", text
    if len(result.dtypes) > SHOWN_DTYPES:
        yield "", f"and {len(result.dtypes) - SHOWN_DTYPES} more"


def _shape(result: ModelSummary) -> Iterator[Row]:
    heads = f"{result.heads}/{result.kv_heads} heads" if result.heads else None
    facts = [
        counted(result.layers, "layer") if result.layers else None,
        f"hidden {result.hidden:,}" if result.hidden else None,
        heads and (f"{heads} of {result.head_dim}" if result.head_dim else heads),
        counted(result.experts, "expert") if result.experts else None,
        f"context {result.context:,}" if result.context else None,
        f"vocabulary {result.vocab:,}" if result.vocab else None,
        {True: "tied", False: "untied", None: None}[result.tied],
    ]
    known = ", ".join(filter(None, facts))
    for place, line in enumerate(paragraph(known, LABEL)):
        yield "" if place else "shape", line
    tokenizer = result.tokenizer
    told = [
        tokenizer.tokenizer_class or tokenizer.model,
        f"{tokenizer.vocab_size:,} tokens" if tokenizer.vocab_size is not None else None,
        "chat template" if tokenizer.chat_templates else None,
    ]
    yield "tokenizer", _fit(", ".join(filter(None, told)) or ("files without facts" if tokenizer.files else "none"))


def _tensors(result: ModelSummary) -> Iterator[Row]:
    for place, tensor in enumerate(result.biggest[:SHOWN_TENSORS]):
        size = show_bytes(tensor.bytes)
        detail = clip_middle("x".join(map(str, tensor.shape)) or "scalar", room(20, shares=2), ellipsis="...")
        name = cut(printable(tensor.name), LABEL + len(size) + len(detail) + len(tensor.dtype) + 6)
        yield "" if place else "biggest", f"{size}  {tensor.dtype}  {detail}  {name}"


def _findings(result: ModelSummary) -> Iterator[Row]:
    for place, problem in enumerate(result.problems[:SHOWN_PROBLEMS]):
        for number, line in enumerate(_wrapped(problem)):
            yield "" if place or number else "problems", line
    if len(result.problems) > SHOWN_PROBLEMS:
        yield "", f"and {len(result.problems) - SHOWN_PROBLEMS} more (--json lists all)"


def _wrapped(problem: Problem) -> list[str]:
    return paragraph(f"{_SIGNS[problem.severity]} {problem}", LABEL, most=3, later="  ")


def _fit(text: str) -> str:
    return cut(printable(text), LABEL)
