"""What else the machine did while something was measured."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

STAT = Path("/proc/stat")
IDLE_COLUMNS = (3, 4)
"""Positions of idle and iowait in the `cpu` line of /proc/stat (proc(5))."""
GUEST_COLUMN = 8
"""From here on guest times, already counted in user and nice."""
SHORTEST = 0.5
"""Seconds below which the kernel's clock ticks are too coarse to tell anything."""


@dataclass(frozen=True, kw_only=True)
class Company:
    """The neighbours of a measurement. `others_cpus` is how many CPUs other processes kept busy on average."""

    cpus: int
    load_before: float
    load_after: float
    others_cpus: float | None

    def disturbance(self, share: float) -> str:
        """A sentence when others used over `share` of the CPUs, or where that is unknown the load exceeded them."""
        if self.others_cpus is not None:
            busy = self.others_cpus > share * self.cpus
            return f"other processes kept {self.others_cpus:.1f} of {self.cpus} CPUs busy" if busy else ""
        load = self.load_before
        return f"the load average was {load:.1f} on {self.cpus} CPUs before the start" if load > self.cpus else ""

    def left_to(self, threads: int) -> int:
        """How many CPUs the others left, at least 1, for a run that computed with more threads than that; else 0."""
        taken = self.load_before if self.others_cpus is None else self.others_cpus
        left = max(1, int(self.cpus - taken))
        return left if threads > left else 0


class Watch:
    """Counts the CPU time of other processes from its making to `company()`."""

    def __init__(self, stat: Path = STAT) -> None:
        self._stat = stat
        self._load = os.getloadavg()[0]
        self._began = time.perf_counter()
        self._busy, self._own = _busy_seconds(stat), _own_seconds()

    def company(self) -> Company:
        """What the neighbours did since the watch began."""
        elapsed = time.perf_counter() - self._began
        busy, before = _busy_seconds(self._stat), self._busy
        others = None
        if busy is not None and before is not None and elapsed >= SHORTEST:
            others = max(0.0, (busy - before - (_own_seconds() - self._own)) / elapsed)
        return Company(
            cpus=os.cpu_count() or 1, load_before=self._load, load_after=os.getloadavg()[0], others_cpus=others
        )


def _busy_seconds(stat: Path) -> float | None:
    """CPU seconds the whole machine has worked since boot; None when the kernel does not say."""
    try:
        with stat.open(encoding="ascii") as file:
            fields = [int(word) for word in file.readline().split()[1:]]
    except (OSError, ValueError):
        return None
    if len(fields) <= max(IDLE_COLUMNS):
        return None
    ticks = sum(value for column, value in enumerate(fields[:GUEST_COLUMN]) if column not in IDLE_COLUMNS)
    return ticks / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    times = os.times()
    return times.user + times.system
