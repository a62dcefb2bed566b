"""Times a kernel file on one device, each configuration, reference and ceiling in a process of its own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hfbench.codec import decode
from hfbench.errors import MissingError, UsageError
from hfbench.gpu.kernels.loading import KernelFile
from hfbench.gpu.kernels.processes import NO_GPU, Crew, Loading, Outcome, unwatched
from hfbench.gpu.kernels.timing_results import Answer, Device, Timed, TimeRow
from hfbench.text import did_you_mean

MODULE = "hfbench.gpu.kernels.timing_child"
ENVIRONMENT = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
"""Devices are numbered as everywhere else here, and torch.compile starts no pool that would outlive its task."""

SECONDS = 180.0
"""CPU seconds a task may take: torch.compile alone may need one minute the first time."""
BUDGET, WIDTH = 0.5, 0.01
CEILINGS = ("copy", "matmul")
REFERENCES = ("eager", "compile")
_SIZE = re.compile(r"\s*(\w+)\s*=\s*(\d{1,12})\s*")


@dataclass(frozen=True, kw_only=True)
class TimeReport:
    """All rows of one kernel on one device; the ceilings are rows as well, with no configuration."""

    kernel: str
    file: str
    on: Device
    rows: tuple[TimeRow, ...]
    notes: tuple[str, ...]


def time_all(
    file: KernelFile,
    *,
    device: str,
    dtypes: Sequence[str] = (),
    sizes: Sequence[str] = (),
    config: str = "",
    width: float = WIDTH,
    budget: float = BUDGET,
    seconds: float = SECONDS,
    watch: Callable[[int, int], None] = lambda done, total: None,
    loading: Loading = unwatched,
) -> TimeReport:
    """Time the configurations whose label holds `config` beside eager, torch.compile, a copy and a matmul.

    `device` is `cuda:N`, or `cpu` for the references alone. UsageError for what the kernel does not declare.
    """
    if device == "cpu" and config:
        raise UsageError("the CPU times references, which have no configurations", remedy="leave out config")
    with timing_crew(file, device, seconds, loading) as crew:
        plan = crew.load()
        on = ask_device(crew, device)
        asked = {"device": device, "width": width, "budget": budget}
        tasks = [{**asked, **task} for task in _tasks(plan, on, dtypes, sizes, config)]
        answers: dict[int, Answer] = {}
        watch(0, len(tasks))
        for place, outcome in crew.perform(tasks):
            answers[place] = answer_of(outcome)
            watch(len(answers), len(tasks))
    rows = [row for place, task in enumerate(tasks) for row in _rows(plan["name"], task, answers[place])]
    return TimeReport(
        kernel=plan["name"], file=str(file.path), on=on, rows=tuple(_beside(rows)), notes=tuple(_notes(on))
    )


def timing_crew(file: KernelFile, device: str, seconds: float, loading: Loading = unwatched) -> Crew:
    """One process at a time: two would share the device that is measured."""
    environment = {**ENVIRONMENT, **(NO_GPU if device == "cpu" else {})}
    return Crew(MODULE, file.path, size=1, seconds=seconds, environment=environment, loading=loading)


def ask_device(crew: Crew, device: str) -> Device:
    """The device as torch sees it; MissingError with torch's own words when it cannot be used."""
    ((_, outcome),) = crew.perform([{"what": "device", "device": device}])
    if outcome.ending == "answered" and "capability" in outcome.answer:
        return decode(Device, outcome.answer)
    raise MissingError(
        f"cannot be used by torch: {outcome.answer.get('reason') or outcome.reason}",
        where=device,
        remedy="install a torch built for this GPU and its driver",
    )


def answer_of(outcome: Outcome) -> Answer:
    """What a task came to, whichever way its process ended."""
    if outcome.ending == "answered":
        return decode(Answer, outcome.answer)
    return Answer(verdict=outcome.ending, reason=outcome.reason)


def chosen_dtypes(plan: Mapping[str, Any], dtypes: Sequence[str]) -> tuple[str, ...]:
    """The element types asked for, or the kernel's usual one; UsageError for one it does not take."""
    for dtype in dtypes:
        if dtype not in plan["dtypes"]:
            raise UsageError(f"takes {', '.join(plan['dtypes'])}, not {dtype[:40]!r}", where=plan["name"])
    return tuple(dict.fromkeys(dtypes)) or tuple(plan["dtypes"][:1])


