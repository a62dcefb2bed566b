"""Every configuration of a kernel compiled for every architecture, with no GPU: does it fit, does it spill?"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hfbench.errors import UsageError
from hfbench.gpu.kernels.architectures import Architecture, Occupancy, occupancy
from hfbench.gpu.kernels.cache import Cache
from hfbench.gpu.kernels.loading import KernelFile
from hfbench.gpu.kernels.processes import NO_GPU, Crew, Loading, Outcome, unwatched
from hfbench.gpu.kernels.results import StaticRow
from hfbench.text import did_you_mean

MODULE = "hfbench.gpu.kernels.compiled"
ENVIRONMENT = {**NO_GPU, "TRITON_DUMP_PTXAS_LOG": "1"}
"""Triton then prints what its own run of the assembler says."""

SECONDS = 120.0
"""CPU seconds a configuration may take: common ones take 1 to 5, pathological ones over 100."""

KEPT = ("ok", "spills", "refused", "failed")
"""Verdicts of the compiler; that it took too long or crashed is the machine's and may be otherwise tomorrow."""


_IN_WORDS = {
    "spills": "",  # its reason says it
    "refused": "refused",
    "failed": "does not compile",
    "timeout": "not judged",
    "crash": "not judged",
}


@dataclass(frozen=True, kw_only=True)
class StaticReport:
    """All rows of one kernel, in the order of its configurations."""

    kernel: str
    file: str
    triton: str
    rows: tuple[StaticRow, ...]


def analyse(
    file: KernelFile,
    on: Sequence[Architecture],
    *,
    dtypes: Sequence[str] = (),
    config: str = "",
    seconds: float = SECONDS,
    workers: int = 0,
    use_cache: bool = True,
    compiles: bool = True,
    watch: Callable[[int, int], None] = lambda done, total: None,
    loading: Loading = unwatched,
) -> StaticReport:
    """Compile the configurations whose label holds `config`, `workers` at a time (0: one a CPU), for the kernel's usual
    element type unless others are asked for; with `compiles` False only rows of earlier runs are given, and no file is
    loaded. UsageError for what the kernel does not declare."""
    cache = Cache(file.path, file.digest, use=use_cache)
    if not compiles:
        return _remembered(cache, file, on, tuple(dtypes), config)
    size = workers or len(os.sched_getaffinity(0))
    with Crew(MODULE, file.path, size=size, seconds=seconds, environment=ENVIRONMENT, loading=loading) as crew:
        plan = cache.get("plan") or _keep_plan(cache, crew.load())
        wanted = list(_wanted(plan, on, tuple(dtypes), config))
        rows: dict[int, StaticRow] = {}
        for place, row in enumerate(wanted):
            if kept := cache.get(row.config, plan["tiles"][row.config], row.dtype, row.arch):
                rows[place] = _judged(row, _architecture(on, row), kept, cached=True)
        left = [place for place in range(len(wanted)) if place not in rows]
        if left:
            crew.load()
        watch(len(rows), len(wanted))
        for turn, outcome in crew.perform([_task(wanted[place], on) for place in left]):
            row = wanted[left[turn]]
            rows[left[turn]] = found = _found(row, _architecture(on, row), outcome)
            if found.verdict in KEPT:
                key = (row.config, plan["tiles"][row.config], row.dtype, row.arch)
                cache.put(*key, value=outcome.answer, neighbours=plan["neighbours"])
            watch(len(rows), len(wanted))
    ordered = tuple(rows[place] for place in range(len(wanted)))
    return StaticReport(kernel=plan["name"], file=str(file.path), triton=plan["triton"], rows=ordered)


def summary(rows: Sequence[StaticRow], cards: Mapping[str, Sequence[str]]) -> str:
    """What the rows of one configuration say, in words: `fine on A100, H100; refused on RTX 5090: 147456 > ...`."""
    told: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        word, reason = ("fine", "") if row.verdict == "ok" else (_IN_WORDS[row.verdict], row.reason)
        told.setdefault((word or reason, reason if word else ""), []).append("/".join(cards[row.arch]))
    return "; ".join(
        f"{word} on {', '.join(where)}{f': {reason}' if reason else ''}" for (word, reason), where in told.items()
    )


def _remembered(
    cache: Cache, file: KernelFile, on: Sequence[Architecture], dtypes: tuple[str, ...], config: str
) -> StaticReport:
    """The rows that are kept; none of a kernel that was never compiled, or not since it changed."""
    if (plan := cache.get("plan")) is None:
        return StaticReport(kernel=file.name, file=str(file.path), triton="", rows=())
    rows = [
        _judged(row, _architecture(on, row), kept, cached=True)
        for row in _wanted(plan, on, dtypes, config)
        if (kept := cache.get(row.config, plan["tiles"][row.config], row.dtype, row.arch))
    ]
    return StaticReport(kernel=plan["name"], file=str(file.path), triton=plan["triton"], rows=tuple(rows))


