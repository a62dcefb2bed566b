"""The folder of a job: whole from its first moment, locked while somebody works on it."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hfbench.jobs.directory import (
    RESERVE_BYTES,
    JobDirectory,
    NoSuchJob,
    create,
    find_job,
    job_ids,
    take_lock,
    write_json,
)
from hfbench.jobs.launch import JobRequest, launch
from hfbench.jobs.snapshot import State, read_job
from hfbench.jobs.supervise import Ending, last_words
from hfbench.worker import main as work


def test_a_new_job_is_whole_and_locked_as_soon_as_it_can_be_seen(root: Path) -> None:
    """A list that is made at the same moment must never take it for dead."""
    seen: set[tuple[bool, int]] = set()
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            for each in job_ids(root):
                job = JobDirectory(root / each)
                seen.add((job.alive(), len(job.request)))

    looking = threading.Thread(target=look)
    looking.start()
    locks = [create(root, "toy.count", {"params": {}})[1] for _ in range(50)]
    over.set()
    looking.join()
    assert seen == {(True, 4)}
    for lock in locks:
        os.close(lock)


def test_two_launchers_in_one_folder_never_collide(root: Path, toy_actions: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        request = JobRequest(action="toy.count", params={"to": 1}, lease=False)
        jobs = list(pool.map(lambda _: launch(root, request), range(4)))
    assert len({job.id for job in jobs}) == 4
    from hfbench.jobs.follow import wait_until

    assert {wait_until(job, lambda s: s.state.over, 60).state for job in jobs} == {State.FINISHED}


def test_a_job_holds_a_reserve_that_no_disk_can_compress(root: Path) -> None:
    job, lock = create(root, "toy.count", {})
    os.close(lock)
    assert len(set(job.reserve.read_bytes())) > 200
    assert job.reserve.stat().st_size == RESERVE_BYTES


@pytest.fixture
def three(root: Path) -> Path:
    """Three jobs whose ids resemble each other."""
    for name in ("2026-01-05T08-00-00-a.b-a64f01", "2026-01-05T08-00-01-a.b-a6e2a6", "2026-01-06T08-00-00-a.b-00a64f"):
        (root / name).mkdir(parents=True)
    return root


@pytest.mark.parametrize(
    ("word", "short_id"),
    [
        ("a64f0", "a64f01"),
        ("a6e", "a6e2a6"),
        ("e2a6", "a6e2a6"),
        ("00a64f", "00a64f"),
        ("0a64f", "00a64f"),
        ("2026-01-06", "00a64f"),
    ],
)
def test_a_job_is_named_by_either_end_of_its_id_or_of_its_short_id(three: Path, word: str, short_id: str) -> None:
    assert find_job(three, word).short_id == short_id


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("a6", "2 jobs match 'a6': a64f01, a6e2a6. Type more of one"),
        ("a64f", "2 jobs match 'a64f': a64f01, 00a64f"),
        ("2026", "3 jobs match '2026': a64f01, a6e2a6, 00a64f"),
        ("64f0", "no job matches '64f0'. Hfbench jobs list"),
        ("", "'' is not a job id"),
        ("../x", "'../x' is not a job id"),
    ],
)
def test_a_word_that_means_several_jobs_or_none_is_told(three: Path, word: str, told: str) -> None:
    with pytest.raises(NoSuchJob) as caught:
        find_job(three, word)
    assert told.lower() in str(caught.value).lower()


def test_of_many_jobs_the_latest_are_told(root: Path) -> None:
    for number in range(9):
        (root / f"2026-01-05T08-00-0{number}-a.b-abc00{number}").mkdir(parents=True)
    with pytest.raises(NoSuchJob, match="9 jobs match 'abc': abc004, abc005, abc006, abc007, abc008 and 4 more"):
        find_job(root, "abc")


def test_the_lock_tells_whether_the_worker_lives(root: Path) -> None:
    job, lock = create(root, "toy.count", {})
    assert job.alive()
    assert take_lock(job.lock) is None
    os.close(lock)
    assert not job.alive()


def test_a_reader_that_looks_just_now_does_not_keep_a_worker_away(root: Path) -> None:
    job, lock = create(root, "toy.count", {})
    os.close(lock)
    reader = os.open(job.lock, os.O_RDONLY)
    fcntl.flock(reader, fcntl.LOCK_SH)
    threading.Timer(0.2, os.close, [reader]).start()
    taken = take_lock(job.lock, patience=20)
    assert taken is not None
    os.close(taken)


def test_json_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"n": 1})
    with pytest.raises(TypeError):
        write_json(tmp_path / "a.json", {"n": object()})
    assert json.loads((tmp_path / "a.json").read_text()) == {"n": 1}
    assert [each.name for each in tmp_path.iterdir() if "json" in each.name] == ["a.json"]


@pytest.mark.parametrize(
    ("prepare", "told"),
    [
        (lambda job: job.path.joinpath("request.json").unlink(), "there is no request of a job in it"),
        (lambda job: job.events.write_text('{"v":1,"kind":"finished","at":1,"seconds":1}\n'), "this job is over"),
    ],
    ids=["no request", "over"],
)
def test_a_worker_refuses_a_folder_with_nothing_to_do(
    root: Path, prepare: object, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    job, lock = create(root, "toy.count", {"params": {}})
    os.close(lock)
    prepare(job)  # type: ignore[operator]
    before = sorted(each.name for each in job.path.iterdir())
    assert work([str(job.path)]) == 2
    assert told in capsys.readouterr().err
    assert sorted(each.name for each in job.path.iterdir()) == sorted({*before, "lock"})


def test_a_second_worker_leaves_the_first_alone(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job, lock = create(root, "toy.count", {"params": {}})
    assert work([str(job.path)]) == 2
    assert "another worker runs this job" in capsys.readouterr().err
    assert job.events.read_bytes() == b""
    os.close(lock)


def test_a_worker_started_by_hand_runs_a_job_left_in_a_folder(root: Path, toy_actions: Path) -> None:
    """That is all another executor needs."""
    job, lock = create(root, "toy.count", {"params": {"to": 2}})
    os.close(lock)
    done = subprocess.run([sys.executable, "-m", "hfbench.worker", str(job.path)], capture_output=True, timeout=60)
    assert done.returncode == 0
    assert read_job(job).state is State.FINISHED


def test_the_users_folder_hides_no_module_from_the_worker(
    root: Path, toy_actions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hfbench.jobs.follow import wait_until

    (tmp_path / "dataclasses.py").write_text("raise SystemExit('the wrong module')")
    (tmp_path / "hfbench").mkdir()
    (tmp_path / "hfbench" / "__init__.py").write_text("raise SystemExit('the wrong hfbench')")
    monkeypatch.chdir(tmp_path)
    job = launch(root, JobRequest(action="toy.count", params={"to": 1}))
    assert wait_until(job, lambda s: s.state.over, 60).state is State.FINISHED


def ending(status: int, **told: object) -> Ending:
    kept = {"peak_rss": 3 << 30, "oom_kills": 0, "stopped_by": "", "killed": False, **told}
    return Ending(status=status, **kept)  # type: ignore[arg-type]


def test_a_kill_by_the_kernel_for_memory_is_told_apart_from_a_kill_by_hand() -> None:
    assert "out of memory (peak 3.00 GiB" in str(last_words(ending(9, oom_kills=1), grace=1, limit=None))
    assert "by somebody" in str(last_words(ending(9), grace=1, limit=None))


def test_a_signal_without_a_name_stays_a_number() -> None:
    assert "killed by signal 63" in str(last_words(ending(63), grace=1, limit=None))
