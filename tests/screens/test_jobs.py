"""The Jobs screen: jobs of every state, filtered, opened, cancelled and deleted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from job_folders import make_job

from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.events import Failed, Finished, Metric, Progress, Running, Started
from hfbench.jobs.history import JobRow
from hfbench.jobs.launch import JobRequest, launch
from hfbench.jobs.snapshot import State, read_job
from hfbench.paths import jobs_root
from hfbench.screens.confirm import Confirm
from hfbench.screens.job import JobScreen
from hfbench.screens.job_text import heading, phases
from hfbench.screens.jobs import JobsScreen
from hfbench.screens.messages import JobsListed
from hfbench.widgets.filter_bar import FilterBar
from hfbench.widgets.record_table import RecordTable

SIZES = [(80, 24), (120, 40)]


def three_jobs() -> None:
    root = jobs_root()
    started = [Started(at=1.0, pid=1, ticks=1, host="x"), Running(at=2.0, device="cpu")]
    make_job(root, "aaaaaa", "toy.count", {"model": "models/one"}, [*started, Finished(at=9.0, seconds=7)], result={})
    error = {"found": "the toy is broken", "where": "toy", "remedy": "buy another", "exit": 1}
    make_job(root, "bbbbbb", "toy.fail", {}, [*started, Failed(at=3.0, error=error)], age=30)
    make_job(
        root, "cccccc", "toy.count", {"model": "m/two"}, [*started, Metric(at=3.0, name="tpot", value=1, unit="s")]
    )


@pytest.mark.parametrize("size", SIZES)
async def test_every_job_shows_id_state_and_times_at_any_supported_width(
    bench: Any, until: Any, picture: Any, size: tuple[int, int], toy_actions: Path
) -> None:
    three_jobs()
    async with bench(watch=True).run_test(size=size) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: pilot.app.screen.query_one(RecordTable).total == 3)
        text = "\n".join(picture(pilot))
    for word in ("aaaaaa", "finished", "bbbbbb", "failed", "cccccc", "died", "Ran"):
        assert word in text


async def test_a_job_of_a_sweep_shows_its_cell_its_first_figure_and_what_doubt_means_at_80_columns(
    bench: Any, until: Any, picture: Any
) -> None:
    told = [Started(at=1.0, pid=1, ticks=1, host="x"), Running(at=2.0, device="cpu"), Finished(at=203.0, seconds=201)]
    label = "generate-dtype-batch-prompt-2 dtype=bf16 batch=4 prompt=16"
    result = {"headline": "tpot 1.02 s?  0.92 tok/s?"}
    make_job(jobs_root(), "aaaaaa", "bench.generate", {"model": "m"}, told, result=result, label=label)
    make_job(jobs_root(), "bbbbbb", "demo", {}, told, result={})
    async with bench(watch=True).run_test(size=(80, 24)) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: pilot.app.screen.query_one(RecordTable).total == 2)
        await until(pilot, lambda: "in doubt: too few samples" in "\n".join(picture(pilot)))
        row = next(line for line in picture(pilot) if "aaaaaa" in line)
        assert "dtype=bf16 batch=4 prompt=16" in row
        assert "tpot 1.02 s?" in row
        assert "demo" in next(line for line in picture(pilot) if "bbbbbb" in line)


async def test_an_empty_list_says_what_to_press(bench: Any, until: Any, picture: Any) -> None:
    async with bench(watch=True).run_test(size=(80, 24)) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: "no jobs yet: 1 goes to the models" in "\n".join(picture(pilot)))


async def test_the_filter_narrows_and_escape_gives_all_rows_back(bench: Any, until: Any, toy_actions: Path) -> None:
    three_jobs()
    async with bench(watch=True).run_test(size=(80, 24)) as pilot:
        await pilot.press("2")
        table = pilot.app.screen.query_one(RecordTable)
        await until(pilot, lambda: table.total == 3)
        await pilot.press("slash", *"fail")
        await until(pilot, lambda: table.shown == 1)
        await pilot.press("escape")
        await until(pilot, lambda: table.shown == 3)
        assert not pilot.app.screen.query_one(FilterBar).display


async def test_enter_opens_the_job_and_escape_comes_back(bench: Any, until: Any, toy_actions: Path) -> None:
    three_jobs()
    async with bench(watch=True).run_test(size=(80, 24)) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: pilot.app.screen.query_one(RecordTable).total == 3)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, JobScreen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, JobsScreen))


async def test_cancel_asks_and_only_y_stops_the_job(bench: Any, until: Any, toy_actions: Path) -> None:
    job = launch(jobs_root(), JobRequest(action="toy.count", params={"to": 5000}))
    async with bench(watch=True).run_test(size=(80, 24)) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: pilot.app.screen.query_one(RecordTable).total == 1)
        await pilot.press("c")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
        await pilot.press("c")
        await until(pilot, lambda: isinstance(pilot.app.screen, JobsScreen))
        assert not read_job(job).state.over
        await pilot.press("c")
        await until(pilot, lambda: isinstance(pilot.app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: read_job(job).state is State.CANCELLED)


async def test_deleting_a_finished_job_removes_its_folder(bench: Any, until: Any, toy_actions: Path) -> None:
    three_jobs()
    async with bench(watch=True).run_test(size=(80, 24)) as pilot:
        await pilot.press("2")
        table = pilot.app.screen.query_one(RecordTable)
        await until(pilot, lambda: table.total == 3)
        gone = JobDirectory(jobs_root() / str(table.current))
        await pilot.press("D", "y")
        await until(pilot, lambda: table.total == 2)
        assert not gone.path.exists()


async def test_two_workbenches_on_one_folder_see_the_same_jobs(bench: Any, until: Any, toy_actions: Path) -> None:
    async with bench(watch=True).run_test() as one, bench(watch=True).run_test() as two:
        await one.press("2")
        await two.press("2")
        launch(jobs_root(), JobRequest(action="toy.count", params={"to": 3}))
        for pilot in (one, two):
            await until(pilot, lambda pilot=pilot: pilot.app.screen.query_one(RecordTable).total == 1)
            await until(pilot, lambda pilot=pilot: pilot.app.machine.known_jobs[0].state is State.FINISHED)


async def test_an_unreadable_jobs_folder_is_one_sentence(bench: Any, until: Any, picture: Any, home: Path) -> None:
    home.mkdir(parents=True)
    (home / "jobs").write_text("a file in the way")
    async with bench(watch=True).run_test(size=(80, 24)) as pilot:
        await pilot.press("2")
        await until(pilot, lambda: "the jobs folder cannot be read" in " ".join(" ".join(picture(pilot)).split()))


def test_the_head_of_a_job_names_engines_and_models_without_their_folders(tmp_path: Path) -> None:
    long = f"{'/far' * 20}/smol-aoti"
    modes = {"model": f"{long}/", "modes": ["eager", f"engine:{long}/"]}
    job = make_job(tmp_path, "a", "bench.modes", modes, ())
    assert heading(read_job(job)) == "model smol-aoti  modes eager, engine:smol-aoti"
    job = make_job(tmp_path, "b", "bench.generate", {"model": "m", "mode": f"engine:{long}"}, ())
    assert heading(read_job(job)) == "model m  mode engine:smol-aoti"


async def test_of_many_jobs_the_newest_are_shown_first_and_then_all(bench: Any, until: Any, picture: Any) -> None:
    one = JobRow(
        id="", action="bench.generate", label="", model="m", device="cpu", state=State.FINISHED, created=1.0,
        started=1.0, ended=2.0, headline="", note="",
    )  # fmt: skip
    ids = (f"2026-01-05T08-00-00-bench.generate-{number:06x}" for number in range(450))
    rows = tuple(replace(one, id=each) for each in ids)
    app = bench()
    async with app.run_test(size=(80, 24)) as pilot:
        app.post_message(JobsListed(rows))
        await until(pilot, lambda: app.machine.known_jobs)
        await pilot.press("2")
        table = app.screen.query_one(RecordTable)
        await until(pilot, lambda: table.total == 450)
        await pilot.press("slash", *"0001c1", "enter")
        await until(pilot, lambda: table.shown == 1 and "0001c1" in "\n".join(picture(pilot)))


def test_a_phase_of_nothing_was_skipped_and_is_not_said_to_be_all_right(home: Path) -> None:
    told = [
        Started(at=1.0, pid=1, ticks=1, host="x"),
        Progress(at=2.0, phase="warm-up", done=0, total=0),
        Progress(at=3.0, phase="measure", done=1, total=2),
    ]
    job = make_job(jobs_root(), "aaaaaa", "bench.generate", {"model": "m"}, told)
    assert [(each.name, each.state) for each in phases(read_job(job))][:1] == [("warm-up", "skipped")]
