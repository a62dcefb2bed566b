"""Writes the folder of a sweep as a conductor would have left it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hfbench.sweeps.snapshot import SweepSnapshot, read_sweep


class Written:
    """The folder of a sweep; each step adds to it and returns it."""

    def __init__(
        self, folder: Path, axes: Mapping[str, Sequence[Any]], cells: Sequence[Sequence[Any]], v: int = 1
    ) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        about = {"v": v, "name": folder.name, "made": 1000.0, "on": ["local"], "hfbench": "9.9"}
        (folder / "sweep.json").write_text(json.dumps(about))
        self.at = 1000.0
        self.journal("conductor", did="started", pid=1, slots=1)
        told = [{"name": name, "values": list(values)} for name, values in axes.items()]
        self.journal(
            "planned", sha256="x", axes=told, steps=[{"action": "bench.generate"}], cells=[list(c) for c in cells]
        )

    def journal(self, kind: str, **fields: Any) -> Written:
        """One line of the journal, a second after the one before."""
        self.at += 1.0
        return self._line("journal.jsonl", {"v": 1, "kind": kind, "at": self.at, **fields})

    def begin(self, cell: int, attempt: int = 1, job: str | None = None) -> Written:
        """A cell begins."""
        return self.journal("step", cell=cell, step=1, job=job, on="local", attempt=attempt)

    def finish(
        self,
        cell: int,
        state: str = "finished",
        attempt: int = 1,
        reason: str = "",
        summaries: Mapping[str, Any] | None = None,
        verdicts: Sequence[Mapping[str, str]] = (),
        **metrics: Any,
    ) -> Written:
        """A cell ends with these metrics: numbers in seconds, or (number, unit), or whole summaries."""
        if cell and (metrics or summaries):
            summaries = dict(summaries or {})
            for name, value in metrics.items():
                number, unit = value if isinstance(value, tuple) else (value, "s")
                summaries[name] = {"p50": number, "n": 3, "unit": unit}
            event = {"event": "step_finished", "number": cell, "step": 1, "attempt": attempt, "metrics": summaries}
            result = {"output_ids": [[cell]], "batch": 1, "verdicts": list(verdicts)}
            self._line("results.jsonl", {**event, "result": result})
        return self.journal(
            "ended", cell=cell, state=state, reason=reason, seconds=2.0, attempt=attempt, expectations=[1, 0]
        )

    def read(self) -> SweepSnapshot:
        """The sweep as anybody sees it."""
        return read_sweep(self.folder)

    def _line(self, file: str, data: dict[str, Any]) -> Written:
        with (self.folder / file).open("a") as lines:
            lines.write(json.dumps(data) + "\n")
        return self
