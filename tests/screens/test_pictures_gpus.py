"""Kernels, the card of a job, and memory explained as pictures; every figure in them is made up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gpu_readings import card
from job_folders import NOW, Held, make_job
from test_job_gpu import STARTED, USE, bound
from test_pictures import LOOKS, place, take  # noqa: F401 - fixtures of the other pictures
from textual.pilot import Pilot

from hfbench.actions.kernel_static import USUAL, ConfigVerdict, KernelStaticResult
from hfbench.codec import encode
from hfbench.gpu.explain.picture import MemoryPicture, OtherProcess
from hfbench.gpu.explain.result import ExplainResult
from hfbench.gpu.explain.rules import explain
from hfbench.gpu.kernels.architectures import find_architecture
from hfbench.gpu.kernels.results import StaticRow
from hfbench.jobs.events import Finished, Metric, Progress
from hfbench.screens.gpu_memory import Explained, GpuMemoryScreen
from hfbench.screens.kernel_asks import Analysed
from hfbench.screens.kernels import KernelsScreen
from hfbench.units import GIB
from hfbench.widgets.kernel_matrix import KernelMatrix


def analysed(kernel: str, configs: Sequence[tuple[str, int, int, int]]) -> Analysed:
    """Rows of a kernel: a label, registers, spilt bytes and shared bytes each, the same on every architecture."""
    rows, verdicts = [], []
    for label, registers, spills, shared in configs:
        limits = {arch: find_architecture(arch).shared_block for arch in USUAL}
        refused = [arch for arch in USUAL if shared > limits[arch]]
        some = StaticRow(
            kernel=kernel, config=label, dtype="fp16", arch="", shared_limit=0, verdict="ok", warps=8, stages=4
        )
        some = replace(some, registers=registers, spills=spills, shared_bytes=shared, occupancy=0.25)
        rows += [
            replace(
                some,
                arch=arch,
                shared_limit=limits[arch],
                verdict="refused" if arch in refused else "spills" if spills else "ok",
                occupancy=0.0 if arch in refused else 0.25,
                limited_by="" if arch in refused else "registers",
            )
            for arch in USUAL
        ]
        text = f"refused on {', '.join(refused)}: {shared} > 101376 bytes of shared memory" if refused else "fine"
        verdicts.append(ConfigVerdict(config=label, dtype="fp16", text=text))
    result = KernelStaticResult(
        kernel=kernel, file="", triton="3.5", rows=tuple(rows), verdicts=tuple(verdicts), counts={}, failed=False
    )
    return Analysed(kernel, result)


TILES = (
    ("128x256x64 w8 s3", 214, 0, 98304),
    ("128x256x64 w8 s4", 237, 0, 147456),
    ("256x256x64 w8 s3", 255, 412, 98304),
)


@pytest.mark.parametrize("look", [each.values for each in LOOKS], ids=[str(each.id) for each in LOOKS])
class TestPictures:
    """One picture a state and look."""

    def test_kernels(self, take: Any, until: Any, place: Path, look: Any) -> None:  # noqa: F811
        pytest.importorskip("triton")

        async def scene(pilot: Pilot[None]) -> None:
            app: Any = pilot.app
            await pilot.press("4")
            await until(pilot, lambda: isinstance(app.screen, KernelsScreen) and app.screen._read)
            matrix = app.screen.query_one(KernelMatrix)
            app.screen.post_message(analysed("matmul", TILES))
            app.screen.post_message(analysed("add_rmsnorm", (("BLOCK=8192 w8 s3", 56, 0, 32),)))
            await until(pilot, lambda: sum(bool(each.rows) for each in matrix.states) == 2)
            matrix.go_to("matmul")
            await pilot.press("down", "down")
            assert matrix.current.config == "128x256x64 w8 s4"

        take(look, scene)

    def test_job_finished(self, take: Any, until: Any, place: Path, look: Any) -> None:  # noqa: F811
        data = json.loads((Path(__file__).parent / "data" / "generate.json").read_text())
        data["headline"] = "tpot 5.00 ms  200 tok/s"
        result = data | {"gpu": encode(USE), "roofline": encode(bound())}
        events = [*STARTED, *samples(), Finished(at=NOW - 1, seconds=58)]
        make_job(place / "home" / "jobs", "aaaa06", "bench.generate", {"model": "m"}, events, result=result)

        async def scene(pilot: Pilot[None]) -> None:
            app: Any = pilot.app
            app.open_job("2026-01-05T08-00-00-bench.generate-aaaa06")
            await until(pilot, lambda: getattr(app.screen, "snapshot", None))

        take(look, scene)

    def test_job_running(self, take: Any, until: Any, place: Path, look: Any) -> None:  # noqa: F811
        measure = [Progress(at=NOW - 40, phase="measure", done=0, total=1)]
        measure += [Progress(at=NOW - 10, phase="measure", done=0.6, total=1)]
        events = [*STARTED, *samples(), *measure]
        held = Held(make_job(place / "home" / "jobs", "aaaa07", "bench.generate", {"model": "m"}, events))

        async def scene(pilot: Pilot[None]) -> None:
            app: Any = pilot.app
            app.open_job("2026-01-05T08-00-00-bench.generate-aaaa07")
            await until(pilot, lambda: getattr(app.screen, "snapshot", None))

        take(look, scene)
        held.release()

    def test_memory(self, take: Any, until: Any, place: Path, look: Any) -> None:  # noqa: F811
        others = (
            OtherProcess(pid=8123, bytes=61 * GIB, who="ann python serve.py"),
            OtherProcess(pid=77, bytes=None, who="bob"),
        )
        found = MemoryPicture(
            device="cuda:2", card="NVIDIA H200", total=141 * GIB, free=79 * GIB, driver=GIB, others=others
        )
        result = ExplainResult(explanations=(explain(found, sources=("driver (NVML)",)),))

        async def scene(pilot: Pilot[None]) -> None:
            screen = GpuMemoryScreen(card(2))
            pilot.app.push_screen(screen)
            await until(pilot, lambda: screen.is_mounted)
            screen._asking.stop()  # what stands there is made here, not read from the driver of this machine
            screen.post_message(Explained(result))
            await until(pilot, lambda: screen.result is result)

        take(look, scene)


def samples() -> list[Metric]:
    """Half a minute of a card and of the job's own times."""
    told = []
    for second in range(30):
        at = NOW - 50 + second
        told += [
            Metric(at=at, name="gpu.memory", value=(58 + second % 4) * GIB, unit="B"),
            Metric(at=at, name="gpu.power", value=480.0 + second, unit="W"),
            Metric(at=at, name="gpu.clock_sm", value=1980.0 - 15 * (second % 3), unit="MHz"),
            Metric(at=at, name="gpu.utilization", value=97.0, unit="%"),
            Metric(at=at, name="tpot", value=0.005 + 0.0001 * (second % 5), unit="s"),
        ]
    return told
