"""What a job costs beside its work: to begin, to be seen at its end, as a cell of a sweep and as a step of a script."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from claims import Claim, Record, finish, run

ROOT = Path(__file__).resolve().parents[1]
ACTIONS = ROOT / "tests" / "toys"
MANY, FEW = 22, 2
"""Cells or steps of the two runs whose difference is the cost of one: what both have in common falls out."""

FIRST = Claim(
    name="jobs-first-event",
    sentence="a job's first event comes at most twice as long after its launch as a Python takes to import its worker",
    bound=2.0,
)
SEEN = Claim(
    name="jobs-seen",
    sentence="a reader has seen a job's last event 250 ms after it was written",
    bound=0.250,
)
CELL = Claim(
    name="jobs-cell",
    sentence="a cell of a sweep costs at most 150 ms of CPU beyond its action, with warm workers",
    bound=0.150,
    unit="s CPU",
)
COLD = Claim(
    name="jobs-cell-cold",
    sentence="a cell of a sweep costs at most 150 ms of CPU beyond its action and the imports of its worker, all cold",
    bound=0.150,
    unit="s CPU",
)
STEP = Claim(
    name="jobs-step",
    sentence="a step of a script that is a job costs at most 150 ms of CPU beyond its action and its worker's imports",
    bound=0.150,
    unit="s CPU",
)
INLINE = Claim(
    name="jobs-step-inline",
    sentence="a step of a script that is no job costs at most 10 ms of CPU, its action included",
    bound=0.010,
    unit="s CPU",
)
WARM = Claim(
    name="jobs-warm",
    sentence="a cell that needs torch and transformers costs at most half the CPU of a cold one with warm workers",
    bound=0.5,
    unit="s CPU",
)

COUNT = {"to": 1, "pause": 0.0}
DIRECT = (
    "from hfbench.actions.registry import find; from hfbench.jobs.run import Run; r = find('toy.count').build({}); "
)
IMPORTS = "import hfbench.worker; from hfbench.actions.registry import catalogue; catalogue()"


def main() -> None:
    """Measure all, or those named on the command line: `events cells steps inline warm`."""
    wanted = sys.argv[1:] or ["events", "cells", "steps", "inline", "warm"]
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(HFBENCH_HOME=folder, HFBENCH_ACTIONS=str(ACTIONS), OMP_NUM_THREADS="1", PYTHONPATH=str(ROOT))
        parts = {"events": events, "cells": cells, "steps": steps, "inline": inline, "warm": warm}
        finish(*(record for name in wanted for record in parts[name]()))


def events() -> list[Record]:
    """The two ends of a job."""
    return [
        run(FIRST, first_event, worker_imports),
        run(SEEN, seen, rounds=9),
    ]


def cells() -> list[Record]:
    """Cells of a sweep of an action that does next to nothing, beside the same action called directly."""
    imports = python_cpu(IMPORTS)
    return [
        run(CELL, lambda: slope(sweep_cpu) - action_cpu(), rounds=5),
        run(COLD, lambda: slope(cold_sweep_cpu) - action_cpu() - imports, rounds=3, notes={"imports_s": imports}),
    ]


def steps() -> list[Record]:
    """Steps of a script that are jobs."""
    imports, step = python_cpu(IMPORTS), "toy.count: {to: 1, pause: 0}"
    return [run(STEP, lambda: slope(script_cpu(step)) - action_cpu() - imports, rounds=3, notes={"imports_s": imports})]


def inline() -> list[Record]:
    """Steps of a script that are none; the action itself is part of it."""
    return [run(INLINE, lambda: slope(script_cpu("rule: {rule: HB101}")), rounds=5)]


def warm() -> list[Record]:
    """Cells of a benchmark of a tiny model."""
    sys.path.insert(0, str(ROOT / "tests/engines"))
    from built_engines import tiny_model

    model = str(tiny_model(Path(os.environ["HFBENCH_HOME"]) / "tiny"))

    def cost(**more: bool) -> float:
        def total(count: int) -> float:
            fixed = {"model": model, "device": "cpu", "threads": 1, "prompt": 4, "new_tokens": 2, "warmup": 0}
            fixed |= {"max_iterations": 1}
            return conducted("bench.generate", fixed, {"seed": list(range(count))}, **more)

        return (total(4) - total(1)) / 3

    return [run(WARM, lambda: cost(warm=True), lambda: cost(warm=False), rounds=1, warmup=0)]


def first_event() -> float:
    """Seconds from the call of `launch` to the moment the worker gave its first event."""
    from hfbench.jobs.follow import wait_until
    from hfbench.jobs.launch import JobRequest, launch
    from hfbench.jobs.tail import read_events
    from hfbench.paths import jobs_root

    began = time.time()
    job = launch(jobs_root(), JobRequest(action="toy.count", params=COUNT))
    wait_until(job, lambda snapshot: snapshot.state.over)
    return read_events(job)[0].at - began


def worker_imports() -> float:
    """Seconds of a Python that imports what a worker does, and ends."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import hfbench.worker"], check=True)
    return time.perf_counter() - began


