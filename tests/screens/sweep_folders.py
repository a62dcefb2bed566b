"""Folders of sweeps as their conductor writes them, for pictures: no process made them, and the figures are made up."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hfbench.sweeps.folder import VERSION, SweepFolder


@dataclass
class MadeSweep:
    """A folder of a sweep; `hold` keeps its lock as a live conductor does."""

    folder: SweepFolder
    axes: Mapping[str, Sequence[Any]]
    at: float
    locks: list[int] = field(default_factory=list)

    @property
    def cells(self) -> list[dict[str, Any]]:
        """The values of each cell."""
        return [dict(zip(self.axes, values, strict=True)) for values in itertools.product(*self.axes.values())]

    def step(self, cell: int, job: str, *, at: float = 0.0, on: str = "local", attempt: int = 1) -> None:
        """A cell began."""
        self._append({"kind": "step", "cell": cell, "step": 1, "job": job, "on": on, "attempt": attempt}, at)

    def ended(
        self, cell: int, state: str, *, at: float = 0.0, seconds: float = 4.0, reason: str = "", attempt: int = 1
    ) -> None:
        """A cell is over."""
        line = {"kind": "ended", "cell": cell, "state": state, "reason": reason, "seconds": seconds, "attempt": attempt}
        self._append(line, at)

    def result(self, cell: int, metrics: Mapping[str, Any], *, attempt: int = 1) -> None:
        """What a cell measured."""
        event = {
            "event": "step_finished",
            "number": cell,
            "attempt": attempt,
            "step": 1,
            "cell": self.cells[cell - 1],
            "status": "ok",
            "result": {},
            "metrics": metrics,
        }
        with self.folder.results.open("a") as file:
            file.write(json.dumps(event) + "\n")

    def stopped(self, why: str, *, at: float = 0.0) -> None:
        """The conductor stopped before the end."""
        self._append({"kind": "conductor", "did": "stopped", "why": why, "pid": 1}, at)

    def hold(self) -> None:
        """Hold the lock until `let_go`."""
        fd = os.open(self.folder.lock, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        self.locks.append(fd)

    def let_go(self) -> None:
        """Give the lock back, as a conductor that died does."""
        while self.locks:
            os.close(self.locks.pop())

    def _append(self, line: Mapping[str, Any], at: float) -> None:
        with self.folder.journal.open("a") as file:
            file.write(json.dumps({**line, "at": self.at + at}) + "\n")


def make_sweep(
    root: Path,
    name: str,
    axes: Mapping[str, Sequence[Any]],
    *,
    at: float,
    on: Sequence[str] = ("local",),
    action: str = "bench.generate",
    version: int = VERSION,
) -> MadeSweep:
    """A sweep that was just started; its clock counts from `at`."""
    path = root / name
    path.mkdir(parents=True)
    about = {"v": version, "name": name, "made": at, "cwd": "/", "on": list(on), "slots": 1, "warm": True}
    (path / "sweep.json").write_text(json.dumps({**about, "hfbench": "0.7.0"}))
    made = MadeSweep(SweepFolder(path), axes, at)
    made._append({"kind": "conductor", "did": "started", "pid": 1, "slots": 1}, 0)
    planned = {
        "kind": "planned",
        "axes": [{"name": name, "values": list(values)} for name, values in axes.items()],
        "cells": [list(cell.values()) for cell in made.cells],
        "steps": [{"action": action, "save_as": ""}],
    }
    made._append(planned, 0)
    return made


def generate_metrics(tpot: float, batch: int) -> dict[str, Any]:
    """Metrics as `bench.generate` tells them, from one number."""

    def summary(value: float, unit: str) -> dict[str, Any]:
        spread = {"p90": value * 1.03, "p99": value * 1.08, "mean": value * 1.01}
        return {"p50": value, **spread, "ci_low": value * 0.999, "ci_high": value * 1.001, "n": 120, "unit": unit}

    return {
        "ttft": summary(tpot * 3, "s"),
        "tpot": summary(tpot, "s"),
        "throughput": summary(batch / tpot, "tok/s"),
        "memory": {"peak": 269e6 + batch * 3e6, "unit": "B"},
    }
