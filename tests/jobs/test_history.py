"""The index of jobs is never the truth: whatever happens to it, the folders are told."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from story import JobStory

from hfbench.jobs.directory import JobDirectory, JobsFolderError, NoSuchJob, find_job, job_ids
from hfbench.jobs.events import Failed, Finished, Metric, Running, to_line
from hfbench.jobs.history import COLUMNS, SCHEMA, History
from hfbench.jobs.snapshot import State


def made(root: Path, number: int, *events: object, created: float = 1000.0) -> JobDirectory:
    """A job folder as an earlier day left it."""
    job = JobDirectory(root / f"2026-01-05T08-00-00-toy.count-{number:06x}")
    job.path.mkdir(parents=True)
    request = {"action": "toy.count", "params": {"model": "m", "to": 3}, "created": created + number, "label": "L"}
    (job.path / "request.json").write_text(json.dumps(request))
    job.events.write_bytes(b"".join(to_line(event) for event in (events or (Finished(seconds=1.0),))))  # type: ignore[arg-type]
    return job


def ids(history: History) -> list[str]:
    return [row.short_id for row in history.rows()]


def test_the_newest_comes_first_and_rows_say_what_matters(root: Path) -> None:
    made(root, 1, Running(at=1002.0), Metric(name="tpot", value=0.25, unit="s"), Finished(at=1010.0, seconds=8.0))
    made(root, 2, Running(at=1003.0), Failed(at=1004.0, error={"found": "no luck", "where": "here"}))
    second, first = History(root).rows()
    assert (first.headline, first.state, first.seconds(9e9), first.model) == ("tpot 250 ms", "finished", 8.0, "m")
    made(root, 3)
    request = root / "2026-01-05T08-00-00-toy.count-000003" / "request.json"
    request.write_text(json.dumps({"action": "kernel.check", "params": {"kernel": "/home/me/mine.py"}, "created": 9.0}))
    assert History(root).rows()[-1].model == "/home/me/mine.py", "a kernel is what its jobs are about"
    assert (second.note, second.state, second.seconds(9e9), second.label) == ("no luck", "failed", 1.0, "L")


def test_a_push_is_about_what_it_sends_and_a_pull_about_the_hub_it_asks(root: Path) -> None:
    told = {
        "push": {"folder": "/models/tiny", "model": "lab:org/tiny"},
        "pull": {"model": "org/tiny", "endpoint": "lab"},
        "hub.open": {"model": "lab:org/tiny", "endpoint": ""},
    }
    for number, (action, params) in enumerate(told.items(), start=1):
        job = made(root, number)
        job.path.joinpath("request.json").write_text(json.dumps({"action": action, "params": params, "created": 9.0}))
    found = {row.action: row.model for row in History(root).rows()}
    assert found == {"push": "/models/tiny", "pull": "lab:org/tiny", "hub.open": "lab:org/tiny"}


def test_two_thousand_jobs_are_listed_and_the_index_knows_them_next_time(root: Path) -> None:
    for number in range(2000):
        made(root, number)
    assert len(History(root).rows()) == 2000
    shutil.rmtree(root / "2026-01-05T08-00-00-toy.count-000000")
    assert ids(History(root))[-1] == "000001"
    assert len(History(root).rows(7)) == 7


def test_a_removed_folder_vanishes_and_a_new_one_appears(root: Path) -> None:
    history = History(root)
    assert history.rows() == []
    made(root, 1)
    job = made(root, 2)
    assert ids(history) == ["000002", "000001"]
    shutil.rmtree(job.path)
    assert ids(history) == ["000001"]


def test_reindex_believes_the_folders(root: Path) -> None:
    job = made(root, 1)
    history = History(root)
    assert history.rows()[0].state is State.FINISHED
    job.events.write_bytes(to_line(Failed(error={"found": "after all"})))
    assert history.rows()[0].state is State.FINISHED, "what is over is not read again"
    assert history.reindex() == 1
    assert history.rows()[0].state is State.FAILED


def damage_text(file: Path) -> None:
    file.write_text("this is no database at all" * 100)


def damage_middle(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[100:] = b"\xa5" * (len(data) - 100)
    file.write_bytes(data)


def damage_empty(file: Path) -> None:
    file.write_bytes(b"")


def damage_version(file: Path) -> None:
    with sqlite3.connect(file) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA + 1}")


def damage_state(file: Path) -> None:
    with sqlite3.connect(file) as db:
        db.execute("UPDATE jobs SET state = 'dancing'")


def damage_table(file: Path) -> None:
    with sqlite3.connect(file) as db:
        db.execute("DROP TABLE jobs")
        db.execute("CREATE TABLE jobs (name TEXT)")


def damage_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(
    "damage",
    [damage_text, damage_middle, damage_empty, damage_version, damage_state, damage_table, damage_folder],
    ids=lambda each: each.__name__,
)
def test_a_damaged_index_is_made_again(root: Path, damage: Callable[[Path], None]) -> None:
    for number in range(50):
        made(root, number)
    with_index = History(root)
    with_index.rows()
    with_index.close()
    damage(root / ".index.sqlite")
    for _ in range(2):
        history = History(root)
        assert len(history.rows()) == 50
        assert history.reindex() == 50
        history.close()


def test_an_index_damaged_under_an_open_history_does_not_stop_it(root: Path) -> None:
    made(root, 1)
    history = History(root)
    history.rows()
    damage_text(root / ".index.sqlite")
    made(root, 2)
    assert ids(history) == ["000002", "000001"]


def test_two_histories_of_one_folder_agree(root: Path) -> None:
    one, two = History(root), History(root)
    made(root, 1)
    assert ids(one) == ids(two) == ["000001"]
    made(root, 2)
    assert ids(two) == ids(one) == ["000002", "000001"]


def test_unfinished_jobs_are_read_again(story: JobStory, root: Path) -> None:
    history = History(root)
    story.launch("toy.count", to=100_000).until(progress=1)
    assert history.rows()[0].state is State.RUNNING
    story.cancel()
    assert history.rows()[0].state is State.CANCELLED


def test_a_folder_that_is_no_job_is_not_listed(root: Path) -> None:
    made(root, 1)
    for name in ("notes", ".new-2026-01-05T08-00-00-toy.count-00000a", "2026-01-05T08-00-00-toy.count-xyz"):
        (root / name).mkdir()
    assert job_ids(root) == ["2026-01-05T08-00-00-toy.count-000001"]


def test_a_jobs_folder_that_is_a_file_says_so(tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text("")
    with pytest.raises(JobsFolderError, match="the jobs folder cannot be read: Not a directory"):
        History(tmp_path / "jobs").rows()


def test_an_absent_folder_holds_no_jobs_and_is_not_made(root: Path) -> None:
    assert History(root).rows() == []
    assert not root.exists()


def test_jobs_are_found_by_any_clear_part_of_their_id(root: Path) -> None:
    first, second = made(root, 0xA1), made(root, 0xB1)
    assert find_job(root, first.id) == first
    assert find_job(root, "0000b1") == second
    assert find_job(root, "last") == second
    for wanted, told in [
        ("1", "2 jobs match"),
        ("zz", "no job matches"),
        ("", "is not a job id"),
        ("a/b", "not a job"),
    ]:
        with pytest.raises(NoSuchJob, match=told):
            find_job(root, wanted)
    with pytest.raises(NoSuchJob, match="there is no job yet"):
        find_job(root / "none", "last")


def test_the_columns_are_the_fields_of_a_row() -> None:
    from dataclasses import fields

    from hfbench.jobs.history import JobRow

    assert [field.name for field in fields(JobRow)] == COLUMNS.split(", ")


def test_a_job_that_comes_or_goes_is_seen_by_a_history_that_looked_before(tmp_path: Path) -> None:
    """The folder's own time of change spares reading it, once that lies back far enough."""
    one, settled = made(tmp_path, 1), time.time() - 60
    history = History(tmp_path)
    history.rows()
    os.utime(tmp_path, (settled, settled))
    for _ in range(3):
        assert ids(history) == [one.short_id]
    two = made(tmp_path, 2)
    assert set(ids(history)) == {one.short_id, two.short_id}
    os.utime(tmp_path, (settled, settled))
    assert len(history.rows()) == 2
    shutil.rmtree(one.path)
    assert ids(history) == [two.short_id]
    history.close()


def test_a_job_under_way_is_read_again_though_no_folder_changed(tmp_path: Path) -> None:
    job, settled = made(tmp_path, 1, Running(device="cpu")), time.time() - 60
    history, lock = History(tmp_path), os.open(job.lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    history.rows()
    os.utime(tmp_path, (settled, settled))
    assert [row.state for row in history.rows()] == [State.RUNNING]
    with job.events.open("ab") as events:
        events.write(to_line(Finished(seconds=1.0)))
    os.close(lock)
    os.utime(tmp_path, (settled, settled))
    assert [row.state for row in history.rows()] == [State.FINISHED]
    history.close()
