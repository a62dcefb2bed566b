"""`kernel.static` of every shipped kernel on six architectures: from the cache, and several compilations at a time."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from importlib import metadata

from claims import Claim, cpu, finish, run, wall

import hfbench
from hfbench.actions.kernel_static import USUAL
from hfbench.gpu.kernels.architectures import find_architecture
from hfbench.gpu.kernels.loading import find, shipped
from hfbench.gpu.kernels.static import StaticReport, analyse

CPUS = len(os.sched_getaffinity(0))

CACHED = Claim(
    name="kernels-static-cached",
    sentence="a row of kernel.static from the cache takes at most 2 ms CPU",
    bound=0.002,
    unit="s CPU",
)
TOGETHER = Claim(
    name="kernels-static-together",
    sentence="compiling in a process for each CPU takes at most 0.75 times as long as one after the other",
    bound=0.75,
)
EASY = "rmsnorm"
"""Its configurations take about as long as each other, so that no single one holds up the end."""


def main() -> None:
    """Compile everything once, then measure; keep the records."""
    with tempfile.TemporaryDirectory() as home:
        os.environ["HFBENCH_HOME"] = home
        began = time.perf_counter()
        rows = [row for name in shipped() for row in table(name)().rows]
        cold = time.perf_counter() - began
        versions = {"hfbench": hfbench.__version__, "triton": metadata.version("triton")}
        notes: dict[str, str | int | float] = {
            "kernels": len(shipped()),
            "architectures": len(USUAL),
            "rows": len(rows),
            "cold_s": round(cold, 1),
            "compiling_s": round(sum(row.seconds for row in rows), 1),
            "processes": CPUS,
        }

        def from_cache() -> None:
            for name in shipped():
                assert all(row.cached for row in table(name)().rows)

        read = cpu(from_cache)
        records = [
            run(CACHED, subject=lambda: read() / len(rows), rounds=9, versions=versions, notes=notes),
            run(
                TOGETHER,
                subject=wall(table(EASY, use_cache=False, workers=CPUS)),
                peer=wall(table(EASY, use_cache=False, workers=1)),
                rounds=3,
                warmup=0,
                versions=versions,
                notes={"kernel": EASY, "rows": len(table(EASY)().rows), "processes": CPUS},
            ),
        ]
    finish(*records)


def table(name: str, *, use_cache: bool = True, workers: int = 0) -> Callable[[], StaticReport]:
    """Every configuration of a kernel on every usual architecture."""
    on = [find_architecture(each) for each in USUAL]
    return lambda: analyse(find(name), on, seconds=600, use_cache=use_cache, workers=workers)


if __name__ == "__main__":
    main()