def chosen_sizes(plan: Mapping[str, Any], sizes: Sequence[str]) -> list[dict[str, int]]:
    """Sizes written `R=4096 C=8192`, or those the kernel declares as worth timing; UsageError for other axes."""
    declared: list[dict[str, int]] = plan["sizes"] or plan["shapes"]
    known = dict.fromkeys(axis for shape in [*plan["sizes"], *plan["shapes"]] for axis in shape)
    needed = [axis for axis in declared[0] if all(axis in shape for shape in declared)]
    return [_size(text, known, needed, plan["name"]) for text in sizes] or declared


def chosen_labels(plan: Mapping[str, Any], config: str) -> list[str]:
    """Configurations whose label holds `config`; UsageError when there is none."""
    labels = [each["label"] for each in plan["configs"]]
    found = [label for label in labels if config in label]
    if not found:
        hint = did_you_mean(config, labels) or f"there are {', '.join(labels)}"
        raise UsageError(f"no configuration is called {config[:80]!r}", where=plan["name"], remedy=hint)
    return found


def _size(text: str, known: Mapping[str, None], needed: Sequence[str], kernel: str) -> dict[str, int]:
    example = " ".join(f"{axis}=4096" for axis in needed)
    parts = [_SIZE.fullmatch(part) for part in re.split(r"[\s;]+", text.strip())]
    if not all(parts):
        raise UsageError(f"{text[:80]!r} is no size", where=kernel, remedy=f'write "{example}"')
    size = {part[1]: int(part[2]) for part in parts if part}
    if empty := next((axis for axis, length in size.items() if not length), ""):
        raise UsageError(f"{empty}=0 leaves nothing to time", where=kernel, remedy=f'write "{example}"')
    for axis in size:
        if axis not in known:
            hint = did_you_mean(axis, known) or f"it has {', '.join(known)}"
            raise UsageError(f"has no axis {axis[:40]!r}", where=kernel, remedy=hint)
    for axis in needed:
        if axis not in size:
            raise UsageError(f"{text[:80]!r} does not say {axis}", where=kernel, remedy=f'write "{example}"')
    return size


def _tasks(
    plan: Mapping[str, Any], on: Device, dtypes: Sequence[str], sizes: Sequence[str], config: str
) -> Iterator[dict[str, Any]]:
    kinds, shapes, labels = chosen_dtypes(plan, dtypes), chosen_sizes(plan, sizes), chosen_labels(plan, config)
    for ceiling in CEILINGS:
        yield {"what": ceiling}
    for dtype in kinds:
        for shape in shapes:
            problem = {"dtype": dtype, "shape": shape}
            for reference in REFERENCES:
                yield {"what": reference, **problem}
            for label in labels if on.capability != "cpu" else ():
                yield {"what": "triton", "config": label, **problem}


def _rows(kernel: str, task: Mapping[str, Any], answer: Answer) -> Iterator[TimeRow]:
    bare = TimeRow(
        kernel=kernel,
        subject=task["what"],
        config=task.get("config", ""),
        dtype=task.get("dtype", ""),
        shape=task.get("shape", {}),
        cache="",
        graph=False,
        verdict=answer.verdict,
        reason=answer.reason,
    )
    yield from [_figured(bare, answer, timed) for timed in answer.timed] or [bare]


def _figured(bare: TimeRow, answer: Answer, timed: Timed) -> TimeRow:
    row = replace(bare, cache=timed.cache, graph=timed.graph, verdict=timed.verdict, reason=timed.reason)
    if timed.time is None or not timed.time.p50:
        return row
    return replace(
        row,
        time=timed.time,
        bandwidth=answer.bytes_moved / timed.time.p50,
        rate=answer.flops / timed.time.p50,
        calls=timed.calls,
        stop=timed.stop,
        verdicts=timed.verdicts,
    )


def _beside(rows: Sequence[TimeRow]) -> Iterator[TimeRow]:
    """Every row as a share of the ceilings: the best a copy and a matmul did, whichever way they were run."""
    copy = max((row.bandwidth or 0.0 for row in rows if row.subject == "copy"), default=0.0)
    matmul = max((row.rate or 0.0 for row in rows if row.subject == "matmul"), default=0.0)
    for row in rows:
        yield replace(
            row,
            of_copy=row.bandwidth / copy if row.bandwidth and copy else None,
            of_matmul=row.rate / matmul if row.rate and matmul else None,
        )


def _notes(on: Device) -> Iterator[str]:
    if on.capability == "cpu":
        yield "no kernel was timed: on the CPU Triton has only an interpreter, whose time means nothing"
        yield f"references ran on {on.threads} CPU thread{'s' if on.threads > 1 else ''}"
    yield f"cold: one call behind a write of {on.flush_bytes:,} bytes, no less than the last cache holds"
    yield "warm: calls one after the other, over data that may lie in the cache; a share of the copy may exceed 100 %"
