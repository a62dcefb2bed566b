"""fit: whether a model fits a GPU, term by term, from headers or from the configuration alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.estimate.facts import CacheShare, FitReport
from hfbench.text import clip_middle, printable
from hfbench.units import show_bytes, show_count

if TYPE_CHECKING:
    from hfbench.estimate.devices import Device
    from hfbench.jobs.run import Run

WIDTH = 80
LABEL = 12
SHOWN_KINDS = 4
SHOWN_WARNINGS, SHOWN_GUESSES = 3, 2

WEIGHED = {
    "headers": "from headers",
    "architecture": "by architecture",
    "files": "sizes of files",
}


@dataclass(frozen=True, kw_only=True)
class FitResult(FitReport):
    """The verdict; `failed` when the model does not fit or its weights are incomplete."""

    def lines(self) -> list[str]:
        """The verdict for people, at most 80 columns wide."""
        rows = [*_model_rows(self), *_term_rows(self), *_verdict_rows(self), *_note_rows(self)]
        return [f"{label:<{LABEL}}{text}".rstrip() for label, text in rows]


@action("fit", result=FitResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class Fit:
    """Tell whether a model fits a GPU, and which term is in the way."""

    model: str = param("Folder, or repository in the Hugging Face cache", kind="model", positional=True)
    gpu: str | None = param("GPU by name, or its memory such as 24GiB; default those of this machine", default=None)
    context: int | None = param(
        "Tokens of a sequence; default the model's limit, 32768 at most", default=None, ge=1, le=2**30, unit="token"
    )
    batch: int = param("Sequences at once", default=1, ge=1, le=2**20)
    dtype: str | None = param("Type of the weights, packed ones unpacked; default as stored", default=None)
    kv_dtype: str | None = param("Type of the KV cache, such as fp8; default that of the model", default=None)
    tp: int = param("Tensor-parallel ranks", default=1, ge=1, le=1024)
    pp: int = param("Pipeline stages", default=1, ge=1, le=1024)
    ep: int = param("Expert-parallel ranks", default=1, ge=1, le=4096)
    runtime: str = param("Runtime to count for", default="vllm", choices=("vllm", "transformers"))
    cache_dir: Path | None = param("Hugging Face cache to look in", default=None, kind="path")

    def perform(self, run: Run) -> FitResult:
        """Read headers or configuration, then count; UsageError for ranks that do not divide the model."""
        from hfbench.estimate.devices import find_device
        from hfbench.estimate.report import Request, fit

        asked = {field.name: getattr(self, field.name) for field in fields(Request)}
        device, present, notes = (find_device(self.gpu), None, ()) if self.gpu else _of_this_machine()
        report = fit(
            self.model, Request(**asked), device=device, present=present, cache_dir=self.cache_dir, notes=notes
        )
        return FitResult(**{field.name: getattr(report, field.name) for field in fields(report)})


Row = tuple[str, str]


def _of_this_machine() -> tuple[Device | None, int | None, tuple[str, ...]]:
    """The GPU here with the least memory, how many there are, or the reason why there is none."""
    from hfbench.estimate.devices import Device
    from hfbench.gpu.reading import Unavailable
    from hfbench.gpu.telemetry import Sampler

    sampler = Sampler()
    try:
        snapshot = sampler.sample()
    finally:
        sampler.close()
    sizes = [
        (int(each.memory.total), str(each.name))
        for each in snapshot.devices
        if not each.reason and not isinstance(each.memory.total, Unavailable)
    ]
    if not sizes:
        reason = snapshot.reason or "no GPU tells its memory"
        return None, None, (f"no verdict without a GPU ({reason}): name one with --gpu",)
    memory, name = min(sizes)
    return Device(name=printable(name), memory_bytes=memory, source="the driver of this machine"), len(sizes), ()


def _model_rows(result: FitReport) -> Iterator[Row]:
    yield "model", _fit(result.model)
    if result.weight_bytes is None:
        yield "weights", "not known"
    else:
        counted = f", {show_count(result.parameters)} parameters ({result.parameters:,})" if result.parameters else ""
        yield "weights", _fit(f"{show_bytes(result.weight_bytes)}, {WEIGHED[result.source]}{counted}")
    ranks = "".join(f", {name} {value}" for name, value in _ranks(result) if value > 1)
    limit = f" of {result.context_limit:,}" if result.context_limit else ""
    yield "asked", f"context {result.context:,}{limit}, batch {result.batch:,}{ranks}"
    yield "", f"{result.dtype}, KV cache {result.kv_dtype}, {result.runtime}"
    if result.kv_bytes_per_token is None:
        yield "KV cache", "not known"
        return
    next_token = f", {result.kv_bytes_of_next_token:,} for the next" if _windowed(result) else ""
    yield "KV cache", f"{result.kv_bytes_per_token:,} bytes a token{next_token}"
    for share in result.cache[:SHOWN_KINDS]:
        yield "", _fit(_kind(share))
    if len(result.cache) > SHOWN_KINDS:
        yield "", f"and {len(result.cache) - SHOWN_KINDS} more kinds of layers"


def _ranks(result: FitReport) -> tuple[tuple[str, int], ...]:
    return ("tp", result.tp), ("pp", result.pp), ("ep", result.ep)


def _windowed(result: FitReport) -> bool:
    return result.kv_bytes_of_next_token != result.kv_bytes_per_token


def _kind(share: CacheShare) -> str:
    """`12 sliding_attention: 2,048 a token, 128 tokens at most`."""
    told = [f"{share.bytes_per_token:,} a token" if share.bytes_per_token else ""]
    told += [f"{share.window:,} tokens at most" if share.window else ""]
    told += [f"one entry in {share.every}" if share.every > 1 else ""]
    told += [f"{share.fixed_tokens:,} tokens always" if share.fixed_tokens else ""]
    told += [f"a state of {show_bytes(share.state_bytes)}" if share.state_bytes else ""]
    return f"{share.layers} {share.kind}: {', '.join(filter(None, told)) or 'nothing kept'}"


def _term_rows(result: FitReport) -> Iterator[Row]:
    """Two terms a line, the largest first."""
    ordered = sorted(result.terms.items(), key=lambda item: -item[1])
    cells = [f"{name.replace('_', ' '):<16}{show_bytes(size):>10}" for name, size in ordered]
    for place in range(0, len(cells), 2):
        yield "" if place else "on a GPU", "    ".join(cells[place : place + 2])


def _verdict_rows(result: FitReport) -> Iterator[Row]:
    if result.total_bytes is not None:
        yield "total", show_bytes(result.total_bytes)
    device = result.device
    if device is None:
        return
    yield "GPU", _fit(f"{device.needed} x {device.name}, {show_bytes(device.usable_bytes)} usable each")
    if result.fits:
        assert result.total_bytes is not None
        yield "verdict", f"ok fits, {show_bytes(device.usable_bytes - result.total_bytes)} to spare"
    elif result.fits is False and result.limiting == "gpus":
        yield "verdict", f"x needs {device.needed} GPUs, this machine has {device.present}"
    elif result.fits is False:
        yield "verdict", f"x does not fit: {str(result.limiting).replace('_', ' ')} is what passes the memory"
    else:
        yield "verdict", "? what is known fits, but not everything is known"
    if result.largest_context is not None and result.largest_batch is not None:
        most = f"context {result.largest_context:,} at batch {result.batch:,}"
        yield "at most", f"{most}; batch {result.largest_batch:,} at context {result.context:,}"


def _note_rows(result: FitReport) -> Iterator[Row]:
    for sign, notes, most in (("!", result.warnings, SHOWN_WARNINGS), ("~", result.guesses, SHOWN_GUESSES)):
        label = "warnings" if sign == "!" else "guesses"
        for place, note in enumerate(notes[:most]):
            for number, line in enumerate(wrap(printable(note), WIDTH - LABEL - 2, max_lines=2, placeholder=" ...")):
                yield "" if place or number else label, f"{'  ' if number else sign + ' '}{line}"
        if len(notes) > most:
            yield "", f"and {len(notes) - most} more (--json lists all)"


def _fit(text: str) -> str:
    return clip_middle(printable(text), WIDTH - LABEL, ellipsis="...")
