"""Sweeps are conducted to their end, whoever is killed meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from sweep_story import SweepStory

from hfbench.commands.sweep_follow import follow
from hfbench.conduct.start import cancel, rerun_cells, rerun_failed, resume
from hfbench.errors import UsageError
from hfbench.exits import Exit
from hfbench.jobs.directory import JobDirectory, job_ids
from hfbench.jobs.launch import JobRequest, launch
from hfbench.jobs.process import same_process
from hfbench.jobs.snapshot import read_job
from hfbench.paths import jobs_root
from hfbench.sweeps.model import SweepSnapshot

FAILING = """
hfbench: 1
matrix:
  to: [1, 2, 3]
steps:
  - toy.count: {to: "{{ to }}", pause: 0, save_as: counted}
    expect: counted.count != 2
  - toy.fail: {how: result}
    on_fail: continue
"""

EXPECTING = """
hfbench: 1
matrix: {to: [1, 2, 3]}
steps:
  - toy.count: {to: "{{ to }}", pause: 0}
    expect: count != 2
"""


def fill(disk: Path) -> None:
    """Take every byte that is left, and every page."""
    with (disk / "ballast").open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            with suppress(OSError):
                while True:
                    file.write(b"x" * size)


def one_runs(now: SweepSnapshot) -> bool:
    """Whether a cell is under way and another is over."""
    counts = now.counts()
    return counts["running"] > 0 and counts["finished"] > 0


def test_a_conductor_that_is_killed_and_resumed_redoes_nothing_and_loses_nothing(story: SweepStory) -> None:
    story.make("toy.count", {"to": [10, 11, 12]}, {"pause": 0.05}).start().until(one_runs).kill()
    assert story.now.state == "interrupted"
    assert "hfbench sweep resume story" in story.now.reason
    ended = story.resume().end()
    assert (ended.state, story.states) == ("finished", ["finished"] * 3)
    assert [cell.metrics["count"].value for cell in ended.cells] == [10, 11, 12]
    assert len(job_ids(jobs_root())) == 3, "the job that ran on was taken up, no cell has two"
    assert [cell.attempt for cell in ended.cells] == [1, 1, 1]


def test_a_job_that_its_conductor_launched_and_could_not_write_down_is_taken_up(story: SweepStory) -> None:
    story.make("toy.count", {"to": [1, 20]}, {"pause": 0.05}).start().until(one_runs).kill()
    (job,) = [each for each in job_ids(jobs_root()) if not read_job(JobDirectory(jobs_root() / each)).state.over]
    lines = story.folder.journal.read_text().splitlines(keepends=True)
    told = [line for line in lines if job not in line]
    assert len(told) == len(lines) - 1
    story.folder.journal.write_text("".join(told) + '{"v":1,"kind":"st')  # killed while it wrote that line
    ended = story.resume().end()
    assert (story.states, ended.cells[1].jobs) == (["finished"] * 2, (job,))
    assert len(job_ids(jobs_root())) == 2


def test_a_batch_that_was_launched_and_of_which_one_line_was_written_is_taken_up_whole(story: SweepStory) -> None:
    story.make("toy.count", {"to": [1, 2, 3]}, {"pause": 0}).start().end()
    kept = []
    for line in story.folder.journal.read_text().splitlines(keepends=True):
        told = json.loads(line)
        if told["kind"] == "step":
            kept.append(json.dumps({**told, "at": time.time()}) + "\n")  # after all jobs of the batch were made
            break
        kept.append(line)
    story.folder.journal.write_text("".join(kept))
    made = job_ids(jobs_root())
    story.resume().end()
    assert (story.states, job_ids(jobs_root())) == (["finished"] * 3, made)
    assert [cell.attempt for cell in story.now.cells] == [1, 1, 1]


def test_a_journal_that_was_emptied_is_written_again_from_the_jobs_that_are_there(story: SweepStory) -> None:
    story.make("toy.count", {"to": [1, 2]}, {"pause": 0}).start().end()
    made = job_ids(jobs_root())
    story.folder.journal.write_text("")
    assert "its journal is empty" in story.now.reason
    story.resume().end()
    assert (story.states, job_ids(jobs_root())) == (["finished"] * 2, made)


def test_damaged_lines_of_the_journal_do_not_keep_a_sweep_from_going_on(story: SweepStory) -> None:
    story.make("toy.count", {"to": [1, 20]}, {"pause": 0.05}).start().until(one_runs).kill()
    with story.folder.journal.open("a") as file:
        file.write('{"v":1,"kind":"ended","at":1}\n{"v":1,"kind":"step","cell":2,"step":1,"attempt":1,"at":"x"}\n')
        file.write('{"v":1,"kind":"again","at":1,"cells":[1,99]}\n')
    ended = story.resume().end()
    assert (story.states, len(job_ids(jobs_root()))) == (["finished"] * 2, 2)
    assert "passed over: 3" in ended.reason


def test_a_line_of_a_newer_version_is_refused_as_a_newer_sweep_is(story: SweepStory) -> None:
    story.make("toy.count", {"to": [1, 20]}, {"pause": 0.05}).start().until(one_runs).kill()
    with story.folder.journal.open("a") as file:
        file.write('{"v":2,"kind":"ended","at":1,"cell":2,"state":"finished"}\n')
    with pytest.raises(UsageError, match="which is newer"):
        resume(story.folder.path)


def test_a_conductor_that_cannot_begin_leaves_its_reason(story: SweepStory) -> None:
    story.make("toy.count", {"to": [1, 20]}, {"pause": 0.05}).start().until(one_runs).kill()
    script = story.folder.script.read_text()
    story.folder.script.unlink()
    assert "sweep.hfb.yaml" in story.resume().end().reason
    assert "conductor is gone" not in story.now.reason
    story.folder.script.write_text(script.replace("20", "21"))
    assert "the script was changed since the sweep began" in story.resume().end().reason
    story.folder.script.write_text(script)
    about = story.folder.path / "sweep.json"
    about.write_text(json.dumps({**json.loads(about.read_text()), "cwd": "/gone"}))
    assert "the folder it was asked for in is gone" in story.resume().end().reason


def test_a_conductor_whose_folder_is_deleted_stops_its_jobs_and_leaves(story: SweepStory) -> None:
    story.make("toy.count", {"to": [1, 3000]}, {"pause": 0.05}).start().until(one_runs)
    pid, ticks = story.conductor
    shutil.rmtree(story.folder.path)
    end = time.monotonic() + 30
    while same_process(pid, ticks):
        assert time.monotonic() < end, "it never noticed"
        time.sleep(0.05)
    assert all(read_job(JobDirectory(jobs_root() / each)).state.over for each in job_ids(jobs_root()))


def test_a_job_that_died_while_nobody_conducted_is_begun_again_and_that_is_told(story: SweepStory) -> None:
    story.make("toy.count", {"to": [1, 300]}, {"pause": 0.005}).start().until(one_runs).kill()
    (job,) = story.now.cells[1].jobs
    os.kill(read_job(JobDirectory(jobs_root() / job)).pid, signal.SIGKILL)  # the supervisor: nobody writes an end
    ended = story.resume().end()
    assert story.states == ["finished", "finished"]
    assert ended.cells[1].reason.startswith(f"job {job.rpartition('-')[2]} was begun again: the worker is gone")


def test_two_conductors_of_one_sweep_are_refused(story: SweepStory) -> None:
    story.make("toy.count", {"to": [50]}, {"pause": 0.05}).start()
    story.until(lambda now: now.counts()["running"] == 1)
    with pytest.raises(UsageError, match="a conductor is at work on it already"):
        resume(story.folder.path)
    assert story.now.state == "running"
    story.clean_up()


def test_a_worker_that_is_killed_fails_its_cell_with_the_reason_and_the_others_go_on(story: SweepStory) -> None:
    ended = story.make("toy.fail", {"how": ["segv", "error", "kill", "result"]}).start().end()
    assert (ended.state, story.states) == ("finished", ["failed"] * 4)
    reasons = [cell.reason for cell in ended.cells]
    assert "killed by SIGSEGV" in reasons[0]
    assert reasons[1].startswith("toy: the toy is broken")
    assert "killed by SIGKILL" in reasons[2]
    assert story.journal[-1]["exit"] == 3


def test_only_failed_cells_are_begun_again(story: SweepStory) -> None:
    ended = story.make_script(EXPECTING).start().end()
    assert story.states == ["finished", "failed", "finished"]
    assert ended.cells[1].reason == "not as expected: count != 2; it is 2"
    assert [cell.expectations for cell in ended.cells] == [(1, 0), (0, 1), (1, 0)]
    assert [cell.metrics["count"].value for cell in ended.cells] == [1, 2, 3]
    assert story.journal[-1]["exit"] == 1
    rerun_failed(story.folder.path)
    again = story.end()
    assert [cell.attempt for cell in again.cells] == [1, 2, 1]
    assert [line["cell"] for line in story.of("ended")] == [1, 2, 3, 2]
    assert again.cells[1].jobs != ended.cells[1].jobs


def test_a_sweep_that_is_cancelled_stops_its_job_and_can_be_resumed(story: SweepStory) -> None:
    story.make("toy.count", {"to": [1, 60]}, {"pause": 0.02}).start().until(one_runs)
    cancel(story.folder.path)
    stopped = story.end()
    assert (stopped.state, story.states[0]) == ("stopped", "finished")
    assert stopped.reason.startswith("stopped on request; hfbench sweep resume story")
    assert all(read_job(JobDirectory(jobs_root() / each)).state.over for each in job_ids(jobs_root()))
    ended = story.resume().end()
    assert story.states == ["finished", "finished"]
    assert "was begun again: stopped on request" in ended.cells[1].reason


def test_a_script_that_was_changed_since_is_not_resumed(story: SweepStory) -> None:
    story.make("toy.count", {"to": [1, 60]}, {"pause": 0.02}).start().until(one_runs).kill()
    story.folder.script.write_text(story.folder.script.read_text().replace("60", "61"))
    assert story.resume().end().state in ("stopped", "interrupted")
    assert "the script was changed since the sweep began" in story.log


def test_a_script_and_a_sweep_of_it_write_the_same_events_apart_from_times(
    story: SweepStory, hfbench, toy_actions: Path, tmp_path: Path
) -> None:
    source = FAILING.replace("[1, 2, 3]", "[1, 3]").replace("{how: result}", "{how: error}")
    script = tmp_path / "s.hfb.yaml"
    script.write_text(source)
    story.make_script(source).start().end()
    hfbench("--script", script, "--results", tmp_path / "results.jsonl")

    def told(path: Path) -> list[dict[str, object]]:
        events = [json.loads(line) for line in path.read_text().splitlines()]
        kept = ("event", "cell", "step", "line", "action", "status", "result", "error", "expr", "ok", "actual", "unit")
        return [
            {name: event.get(name) for name in kept} for event in events if event["event"].startswith(("step", "as"))
        ]

    assert told(story.folder.results) == told(tmp_path / "results.jsonl")
    assert len(told(story.folder.results)) == 10


def test_a_label_of_another_sweep_is_not_taken_for_ones_own(story: SweepStory) -> None:
    launch(jobs_root(), JobRequest(action="toy.count", params={"to": 1}, label="story to=1"))
    story.make("toy.count", {"to": [1]}, {"pause": 0}).start().end()
    assert len(job_ids(jobs_root())) == 2


def test_a_cell_that_is_named_is_begun_again_though_it_went_well_and_its_old_job_stays(story: SweepStory) -> None:
    ended = story.make_script(EXPECTING).start().end()
    rerun_cells(story.folder.path, [3])
    again = story.end()
    assert [cell.attempt for cell in again.cells] == [1, 1, 2]
    assert (again.cells[2].metrics["count"].value, story.states[1]) == (3, "failed"), "only the one that was named"
    old, new = ended.cells[2].jobs, again.cells[2].jobs
    assert old != new
    assert {*old, *new} <= set(job_ids(jobs_root()))


def test_a_place_that_is_out_of_reach_keeps_its_cells_waiting_and_others_take_them(story: SweepStory) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        away = f"ray://127.0.0.1:{taken.getsockname()[1]}"
        story.make("toy.count", {"to": [1, 2, 3]}, {"pause": 0}, on=(away, "local"), slots=1).start().end()
        assert story.states == ["finished"] * 3
        assert not [line for line in story.of("ended") if line["state"] == "failed"]
        alone = SweepStory("alone").make("toy.count", {"to": [1, 2]}, {"pause": 0}, on=(away,), slots=1).start()
        alone.until(lambda now: any("cannot be reached" in cell.reason for cell in now.cells))
        assert alone.states == ["queued", "queued"]
        cancel(alone.folder.path)
        assert (alone.end().state, alone.states) == ("stopped", ["queued", "queued"])
        assert alone.journal[-1]["exit"] == Exit.INTERRUPTED


@pytest.mark.parametrize("fills", ["the journal's disk", "a job's disk"])
def test_a_full_disk_stops_a_sweep_with_one_sentence_and_code_and_fails_no_cell(
    small_disk: Callable[[str], Path], toy_actions: Path, monkeypatch: pytest.MonkeyPatch, fills: str
) -> None:
    disk = small_disk("size=2m")
    monkeypatch.setenv("HFBENCH_HOME", str(disk))
    story = SweepStory()
    if fills == "a job's disk":
        story.make("toy.fail", {"how": ["disk"]}).start()
    else:
        story.make("toy.count", {"to": [20_000, 1]}).start().until(lambda now: now.counts()["running"] > 0)
        fill(disk)
    ended = story.end()
    assert (ended.state, ended.counts()["failed"], story.journal[-1]["exit"]) == ("stopped", 0, Exit.ENVIRONMENT)
    assert "the disk is full: free some space; hfbench sweep resume story goes on" in ended.reason
    assert follow(story.folder) == Exit.ENVIRONMENT
