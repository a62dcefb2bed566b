"""From a reference to a verdict: reads the model once, then counts for the workload asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hfbench.estimate.axes import allowed_ranks, batches_around, contexts_around
from hfbench.estimate.cache_bytes import cache_shares, kv_bytes_of_next_token, kv_bytes_per_token
from hfbench.estimate.devices import Device
from hfbench.estimate.facts import FitCell, FitDevice, FitReport
from hfbench.estimate.fit import FORMULAS, GUESSED, Estimate, estimate, grid, largest_batch, largest_context
from hfbench.estimate.model import Reading, read_model
from hfbench.estimate.runtimes import SIZES, dtype_named, runtimes
from hfbench.estimate.workload import Workload, check_layout
from hfbench.models.problem import listed
from hfbench.models.reference import resolve

USUAL_CONTEXT = 32_768
"""Tokens counted for where nobody says and the model allows more."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked, as it was written. None means the default of the model."""

    context: int | None = None
    batch: int = 1
    dtype: str | None = None
    kv_dtype: str | None = None
    tp: int = 1
    pp: int = 1
    ep: int = 1
    runtime: str = "vllm"
    grid: bool = False
    """Also the contexts and batches around the ones asked for."""


def fit(
    model: str,
    request: Request,
    *,
    device: Device | None,
    present: int | None = None,
    cache_dir: Path | None = None,
    notes: Sequence[str] = (),
) -> FitReport:
    """The report on a reference. `present` counts the GPUs of this machine; None where the device is only named.

    NotFound when there is no model; UsageError for types and ranks that cannot be.
    """
    location = resolve(model, cache_dir=cache_dir)
    runtime = runtimes()[request.runtime]
    dtype = dtype_named(request.dtype) if request.dtype else None
    kv_dtype = dtype_named(request.kv_dtype) if request.kv_dtype else None
    reading = read_model(location, runtime=runtime, dtype=dtype)
    notes = (*filter(None, [location.note]), *notes)
    work = workload_of(reading, request, kv_dtype)
    check_layout(reading.model, work)
    found = estimate(reading.model, work)
    target = _target(device, work, present) if device else None
    return _report(reading, work, found, target, folder=str(location.folder), asked=request, notes=notes)


def workload_of(reading: Reading, request: Request, kv_dtype: str | None = None) -> Workload:
    """The workload with every default filled in."""
    limit = reading.model.limit
    return Workload(
        runtime=runtimes()[request.runtime],
        dtype=reading.dtype,
        weight_dtype=reading.weight_dtype,
        kv_dtype=kv_dtype or reading.dtype,
        context=request.context or min(limit or USUAL_CONTEXT, USUAL_CONTEXT),
        batch=request.batch,
        tp=request.tp,
        pp=request.pp,
        ep=request.ep,
    )


def _target(device: Device, work: Workload, present: int | None) -> FitDevice:
    return FitDevice(
        name=device.name,
        memory_bytes=device.memory_bytes,
        usable_bytes=int(device.memory_bytes * work.runtime.usable),
        needed=work.gpus,
        present=present,
        source=device.source,
        nominal=device.nominal,
        note=device.note,
    )


def _report(
    reading: Reading,
    work: Workload,
    found: Estimate,
    target: FitDevice | None,
    *,
    folder: str,
    asked: Request,
    notes: Sequence[str],
) -> FitReport:
    model = reading.model
    known = _weighed(reading)
    fits, limiting = _verdict(reading, found, target)
    memory = target.usable_bytes if target and known and model.caches is not None else None
    return FitReport(
        model=model.name,
        folder=folder,
        source=reading.source,
        parameters=model.weights.parameters if known else None,
        tensors=model.weights.tensors if known else None,
        weight_bytes=model.weights.stored if known else None,
        kv_bytes_per_token=(
            kv_bytes_per_token(model.caches, work.runtime, SIZES[work.kv_dtype]) if model.caches is not None else None
        ),
        kv_bytes_of_next_token=kv_bytes_of_next_token(model, work) if model.caches is not None else None,
        cache=cache_shares(model, work),
        terms=dict(_terms(reading, found)),
        formulas={name: FORMULAS[name] for name in found.terms},
        total_bytes=sum(_terms(reading, found).values()) if known and model.caches is not None else None,
        device=target,
        fits=fits,
        limiting=limiting,
        largest_context=largest_context(model, work, memory) if memory else None,
        largest_batch=largest_batch(model, work, memory) if memory else None,
        context=work.context,
        context_limit=model.limit,
        batch=work.batch,
        dtype=work.weight_dtype,
        kv_dtype=work.kv_dtype,
        tp=work.tp,
        pp=work.pp,
        ep=work.ep,
        runtime=work.runtime.name,
        allowed=allowed_ranks(model, work),
        grid=_grid(reading, work, memory) if memory and asked.grid else (),
        guesses=_guesses(reading, work, found, asked, target),
        warnings=_warnings(reading, work, notes),
        failed=fits is False or bool(reading.broken),
    )


def _weighed(reading: Reading) -> bool:
    """True when the weights are known at all."""
    return reading.source != "architecture" or reading.architecture.parts is not None


def _terms(reading: Reading, found: Estimate) -> dict[str, int]:
    """The terms that are known: no configuration means no figure for the cache."""
    unknown = set() if reading.model.caches is not None else {"kv_cache", "activations", "logits"}
    unknown |= set() if _weighed(reading) else {"weights"}
    return {name: size for name, size in found.terms.items() if name not in unknown}


def _verdict(reading: Reading, found: Estimate, target: FitDevice | None) -> tuple[bool | None, str | None]:
    """(fits, limiting); None for both where something is not known and what is known fits."""
    if target is None:
        return None, None
    if target.present is not None and target.needed > target.present:
        return False, "gpus"
    known = Estimate(_terms(reading, found), found.stage)
    if limiting := known.limiting(target.usable_bytes):
        return False, limiting
    if reading.model.caches is None or not _weighed(reading):
        return None, None
    return True, None


def _grid(reading: Reading, work: Workload, memory: int) -> tuple[tuple[FitCell, ...], ...]:
    contexts = contexts_around(work.context, reading.model.limit)
    return grid(reading.model, work, memory, contexts, batches_around(work.batch))


def _guesses(
    reading: Reading, work: Workload, found: Estimate, asked: Request, target: FitDevice | None
) -> tuple[str, ...]:
    told = [*reading.guesses, *((target.note,) if target and target.note else ())]
    if target and target.nominal:
        told.append(f"the memory of {target.name} is the one in its name; its driver tells a little less")
    if asked.context is None:
        told.append(f"context: {work.context:,} tokens, as none is asked for")
    if any(cache.window for cache in reading.model.caches or ()) and work.runtime.name == "vllm":
        told.append("sliding layers are counted by their window; vLLM's pages may reserve more")
    if "index_keys" in found.terms:
        told.append("index keys are counted at the type of the cache; vLLM packs them to a byte and a scale")
    told += [text for name, text in GUESSED.items() if name in found.terms]
    return tuple(dict.fromkeys(told))


def _warnings(reading: Reading, work: Workload, notes: Sequence[str]) -> tuple[str, ...]:
    told = [*notes, *reading.warnings]
    limit = reading.model.limit
    if limit and work.context > limit:
        told.insert(0, f"context {work.context:,} is beyond the model's limit of {limit:,} tokens")
    if reading.broken:
        where = listed(dict.fromkeys(problem.where for problem in reading.broken if problem.where))
        told.insert(0, f"weights are incomplete, the figures too small: {where or reading.broken[0].found}")
    return tuple(dict.fromkeys(told))
