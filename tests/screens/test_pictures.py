"""Every screen as a picture, at both sizes, in a theme and without colour; what a picture shows is asserted too."""

from __future__ import annotations

import json
import secrets
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import picture_looks
import pytest
from job_folders import NOW, Held, make_job
from picture_models import llama
from test_gpus import card
from test_gpus import snapshot as gpu_snapshot
from textual.pilot import Pilot

from hfbench.config import Config, ModelsConfig, UiConfig
from hfbench.gpu import telemetry
from hfbench.gpu.reading import Unavailable
from hfbench.gpu.telemetry import GpuSnapshot
from hfbench.jobs.events import Died, Failed, Finished, Log, Metric, Progress, Queued, Running, Started
from hfbench.screens import machine
from hfbench.screens.base import BenchScreen
from hfbench.screens.messages import GpusSampled, JobsListed
from hfbench.units import GIB

LOOKS = [pytest.param(*look, id=name) for name, look in picture_looks.LOOKS.items()]
Scene = Callable[[Pilot[None]], Awaitable[None]]
ALBUM = picture_looks.Album()

SHOWN = "hfbench"
"""How the folder's name begins in pictures, where the paths of other runs must not stand."""
RUN = secrets.token_hex(4)[: len(SHOWN)]
"""How it begins in this run: as long, for what is cut and laid out by its length."""


