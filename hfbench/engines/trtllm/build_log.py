"""What trtllm-build writes while it works: how far it is, rank by rank."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST = 2_000
"""Characters of a line that are looked at."""

_STEPS = (
    (re.compile(r"Total time of converting checkpoints"), "converted"),
    (re.compile(r"Total time of building Unnamed Network"), "compiled"),
    (re.compile(r"Engine serialized\. Total time"), "written"),
    (re.compile(r"Total time of building all engines"), "done"),
)
_LEVEL = re.compile(r"\[TRT(?:-LLM)?\] \[([EWF])\]\s*(.*)")
_PLAN = re.compile(r"Serializing engine to (.+?)\.{3}")
_PEAK = re.compile(r"Peak memory usage during Engine building and serialization: CPU: (\d+) MiB")


@dataclass
class BuildLog:
    """Counts steps of a build of `ranks` plans: compiling and writing each is one, converting is the first."""

    ranks: int
    done: int = 0
    finished: bool = False
    peak_mib: int = 0
    """Host memory of the build, 0 where the log does not tell."""
    phase: str = "convert"

    @property
    def total(self) -> int:
        """Steps of the whole build."""
        return 1 + 2 * self.ranks

    def read(self, line: str) -> Iterator[tuple[str, int]]:
        """The steps that a line ends, as (phase, steps done)."""
        line = line[:LONGEST]
        if peak := _PEAK.search(line):
            self.peak_mib = max(self.peak_mib, int(peak[1]))
        if _PLAN.search(line):
            self.phase = "write"
        for pattern, what in _STEPS:
            if not pattern.search(line):
                continue
            if what == "done":
                self.finished, self.done = True, self.total
            else:
                self.done = min(self.done + 1, self.total)
                self.phase = {"converted": "compile", "compiled": "write", "written": "compile"}[what]
            yield self.phase, self.done


def complaint(line: str) -> str:
    """The text of a line that TensorRT or TensorRT-LLM marks as an error, empty for any other."""
    match = _LEVEL.search(line[:LONGEST])
    return match[2].strip() if match and match[1] in "EF" else ""