def _keep_plan(cache: Cache, plan: dict[str, Any]) -> dict[str, Any]:
    kept = {**plan, "tiles": {each["label"]: each["tile"] for each in plan["configs"]}}
    cache.put("plan", value=kept, neighbours=plan["neighbours"])
    return kept


def _wanted(
    plan: Mapping[str, Any], on: Sequence[Architecture], dtypes: tuple[str, ...], config: str
) -> Sequence[StaticRow]:
    """A row without figures for each thing to compile; UsageError for an element type or a configuration not there."""
    for dtype in dtypes:
        if dtype not in plan["dtypes"]:
            raise UsageError(f"takes {', '.join(plan['dtypes'])}, not {dtype[:40]!r}", where=plan["name"])
    chosen = [each for each in plan["configs"] if config in each["label"]]
    if not chosen:
        labels = [each["label"] for each in plan["configs"]]
        hint = did_you_mean(config, labels) or f"there are {', '.join(labels)}"
        raise UsageError(f"no configuration is called {config[:80]!r}", where=plan["name"], remedy=hint)
    return [
        StaticRow(
            kernel=plan["name"],
            config=each["label"],
            dtype=dtype,
            arch=arch.name,
            shared_limit=arch.shared_block,
            warps=each["warps"],
            stages=each["stages"],
            verdict="failed",
        )
        for each in chosen
        for dtype in dtypes or plan["dtypes"][:1]
        for arch in on
    ]


def _task(row: StaticRow, on: Sequence[Architecture]) -> dict[str, Any]:
    return {"config": row.config, "dtype": row.dtype, "number": _architecture(on, row).number}


def _architecture(on: Sequence[Architecture], row: StaticRow) -> Architecture:
    return next(each for each in on if each.name == row.arch)


def _found(row: StaticRow, on: Architecture, outcome: Outcome) -> StaticRow:
    if outcome.ending != "answered":
        return replace(row, verdict=outcome.ending, reason=outcome.reason)
    return _judged(row, on, outcome.answer, cached=False)


def _judged(row: StaticRow, on: Architecture, told: Mapping[str, Any], *, cached: bool) -> StaticRow:
    """The row with the figures of a compilation and what follows from them."""
    row = replace(row, seconds=told["seconds"], cached=cached)
    if told["late"]:
        return replace(row, verdict="timeout", reason="assembling took longer than it may")
    if told["failed"]:
        return replace(row, verdict="failed", reason=told["failed"])
    by_default, loaded = told["assembled"] or {}, told["loaded"] or {}
    runs = loaded or by_default
    row = replace(
        row,
        registers=by_default.get("registers"),
        spills=by_default.get("spills"),
        spill_loads=by_default.get("spill_loads"),
        loaded_registers=loaded.get("registers"),
        loaded_spills=loaded.get("spills"),
        shared_bytes=told["shared_bytes"],
        matrix=told["matrix"],
        warps=told["warps"],
    )
    fits = not (problems := _too_much(row, on, told["tensor_columns"]))
    problems += _spilled(row)
    at_best = Occupancy(share=0.0, blocks=0, limited_by="")
    if fits and runs:
        at_best = occupancy(on, registers=runs["registers"], shared=told["shared_bytes"], warps=row.warps)
    return replace(
        row,
        verdict="refused" if not fits else "spills" if problems else "ok",
        reason="; ".join(problems),
        occupancy=round(at_best.share, 4),
        blocks=at_best.blocks,
        limited_by=at_best.limited_by,
    )


def _too_much(row: StaticRow, on: Architecture, columns: int) -> list[str]:
    told = []
    if row.shared_bytes is not None and row.shared_bytes > on.shared_block:
        told.append(f"{row.shared_bytes} > {on.shared_block} bytes of shared memory")
    if on.tensor_columns and columns > on.tensor_columns:
        told.append(f"{columns} > {on.tensor_columns} columns of tensor memory")
    return told


def _spilled(row: StaticRow) -> list[str]:
    if not row.spills and not row.loaded_spills:
        return []
    if row.loaded_spills in (None, row.spills):
        return [f"spills {row.spills} bytes"]
    if not row.spills:
        return [f"spills {row.loaded_spills} bytes as Triton assembles it, none by ptxas's defaults"]
    return [f"spills {row.spills} bytes, {row.loaded_spills or 'none'} as Triton assembles it"]
