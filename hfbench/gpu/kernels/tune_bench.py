"""What tuning times with: a GPU the kernel itself, a CPU the reference in its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from hfbench.gpu.kernels.processes import Crew
from hfbench.gpu.kernels.timing_results import Answer, Device
from hfbench.gpu.kernels.timing_run import answer_of


class Bench(Protocol):
    """Times configurations, each apart from the others: whatever one does, the rest come to an answer."""

    @property
    def name(self) -> str:
        """`cuda` or `cpu`, as rows are marked."""

    @property
    def on(self) -> Device:
        """Where it times."""

    def answers(self, tasks: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, Answer]]:
        """An answer for each task (`config`, `dtype`, `shape`), with its place, as they come."""


class CrewBench:
    """A process for each configuration, ended when it takes too long."""

    def __init__(self, crew: Crew, on: Device, *, width: float, budget: float) -> None:
        self._crew, self.on = crew, on
        self.name = "cpu" if on.capability == "cpu" else "cuda"
        what = "launch" if self.name == "cpu" else "triton"
        self._common = {"what": what, "device": on.device, "width": width, "budget": budget}

    def answers(self, tasks: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, Answer]]:
        """Time the tasks one after the other."""
        for place, outcome in self._crew.perform([{**task, **self._common} for task in tasks]):
            yield place, answer_of(outcome)
