"""The Job screen: live, finished, failed, cancelled and dead jobs; nothing lost by leaving."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
from textual.events import Key

from hfbench.jobs.cancel import cancel
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.follow import wait_until
from hfbench.jobs.launch import JobRequest, launch
from hfbench.jobs.snapshot import State, read_job
from hfbench.paths import jobs_root
from hfbench.screens import job as job_screen
from hfbench.screens.confirm import Confirm
from hfbench.screens.job import PANES, JobScreen
from hfbench.screens.launch import LaunchScreen
from hfbench.widgets.plot import Plot


def start(action: str = "toy.count", **params: Any) -> JobDirectory:
    return launch(jobs_root(), JobRequest(action=action, params=params))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_live_job_shows_progress_metric_and_plot_and_then_its_result(
    bench: Any, until: Any, picture: Any, size: tuple[int, int], toy_actions: Path
) -> None:
    async with bench().run_test(size=size) as pilot:
        job = start(to=40, pause=0.05)  # its life is short: not before there is a screen to see it
        pilot.app.open_job(job.id)
        screen = lambda: "\n".join(picture(pilot))  # noqa: E731
        await until(pilot, lambda: "running" in screen() and "count" in screen() and "number" in screen())
        await until(pilot, lambda: pilot.app.screen.query_one(Plot).display)
        await until(pilot, lambda: "finished" in screen() and "doubled  80.0" in screen())


async def test_leaving_the_workbench_leaves_the_job_alone(bench: Any, until: Any, toy_actions: Path) -> None:
    job = start(to=60, pause=0.03)
    async with bench().run_test() as pilot:
        pilot.app.open_job(job.id)
        await until(pilot, lambda: isinstance(pilot.app.screen, JobScreen) and pilot.app.screen.snapshot)
        await pilot.press("q")
    assert wait_until(job, lambda s: s.state.over, timeout=120).state is State.FINISHED


async def test_a_failed_job_keeps_its_sentence_on_the_screen(
    bench: Any, until: Any, picture: Any, toy_actions: Path
) -> None:
    job = start("toy.fail", how="error")
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.open_job(job.id)
        await until(pilot, lambda: "toy: the toy is broken. Buy another" in "\n".join(picture(pilot)))


async def test_a_killed_worker_is_told_with_its_signal_and_last_lines(
    bench: Any, until: Any, picture: Any, toy_actions: Path
) -> None:
    job = start("toy.fail", how="segv")
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.open_job(job.id)
        await until(pilot, lambda: "SIGSEGV" in "\n".join(picture(pilot)))
        await until(pilot, lambda: "about to fail by segv" in "\n".join(picture(pilot)))


async def test_a_supervisor_killed_under_our_eyes_turns_the_page_to_died(
    bench: Any, until: Any, picture: Any, toy_actions: Path
) -> None:
    job = start(to=5000)
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.open_job(job.id)
        await until(pilot, lambda: pilot.app.screen.snapshot and pilot.app.screen.snapshot.state is State.RUNNING)
        os.kill(pilot.app.screen.snapshot.pid, signal.SIGKILL)
        await until(pilot, lambda: "died" in "\n".join(picture(pilot)))


async def test_cancel_asks_once_and_the_page_says_cancelled(
    bench: Any, until: Any, picture: Any, toy_actions: Path
) -> None:
    job = start(to=5000)
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.open_job(job.id)
        await until(pilot, lambda: pilot.app.screen.snapshot and pilot.app.screen.snapshot.state is State.RUNNING)
        await pilot.press("c")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: "cancelled" in "\n".join(picture(pilot)))
        assert read_job(job).state is State.CANCELLED


async def test_l_walks_through_every_pane(bench: Any, until: Any, picture: Any, toy_actions: Path) -> None:
    job = start(to=2)
    wait_until(job, lambda s: s.state.over, timeout=120)
    wanted = {"result": "doubled", "log": "log", "output": "counted 2", "environment": "python", "request": "folder"}
    async with bench().run_test(size=(120, 40)) as pilot:
        pilot.app.open_job(job.id)
        await until(pilot, lambda: getattr(pilot.app.screen, "pane", "") == "result")
        for pane in [*PANES[1:], PANES[0]]:
            await pilot.press("l")
            await until(
                pilot, lambda pane=pane: pilot.app.screen.pane == pane and wanted[pane] in "\n".join(picture(pilot))
            )


async def test_rerun_opens_the_form_filled_as_the_job_was(bench: Any, until: Any, toy_actions: Path) -> None:
    job = start(to=2, pause=0.5)
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.open_job(job.id)
        await until(pilot, lambda: getattr(pilot.app.screen, "snapshot", None))
        await pilot.press("R")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen))
        assert pilot.app.screen.state.texts["pause"] == "0.5"
    cancel(job)


async def test_a_waiting_job_names_the_one_it_waits_for(
    bench: Any, until: Any, picture: Any, toy_actions: Path
) -> None:
    first = start(to=5000)
    wait_until(first, lambda s: s.state is State.RUNNING, timeout=120)
    second = start(to=1)
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.open_job(second.id)
        await until(pilot, lambda: f"queued: waits for {first.short_id}" in "\n".join(picture(pilot)))
        cancel(first)
        await until(pilot, lambda: "finished" in "\n".join(picture(pilot)))


async def test_a_result_of_a_newer_version_is_shown_field_by_field(bench: Any, until: Any, picture: Any) -> None:
    from job_folders import make_job

    from hfbench.jobs.events import Finished, Running, Started

    events = [Started(at=1, pid=1, ticks=1, host="x"), Running(at=2), Finished(at=3, seconds=1)]
    job = make_job(jobs_root(), "abcdef", "bench.generate", {"model": "m"}, events, result={"brand_new": 7})
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.open_job(job.id)
        await until(pilot, lambda: "brand_new" in "\n".join(picture(pilot)))


async def test_keys_that_come_before_the_job_was_read_wait_for_it(
    bench: Any, until: Any, toy_actions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = start(to=1)
    wait_until(job, lambda s: s.state.over, timeout=60)
    may_read, read = threading.Event(), job_screen.snapshots

    def slowly(*given: Any, **more: Any) -> Any:
        may_read.wait(60)
        return read(*given, **more)

    monkeypatch.setattr(job_screen, "snapshots", slowly)
    async with bench().run_test() as pilot:
        pilot.app.open_job(job.id)
        await until(pilot, lambda: isinstance(pilot.app.screen, JobScreen))
        for key in ("R", "enter"):  # in one burst, as over a slow line
            pilot.app.post_message(Key(key, None))
        may_read.set()
        await until(pilot, lambda: len(list(jobs_root().iterdir())) == 2)
