"""Results as jobs leave them, written without running a model: whatever a test says of them is made up here."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hfbench.codec import encode
from hfbench.gpu.timing import formulas
from hfbench.gpu.timing.samples import Samples
from hfbench.jobs.directory import ID, JobDirectory
from hfbench.paths import jobs_root

HERE = {"host": "box", "cpu": "Some CPU", "cores": 2, "python": "3.11.7", "versions": {"torch": "2.13.0"}}
QUIET = [{"word": "stable", "detail": "every median is known within 1.0%", "next": "nothing to do"}]
PARAMS = {"model": "./smol", "dtype": "bf16", "batch": 1, "new_tokens": 4}


def times(middle: float, *, count: int = 100, spread: float = 0.005, seed: int = 1) -> list[float]:
    """Samples around a median, in seconds, with a relative standard deviation."""
    lots = random.Random(seed)
    return [middle * lots.lognormvariate(0, spread) for _ in range(count)]


def summary(name: str, values: Sequence[float], formula: formulas.Formula = formulas.TPOT) -> dict[str, Any]:
    """A summary as a result holds it."""
    return dict(encode(Samples(name, formula, list(values)).summary()))


def result(tpot: Sequence[float], *, verdicts: list[dict[str, str]] | None = None, **more: Any) -> dict[str, Any]:
    """What bench.generate might have given, with the rate that belongs to the times."""
    rates = [1 / each for each in tpot]
    return {
        "model": "./smol",
        "metrics": {"tpot": summary("tpot", tpot), "throughput": summary("rate", rates, formulas.THROUGHPUT)},
        "verdicts": QUIET if verdicts is None else verdicts,
        "headline": f"tpot {tpot[0]:.3g} s",
        **more,
    }


def make_job(
    found: Mapping[str, Any] | None,
    *,
    number: int = 1,
    action: str = "bench.generate",
    params: Mapping[str, Any] | None = None,
    environment: Mapping[str, Any] | None = None,
    last: Mapping[str, Any] | None = None,
) -> str:
    """A job folder that is over; its id. Without a result it ended as `last` says, else it died."""
    job = JobDirectory(jobs_root() / f"2026-11-29T20-11-{number:02d}-{action}-{number:06x}")
    assert ID.fullmatch(job.id)
    job.path.mkdir(parents=True)
    created = 1_796_000_000.0 + number
    request = {"v": 1, "action": action, "created": created, "params": dict(params or PARAMS), "hfbench": "0.1.0"}
    job.write("request.json", request)
    job.write("environment.json", dict(HERE if environment is None else environment))
    events = [{"v": 1, "kind": "running", "at": created + 1, "device": "cpu"}]
    if found is not None:
        job.write("result.json", {"action": action, "seconds": 2.0, "result": dict(found)})
        events.append({"v": 1, "kind": "finished", "at": created + 3, "seconds": 2.0})
    elif last is not None:
        events.append({"v": 1, "at": created + 3, **last})
    job.events.write_text("".join(json.dumps(each) + "\n" for each in events))
    return job.id


def results_file(path: Path, cells: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]], **begun: Any) -> Path:
    """The results of a script with one step a cell, as `--results` writes them; without a result the step failed."""
    lines: list[dict[str, Any]] = [
        {"event": "run_started", "v": 1, "name": "nightly", "hfbench": "0.1.0", "at": 1.0, "environment": HERE, **begun}
    ]
    for number, (values, found) in enumerate(cells):
        whole = dict(found or {})
        metrics = whole.pop("metrics", None)
        where = {"cell": dict(values), "step": 1, "line": 3, "action": "bench.generate", "at": 2.0 + number}
        error = None if found is not None else {"found": "out of memory"}
        lines.append(
            {
                "event": "step_finished",
                **where,
                "status": "failed" if error else "ok",
                "duration_s": 1.5,
                "metrics": metrics,
                "result": whole if found is not None else None,
                "job": None,
                "error": error,
            }
        )
        told = {"expr": "tpot.p50 < 1 s", "actual": 0.05, "unit": "s", "ok": found is not None, "reason": ""}
        lines.append({"event": "assert", **where, **told})
    lines.append({"event": "run_finished", "at": 99.0, "exit": 0})
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return path