class NoCards:
    """A machine without GPUs, wherever the pictures are taken."""

    def sample(self) -> GpuSnapshot:
        return gpu_snapshot(reason="the driver is not loaded")

    def close(self) -> None:
        pass


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose name is as long each time, a stopped clock, and a machine that is always the same."""
    folder = Path(tempfile.gettempdir()) / f"{RUN}-pictures"
    folder.mkdir()
    monkeypatch.setenv("HFBENCH_HOME", str(folder / "home"))
    monkeypatch.chdir(folder)
    monkeypatch.setattr(time, "time", lambda: NOW)
    monkeypatch.setattr(machine.socket, "gethostname", lambda: "lab-3")
    monkeypatch.setattr(machine, "memory_bytes", lambda: 24 * GIB)
    monkeypatch.setattr(machine, "os", SimpleNamespace(sched_getaffinity=lambda pid: {0, 1}))
    monkeypatch.setattr(telemetry, "Sampler", NoCards)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def take(
    bench: Any, until: Any, place: Path, monkeypatch: pytest.MonkeyPatch, snap_compare: Any, request: Any
) -> Callable[..., None]:
    """Open a workbench of this look on the place, play a scene until it is at rest, and compare the picture.

    A scene that is taken `alone` has a workbench of its own for each look, started with its theme and NO_COLOR.
    """

    def compare(look: picture_looks.Look, scene: Scene, *, watch: bool = True, alone: bool = False) -> None:
        _, theme, monochrome = look
        monkeypatch.setenv("NO_COLOR", "1") if monochrome else monkeypatch.delenv("NO_COLOR", raising=False)
        config = Config(ui=UiConfig(theme=theme), models=ModelsConfig(roots=(str(place / "models"),)))
        app = bench(config=config, watch=watch)

        async def at_rest(pilot: Pilot[None]) -> None:
            pages = [each for each in app.screen_stack if isinstance(each, BenchScreen)]
            await until(pilot, lambda: pages[-1].at_rest, 120)  # also the page that a dialog stands on
            await pilot.pause()
            await until(pilot, lambda: app.screen.focused is not None)
            app.screen.refresh(layout=True)  # scrollbars as they are laid out now, in whichever order rows came
            await pilot.pause()

        svg = ALBUM.take(scene_of(request.node, look), look, app, scene, at_rest, alone=alone)
        assert snap_compare(picture_looks.Taken(svg.replace(f"{RUN}-", f"{SHOWN}-")))

    return compare


def scene_of(test: pytest.Function, look: picture_looks.Look) -> str:
    """What the tests of one scene have in common: all but the look."""
    params = test.callspec.params if hasattr(test, "callspec") else {}
    others = {name: value for name, value in params.items() if value != look}
    return f"{test.nodeid.partition('[')[0]} {others}"


def some_jobs(root: Path) -> list[Any]:
    """One job of each state; the live ones hold their locks."""
    started = [Started(at=NOW - 55, pid=1, ticks=1, host="lab-3"), Running(at=NOW - 50, device="cpu")]
    result = json.loads((Path(__file__).parent / "data" / "generate.json").read_text())
    result["headline"] = "tpot 308 ms  3.02 tok/s"
    params = {"model": "/models/smollm2-135m", "device": "cpu", "dtype": "fp32", "prompt": 16, "new_tokens": 16}
    values = [Metric(at=NOW - 40 + i, name="tpot", value=0.3 + 0.01 * (i % 5), unit="s") for i in range(30)]
    phases = [
        Progress(at=NOW - 48, phase="load", done=1, total=1),
        Progress(at=NOW - 45, phase="warm-up", done=2, total=2),
    ]
    measure = [
        Progress(at=NOW - 40, phase="measure", done=0, total=1),
        Progress(at=NOW - 10, phase="measure", done=0.6, total=1),
    ]
    say = [Log(at=NOW - 44, text="loaded smollm2-135m as fp32 on cpu in 1.50 s")]
    make_job(
        root,
        "aaaa01",
        "bench.generate",
        params,
        [*started, *phases, *values, Finished(at=NOW - 5, seconds=45)],
        result=result,
        age=3600,
    )
    live = make_job(root, "aaaa02", "bench.generate", params, [*started, *phases, *say, *values, *measure], age=55)
    waits = Queued(at=NOW - 20, device="cpu", waits_for=live.id)
    queued = make_job(root, "aaaa03", "bench.generate", params, [started[0], waits], age=21)
    error = {
        "found": "'bf17' is not one of auto, bf16",
        "where": "bench.generate",
        "remedy": "did you mean 'bf16'?",
        "exit": 2,
    }
    make_job(root, "aaaa04", "bench.generate", params, [*started, Failed(at=NOW - 49, error=error)], age=7200)
    gone = Died(at=NOW - 9, reason="killed by SIGSEGV: native code crashed", signal="SIGSEGV")
    make_job(root, "aaaa05", "bench.generate", params, [*started, gone], log="loading\nSegmentation fault\n", age=86400)
    return [Held(live), Held(queued)]


@pytest.mark.parametrize("look", [each.values for each in LOOKS], ids=[str(each.id) for each in LOOKS])
class TestPictures:
    """One picture a screen and look."""

    def test_models(self, take: Any, until: Any, place: Path, look: Any) -> None:
        llama(place / "models" / "smollm2-135m")
        llama(place / "models" / "my-finetune-v3", layers=8, shards=4, missing=True)

        async def scene(pilot: Pilot[None]) -> None:
            await until(pilot, lambda: pilot.app.screen.at_rest)
            assert pilot.app.screen.models.total == 2

        take(look, scene, alone=True)

    def test_overview(self, take: Any, place: Path, look: Any) -> None:
        llama(place / "models" / "my-finetune-v3", layers=8, shards=4, missing=True)

        async def scene(pilot: Pilot[None]) -> None:
            pilot.app.open_model("models/my-finetune-v3")
            await pilot.pause()

        take(look, scene)

    @pytest.mark.parametrize("tab", ["ConfigTab", "TokenizerTab", "TensorsTab", "FilesTab"])
    def test_tabs(self, take: Any, place: Path, look: Any, until: Any, tab: str) -> None:
        llama(place / "models" / "smollm2-135m")

        async def scene(pilot: Pilot[None]) -> None:
            pilot.app.open_model("models/smollm2-135m")
            await until(pilot, lambda: getattr(pilot.app.screen, "view", None) and pilot.app.screen.at_rest)
            pilot.app.screen.action_front(tab)

        take(look, scene)

    def test_launch(self, take: Any, place: Path, until: Any, look: Any) -> None:
        llama(place / "models" / "smollm2-135m")

        async def scene(pilot: Pilot[None]) -> None:
            pilot.app.open_form("bench.generate", {"model": "models/smollm2-135m", "batch": 8})
            await until(pilot, lambda: getattr(pilot.app.screen, "facts", None))

        take(look, scene)

    def test_jobs(self, take: Any, place: Path, until: Any, look: Any) -> None:
        held = some_jobs(place / "home" / "jobs")

        async def scene(pilot: Pilot[None]) -> None:
            await pilot.press("2")
            await until(pilot, lambda: len(pilot.app.machine.known_jobs) == 5)

        take(look, scene)
        for each in held:
            each.release()

    @pytest.mark.parametrize("tail", ["aaaa01", "aaaa02", "aaaa05"], ids=["finished", "running", "died"])
    def test_job(self, take: Any, place: Path, until: Any, look: Any, tail: str) -> None:
        held = some_jobs(place / "home" / "jobs")

        async def scene(pilot: Pilot[None]) -> None:
            pilot.app.open_job(f"2026-01-05T08-00-00-bench.generate-{tail}")
            await until(pilot, lambda: getattr(pilot.app.screen, "snapshot", None))

        take(look, scene)
        for each in held:
            each.release()

    def test_gpus(self, take: Any, place: Path, until: Any, look: Any) -> None:
        cards = [card(index) for index in range(7)] + [card(7, power=Unavailable("no permission"))]

        async def scene(pilot: Pilot[None]) -> None:
            pilot.app.post_message(GpusSampled(gpu_snapshot(*cards), 0.0))
            pilot.app.post_message(JobsListed(()))
            await pilot.press("3")
            await until(pilot, lambda: pilot.app.machine.gpus)

        take(look, scene, watch=False)

    def test_help(self, take: Any, place: Path, until: Any, look: Any) -> None:
        async def scene(pilot: Pilot[None]) -> None:
            await pilot.press("2", "question_mark")
            await until(pilot, lambda: hasattr(pilot.app.screen, "help_text"))

        take(look, scene)
