"""Every case of a kernel in Triton's interpreter, in processes: is it right, does it stay inside its arguments?"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hfbench.errors import UsageError
from hfbench.gpu.kernels.loading import KernelFile
from hfbench.gpu.kernels.processes import NO_GPU, Crew, Loading, Outcome, unwatched
from hfbench.gpu.kernels.results import CheckRow

MODULE = "hfbench.gpu.kernels.interpreted"
ENVIRONMENT = {**NO_GPU, "TRITON_INTERPRET": "1"}

SECONDS = 60.0
"""CPU seconds a case may take; those of small problems take less than one."""

MOST_LATE = 3
"""Cases that may take too long before the others are skipped: a kernel that hangs seldom hangs on one."""
SKIPPED = f"{MOST_LATE} cases took too long, this one was not run"

CASES_A_PROCESS = 24
"""Starting another process, which imports torch, is worth it from so many cases on."""


@dataclass(frozen=True, kw_only=True)
class CheckReport:
    """All cases of one kernel, in the order of its configurations."""

    kernel: str
    file: str
    triton: str
    rows: tuple[CheckRow, ...]


def interpret_all(
    file: KernelFile,
    *,
    dtypes: Sequence[str] = (),
    config: str = "",
    seconds: float = SECONDS,
    workers: int = 0,
    watch: Callable[[int, int], None] = lambda done, total: None,
    loading: Loading = unwatched,
) -> CheckReport:
    """Run every shape in every element type (or those asked for) through the configurations whose label holds `config`.

    Configurations that differ only in warps, stages or options are one to the interpreter. UsageError for what the
    kernel does not declare.
    """
    with Crew(MODULE, file.path, size=1, seconds=seconds, environment=ENVIRONMENT, loading=loading) as crew:
        plan = crew.load()
        tasks = list(_tasks(plan, tuple(dtypes), config))
        crew.size = min(workers or len(os.sched_getaffinity(0)), 1 + len(tasks) // CASES_A_PROCESS)
        rows: dict[int, CheckRow | None] = {}
        watch(0, len(tasks))
        late = 0
        for place, outcome in crew.perform(tasks):
            rows[place] = _row(plan["name"], tasks[place], outcome)
            watch(len(rows), len(tasks))
            late += outcome.ending == "timeout"
            if late == MOST_LATE:
                break
    for place in range(len(tasks)):
        if place not in rows:
            rows[place] = CheckRow(kernel=plan["name"], **tasks[place], verdict="skipped", reason=SKIPPED)
    ordered = tuple(row for place in range(len(tasks)) if (row := rows[place]))
    return CheckReport(kernel=plan["name"], file=str(file.path), triton=plan["triton"], rows=ordered)


def _tasks(plan: Mapping[str, Any], dtypes: tuple[str, ...], config: str) -> Iterator[dict[str, Any]]:
    """One task a case; of configurations with the same constants the first."""
    for dtype in dtypes:
        if dtype not in plan["dtypes"]:
            raise UsageError(f"takes {', '.join(plan['dtypes'])}, not {dtype[:40]!r}", where=plan["name"])
    alike = {each["tile"]: each["label"] for each in reversed(plan["configs"]) if config in each["label"]}
    if not alike:
        labels = ", ".join(each["label"] for each in plan["configs"])
        raise UsageError(
            f"no configuration is called {config[:80]!r}", where=plan["name"], remedy=f"there are {labels}"
        )
    for label in reversed(alike.values()):
        for dtype in dtypes or plan["dtypes"]:
            for shape in plan["shapes"]:
                yield {"config": label, "dtype": dtype, "shape": shape}


def _row(kernel: str, task: Mapping[str, Any], outcome: Outcome) -> CheckRow | None:
    """The row of a case; None where the configuration cannot serve the problem."""
    told = outcome.answer
    if outcome.ending != "answered":
        return CheckRow(kernel=kernel, **task, verdict=outcome.ending, reason=outcome.reason)
    if told["verdict"] == "inapplicable":
        return None
    apart = told["difference"] or {}
    return CheckRow(
        kernel=kernel,
        **task,
        verdict=told["verdict"],
        reason=told["reason"],
        max_abs=_number(apart.get("max_abs")),
        max_rel=_number(apart.get("max_rel")),
        worst=_number(apart.get("worst")),
        output=apart.get("output", ""),
        where=tuple(apart.get("where", ())),
        seconds=told["seconds"],
    )


def _number(value: Any) -> float | None:
    """A figure that may have crossed the border as the name of what JSON cannot write."""
    return None if value is None else float(value)
