"""A sweep's folder is read as it is, however it was left."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from sweep_folder import Written

from hfbench.jobs.directory import JobDirectory, take_lock
from hfbench.jobs.events import Progress, Running, Started, to_line
from hfbench.sweeps.folder import NoSuchSweep, find_sweep
from hfbench.sweeps.snapshot import Figure, SweepFollower, list_sweeps, read_sweep

Four = Callable[..., Written]


def test_cells_are_queued_running_and_over_as_the_journal_says(four: Four, held: Callable[[Written], None]) -> None:
    sweep = four().begin(1).finish(1, tpot=0.5, rate=(7.0, "tok/s")).begin(2)
    assert [cell.state for cell in sweep.read().cells][1] == "queued", "nobody is there to end it"
    held(sweep)
    found = sweep.read()
    assert [cell.state for cell in found.cells] == ["finished", "running", "queued", "queued"]
    assert found.cells[0].metrics["tpot.p50"] == Figure(0.5, "s", "lower", "n=3")
    assert found.cells[0].metrics["rate.p50"] == Figure(7.0, "tok/s", "higher", "n=3")
    assert found.cells[0].metrics["tpot.n"] == Figure(3, "", "")
    assert (found.cells[0].expectations, found.cells[0].label) == ((1, 0), "dtype=fp32 batch=1")
    assert (found.state, found.cells[0].seconds) == ("running", 2.0)
    assert len({cell.outputs for cell in found.cells[:1]} - {""}) == 1


def test_a_follower_comes_to_the_same_as_one_look_at_the_end(four: Four) -> None:
    sweep = four()
    follower = SweepFollower(sweep.folder)
    for cell in (1, 2, 3, 4):
        sweep.begin(cell)
        follower.read()
        sweep.finish(cell, "failed" if cell == 2 else "finished", reason="no" if cell == 2 else "", tpot=float(cell))
        follower.read()
    sweep.journal("again", cells=[2]).begin(2, attempt=2)
    follower.read()
    sweep.finish(2, attempt=2, tpot=9.0)
    sweep.journal("conductor", did="finished", pid=1)
    assert follower.read() == sweep.read()
    assert [cell.metrics["tpot.p50"].value for cell in sweep.read().cells] == [1.0, 9.0, 3.0, 4.0]
    assert sweep.read().state == "finished"


def test_results_that_are_read_before_the_line_that_tells_of_their_attempt_are_kept(four: Four) -> None:
    sweep = four().begin(1).finish(1, "failed", tpot=1.0)
    follower = SweepFollower(sweep.folder)
    follower.read()
    journal = (sweep.folder / "journal.jsonl").read_text()
    sweep.journal("again", cells=[1]).begin(1, attempt=2).finish(1, attempt=2, tpot=5.0)
    later = (sweep.folder / "journal.jsonl").read_text()
    (sweep.folder / "journal.jsonl").write_text(journal)
    follower.read()
    (sweep.folder / "journal.jsonl").write_text(later)
    assert follower.read().cells[0].metrics["tpot.p50"].value == 5.0


def test_time_in_which_nobody_conducted_is_not_counted(four: Four) -> None:
    sweep = four().begin(1).finish(1)
    before = sweep.read().seconds
    sweep.at += 1000
    sweep.journal("conductor", did="resumed", pid=2, slots=1).begin(2).finish(2)
    assert sweep.read().seconds == before + 2


def test_a_torn_last_line_and_foreign_ones_are_passed_over(four: Four) -> None:
    sweep = four().begin(1).finish(1)
    whole = sweep.read()
    with (sweep.folder / "journal.jsonl").open("a") as file:
        file.write('nonsense\n[1]\n{"kind":"ended","cell":2,"sta')
    assert sweep.read() == whole


def test_a_folder_of_a_newer_version_is_told_and_shown_as_far_as_it_can_be_read(four: Four) -> None:
    sweep = four(v=7).begin(1).finish(1, tpot=1.0).journal("moved", cell=2, to="the moon")
    found = sweep.read()
    assert (found.newer, found.cells[0].state) == (True, "finished")
    assert "written by hfbench 9.9, which is newer than this one" in found.reason


def test_damaged_lines_of_the_journal_are_passed_over_and_counted(four: Four) -> None:
    sweep = four().begin(1).finish(1)
    whole = sweep.read()
    with (sweep.folder / "journal.jsonl").open("a") as file:
        file.write('{"v":1,"kind":"ended","at":1}\n{"v":1,"kind":"step","cell":1,"step":1,"attempt":9,"at":"x"}\n')
        file.write(f'{{"v":1,"kind":"ended","cell":1,"state":"finished","at":1{"0" * 400}}}\n')
    found = sweep.read()
    assert found.cells == whole.cells
    assert "damaged lines of its journal, which were passed over: 3" in found.reason


def test_a_line_of_a_newer_version_makes_the_sweep_a_newer_one(four: Four) -> None:
    sweep = four().begin(1)
    assert not sweep.read().newer
    with (sweep.folder / "journal.jsonl").open("a") as file:
        file.write('{"v":2,"kind":"ended","at":1,"cell":1,"state":"finished"}\n')
    assert sweep.read().newer


def test_a_folder_that_is_gone_and_a_journal_that_was_emptied_are_told(four: Four) -> None:
    sweep = four().begin(1).finish(1, tpot=1.0)
    (sweep.folder / "journal.jsonl").write_text("")
    assert "its journal is empty: what it told of cells that were begun is lost (1 or more)" in sweep.read().reason
    follower = SweepFollower(sweep.folder)
    follower.read()
    shutil.rmtree(sweep.folder)
    assert (follower.read().reason, follower.read().state) == ("its folder is gone", "interrupted")


def test_a_sweep_that_is_called_last_is_found_before_the_latest(four: Four) -> None:
    root = four("last").folder.parent
    newest = four("newest").folder / "sweep.json"
    newest.write_text(newest.read_text().replace("1000.0", "2000.0"))
    assert (find_sweep(root, "last").name, find_sweep(root, "@").name) == ("last", "newest")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"v": "x"}', f'{{"made": 1{"0" * 400}}}', '{"made": NaN}'])
def test_a_damaged_sweep_is_listed_and_nothing_is_raised(four: Four, text: str) -> None:
    sweep = four().begin(1)
    (sweep.folder / "sweep.json").write_text(text)
    (sweep.folder / "journal.jsonl").write_text('{"kind":"step","at":1,"cell":1}\n{"kind":"planned","at":2,"axes":3}\n')
    (row,) = list_sweeps(sweep.folder.parent)
    assert (row.name, row.cells) == ("four", 0)


def test_time_left_is_reckoned_from_the_first_cells_and_says_so(four: Four, held: Callable[[Written], None]) -> None:
    sweep = four().begin(1).finish(1)
    assert sweep.read().left_s is None, "nobody conducts it"
    held(sweep)
    found = sweep.read()
    assert (found.state, found.left_s, found.left_from) == ("running", 6.0, "the first cell")


def test_a_sweep_is_found_by_its_name_its_beginning_or_as_the_last(four: Four) -> None:
    root = four("alpha").folder.parent
    four("alps")
    assert find_sweep(root, "alpha").name == "alpha"
    assert find_sweep(root, "alph").name == "alpha"
    assert find_sweep(root, "last").name in ("alpha", "alps")
    with pytest.raises(NoSuchSweep, match="2 sweeps begin with 'al': alpha, alps"):
        find_sweep(root, "al")
    with pytest.raises(NoSuchSweep, match="Did you mean 'alpha'"):
        find_sweep(root, "alpxa")


def test_ten_thousand_cells_are_read_in_a_moment(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("many") / "many"
    sweep = Written(folder, {"n": range(10_000)}, [(n,) for n in range(10_000)])
    for cell in range(1, 50):
        sweep.begin(cell).finish(cell, tpot=1.0)
    found = read_sweep(folder)
    assert (len(found.cells), found.counts()["finished"]) == (10_000, 49)


def test_a_cell_that_is_run_again_does_not_say_that_all_is_done_while_it_runs(
    four: Four, held: Callable[[Written], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HFBENCH_HOME", str(tmp_path))
    sweep = four()
    sweep.begin(1).finish(1, "finished", tpot=1.0)
    sweep.journal("again", cells=[1])
    job = JobDirectory(tmp_path / "jobs" / "2026-12-01T00-00-00-bench.generate-abcdef")
    job.path.mkdir(parents=True)
    (job.path / "request.json").write_text('{"v": 1, "action": "bench.generate", "params": {}, "created": 1.0}')
    told = [
        Started(at=1.0, pid=1, ticks=1, host="x"),
        Running(at=1.0, device="cpu"),
        Progress(at=2.0, phase="warm-up", done=2, total=2),
    ]
    job.events.write_bytes(b"".join(map(to_line, told)))
    lock = take_lock(job.lock)
    sweep.begin(1, attempt=2, job=job.id)
    held(sweep)
    [cell, *_] = sweep.read().cells
    os.close(lock or 0)
    assert (cell.state, cell.progress) == ("running", 0.99)


def test_a_journal_with_the_earlier_word_for_finished_is_read_as_ever(four: Four) -> None:
    sweep = four()
    for cell in (1, 2, 3, 4):
        sweep.begin(cell).finish(cell, "done", tpot=1.0)
    sweep.journal("conductor", did="done", pid=1)
    found = sweep.read()
    assert (found.state, found.counts()["finished"], found.cells[0].progress) == ("finished", 4, 1.0)
