"""Twelve cells on SmolLM2-135M give the same table here, on a Slurm of two nodes, and on a Ray of two raylets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from claims import Claim, Record, finish, run

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/jobs/executors/labs"), str(ROOT / "tests/engines"), str(ROOT / "tests")]

SCRIPT = ROOT / "examples/sweep.hfb.yaml"
SAME = Claim(
    name="sweep-places",
    sentence="a sweep of 12 cells on SmolLM2-135M differs in no row between here, Slurm and Ray, apart from times",
    bound=0.0,
    unit="rows",
)
TIMED = ("seconds", "on", "jobs", "metrics")


def main() -> None:
    """Start the clusters, run the sweep at each place, compare."""
    from ray_lab import ray
    from slurm_lab import slurm

    with tempfile.TemporaryDirectory() as folder, slurm() as cluster, ray() as other:
        env = {**os.environ, **cluster.env, "OMP_NUM_THREADS": "1"}
        env.setdefault("HFBENCH_HOME", folder)
        model = json.loads(hfbench(env, "demo", "--json"))["folder"]
        script = Path(folder) / "places.hfb.yaml"  # nodes have homes of their own, in which there is no demo model
        script.write_text(SCRIPT.read_text().replace("model: demo", f"model: {model}"))
        places = {"here": "local", "slurm": "slurm:debug", "ray": other.address}
        tables = {name: table(env, script, name, on) for name, on in places.items()}
    finish(compared(tables))


def compared(tables: dict[str, list[dict[str, Any]]]) -> Record:
    """The record of how many rows differ from those of here."""
    here = tables["here"]
    assert len(here) == 12, here
    assert all(row["state"] == "done" and row["outputs"] for row in here), here
    differing = sum(row != other for name in ("slurm", "ray") for row, other in zip(here, tables[name], strict=True))
    outputs = " ".join(row["outputs"] for row in here)
    return run(SAME, lambda: float(differing), rounds=1, warmup=0, notes={"outputs": outputs})


def table(env: dict[str, str], script: Path, name: str, on: str) -> list[dict[str, Any]]:
    """The table of the sweep as it ran at a place, without what is measured."""
    run_name = f"{name}-{os.getpid()}"
    hfbench(env, "sweep", "run", str(script), "--name", run_name, "--on", on, "--json")
    rows = json.loads(hfbench(env, "sweep", "table", run_name, "--json"))["cells"]
    print(name, *(f"{row['state']} {row['outputs']} {row['seconds']:.1f} s" for row in rows), sep="\n  ")
    return [{key: row[key] for key in row if key not in TIMED} for row in rows]


def hfbench(env: dict[str, str], *words: str) -> str:
    """What a command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "hfbench", *words], env=env, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"hfbench {' '.join(words)}: {done.stderr[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    main()