def seen() -> float:
    """Seconds from a job's last event to the moment a reader that follows it has it; the job ran for half a second."""
    from hfbench.jobs.follow import snapshots
    from hfbench.jobs.launch import JobRequest, launch
    from hfbench.paths import jobs_root

    job = launch(jobs_root(), JobRequest(action="toy.count", params={"to": 1, "pause": 0.5}))
    *_, last = snapshots(job)
    assert last.ended
    return time.time() - last.ended


def slope(total: Callable[[int], float]) -> float:
    """The cost of one more."""
    return (total(MANY) - total(FEW)) / (MANY - FEW)


def sweep_cpu(count: int) -> float:
    """CPU seconds of a whole sweep with warm workers."""
    return conducted("toy.count", {"to": 1}, {"pause": [number * 1e-9 for number in range(count)]}, warm=True)


def cold_sweep_cpu(count: int) -> float:
    """CPU seconds of a whole sweep with cold workers."""
    return conducted("toy.count", {"to": 1}, {"pause": [number * 1e-9 for number in range(count)]}, warm=False)


def conducted(action: str, fixed: dict[str, object], varied: dict[str, list[object]], *, warm: bool) -> float:
    """CPU seconds of the conductor of a new sweep and of all that it started."""
    from hfbench.actions.registry import find
    from hfbench.conduct.make import Sweep, free_name, make
    from hfbench.conduct.vary import sweep_script
    from hfbench.paths import sweeps_root
    from hfbench.scripts.command import plan_of

    name = free_name(sweeps_root(), "bench")
    source = sweep_script(find(action), name, fixed, varied).encode()
    plan = plan_of(source, Path(f"{name}.hfb.yaml"))
    folder = make(sweeps_root(), Sweep(name=name, source=source, plan=plan, warm=warm))
    return child_cpu([sys.executable, "-m", "hfbench.conduct", str(folder.path)])


def script_cpu(step: str) -> Callable[[int], float]:
    """CPU seconds of a script with so many of a step."""

    def total(count: int) -> float:
        path = Path(os.environ["HFBENCH_HOME"]) / "bench.hfb.yaml"
        path.write_text("hfbench: 1\nsteps:\n" + f"  - {step}\n" * count)
        return child_cpu([sys.executable, "-m", "hfbench", "--script", str(path), "--results", os.devnull])

    return total


def action_cpu() -> float:
    """CPU seconds of the action itself, called directly."""
    program = (
        f"{DIRECT}import json, time; t = time.process_time(); [r.__class__(**{json.dumps(COUNT)}).perform(Run()) "
        "for _ in range(100)]; import sys; sys.stderr.write(str((time.process_time() - t) / 100))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return float(done.stderr)


def python_cpu(program: str) -> float:
    """CPU seconds of a Python that does this, the median of five."""
    return statistics.median(child_cpu([sys.executable, "-c", program]) for _ in range(5))


def child_cpu(command: list[str]) -> float:
    """CPU seconds of a command and of the processes it waited for, and those they waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
