"""A screen that another one covers costs nothing, and is up to date as soon as it returns."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hfbench.jobs.history import JobRow
from hfbench.jobs.state import State
from hfbench.screens.jobs import JobsScreen
from hfbench.screens.later import BEHIND_MODEL, BEHIND_MODELS
from hfbench.screens.launch import LaunchScreen
from hfbench.screens.messages import JobsListed
from hfbench.widgets.record_table import RecordTable

ROW = JobRow(
    id="2026-01-05T08-00-00-demo-3f9a12",
    action="demo",
    label="",
    model="",
    device="",
    state=State.RUNNING,
    created=1.0,
    started=1.0,
    ended=None,
    headline="",
    note="",
)


async def test_a_covered_list_of_jobs_is_not_painted_until_it_returns(bench: Any, until: Any) -> None:
    async with bench().run_test() as pilot:
        await pilot.press("2")
        await until(pilot, lambda: isinstance(pilot.app.screen, JobsScreen) and pilot.app.screen.is_mounted)
        jobs = pilot.app.screen
        assert jobs.in_front
        pilot.app.open_form("demo")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen))
        assert not jobs.in_front
        pilot.app.post_message(JobsListed((ROW,)))
        await until(pilot, lambda: pilot.app.machine.known_jobs == (ROW,))
        await pilot.pause()
        assert jobs.query_one(RecordTable).total == 0
        pilot.app.pop_screen()
        await until(pilot, lambda: jobs.query_one(RecordTable).total == 1)


async def test_a_question_over_a_screen_does_not_cover_it(bench: Any, until: Any) -> None:
    from hfbench.screens.confirm import Confirm

    async with bench().run_test() as pilot:
        await pilot.press("2")
        await until(pilot, lambda: isinstance(pilot.app.screen, JobsScreen) and pilot.app.screen.is_mounted)
        jobs = pilot.app.screen
        pilot.app.push_screen(Confirm("really?"))
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
        pilot.app.post_message(JobsListed((ROW,)))
        await until(pilot, lambda: jobs.query_one(RecordTable).total == 1)


def test_the_first_frame_loads_neither_other_screens_nor_what_they_show(tmp_path: Path) -> None:
    look = "import sys, hfbench.app; print(*sorted(name for name in sys.modules if name.startswith('hfbench.')))"
    told = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True, cwd=tmp_path)
    loaded = set(told.stdout.split())
    later = {"hfbench.screens.model", "hfbench.screens.job", "hfbench.screens.launch", "hfbench.screens.gpus"}
    later |= {"hfbench.jobs.history", "hfbench.gpu.telemetry", "hfbench.models.checkpoint", "hfbench.scripts.parse"}
    assert "hfbench.screens.models" in loaded
    assert not later & loaded


def test_screens_of_the_next_key_are_loaded_beside_the_first_frame(tmp_path: Path) -> None:
    look = (
        "import sys, threading, hfbench.app\n"
        "from hfbench.screens.later import BEHIND_MODELS, load_later\n"
        "load_later(BEHIND_MODELS)\n"
        "[each.join() for each in threading.enumerate() if each.name == 'hfbench-load-later']\n"
        "print(*[name for name in sys.modules if name.startswith('hfbench.')])\n"
    )
    told = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True, cwd=tmp_path)
    loaded = set(told.stdout.split())
    assert {"hfbench.screens.model", "hfbench.screens.job", "hfbench.screens.launch"} <= loaded
    work = {"hfbench.tokens.tokenizer", "hfbench.models.explain.explain", "hfbench.estimate.workload"}
    assert not work & loaded  # what only a model's tabs need comes when a model was read


def test_every_module_that_is_loaded_later_is_there() -> None:
    assert all(find_spec(f"hfbench.{module}") for module in (*BEHIND_MODELS, *BEHIND_MODEL))


async def test_leaving_right_after_a_screen_was_closed_ends_without_a_complaint(bench: Any, until: Any) -> None:
    for _ in range(5):
        async with bench(watch=True).run_test() as pilot:
            await pilot.press("2")
            await until(pilot, lambda: isinstance(pilot.app.screen, JobsScreen) and pilot.app.screen.is_mounted)
            pilot.app.open_form("demo")
            await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen) and pilot.app.screen.is_mounted)
            pilot.app.pop_screen()
            pilot.app.exit()
