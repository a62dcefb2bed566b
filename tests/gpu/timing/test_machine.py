"""Neighbours seen in the kernel's counters."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from hfbench.gpu.timing.machine import Watch

BUSY = "import time; end = time.time() + 30\nwhile time.time() < end: pass"


def test_a_busy_neighbour_is_counted_and_our_own_work_is_not() -> None:
    neighbour = subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        time.sleep(0.2)
        watch, end = Watch(), time.perf_counter() + 1.5
        while time.perf_counter() < end:
            sum(range(1000))
        company = watch.company()
    finally:
        neighbour.kill()
        neighbour.wait()
    assert company.others_cpus is not None
    assert company.others_cpus > 0.3
    assert company.others_cpus <= company.cpus


@pytest.mark.parametrize("content", ["", "cpu", "cpu a b c d e", "cpu 1 2"])
def test_an_unreadable_counter_is_unknown_and_never_zero(tmp_path: Path, content: str) -> None:
    stat = tmp_path / "stat"
    stat.write_text(content)
    watch = Watch(stat)
    assert watch.company().others_cpus is None


def test_too_short_a_time_tells_nothing() -> None:
    assert Watch().company().others_cpus is None
