"""One odd job folder disables nothing: it is told as what it is, and the others are listed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hfbench.jobs.directory import JobDirectory, NoSuchJob, find_job, job_ids
from hfbench.jobs.events import Metric, Progress, from_line, to_line
from hfbench.jobs.history import History
from hfbench.jobs.snapshot import read_job
from hfbench.jobs.tail import log_tail, read_at

FILES = ("events.jsonl", "request.json", "result.json", "cancel.json", "output.log", "lock")


def folder(root: Path, number: int = 1) -> JobDirectory:
    job = JobDirectory(root / f"2026-01-05T08-00-00-toy.count-{number:06x}")
    job.path.mkdir(parents=True)
    return job


@pytest.mark.parametrize(
    "make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir], ids=["pipe", "zeros", "folder"]
)
def test_what_is_no_file_is_told_as_absent(root: Path, make: Callable[[Path], None]) -> None:
    job = folder(root)
    for name in FILES:
        make(job.path / name)
    [row] = History(root).rows()
    assert (row.action, row.state, row.note) == ("?", "died", "request.json is damaged")
    assert (log_tail(job), read_at(job.log, 0)) == ([], b"")


def test_a_damaged_request_keeps_the_time_of_the_name(root: Path) -> None:
    job = folder(root)
    (job.path / "request.json").write_text("{torn")
    [row] = History(root).rows()
    assert time.strftime("%Y-%m-%d %H:%M", time.localtime(row.created)) == "2026-01-05 08:00"
    assert row.seconds(9e9) == 0.0


@pytest.mark.parametrize("told", ['"soon"', "1" + "0" * 400, "NaN", "[]", "null"])
def test_no_time_of_a_request_stops_the_list(root: Path, told: str) -> None:
    job = folder(root)
    (job.path / "request.json").write_text(f'{{"action": "a", "label": "\\ud800", "created": {told}, "grace": {told}}}')
    (job.path / "result.json").write_text('{"result": [1]}')
    [row] = History(root).rows()
    assert (row.label, row.state, job.grace) == ("?", "finished", 10.0)
    assert find_job(root, "last") == job


def test_a_link_or_a_file_is_no_job(root: Path, tmp_path: Path) -> None:
    real = folder(root)
    link, file = (real.path.with_name(real.id[:-1] + end) for end in "ef")
    link.symlink_to(real.path)
    file.write_text("")
    assert job_ids(root) == [real.id]
    for wanted, told in ((link.name, "it is a link"), (link.name[-6:], "it is a link"), (file.name, "not a folder")):
        with pytest.raises(NoSuchJob, match=told):
            find_job(root, wanted)


def test_a_line_without_end_is_not_kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hfbench.jobs.tail.LONGEST_LINE", 1 << 20)
    job = folder(root)
    last = to_line(Metric(name="m", value=1.0, unit="s"))
    job.events.write_bytes(bytes(5 << 20) + b"\n" + last)
    assert read_job(job).series["m"].last == 1.0


def test_hot_events_read_the_same_by_either_way() -> None:
    for event in (
        Metric(name="m", value=-5e-324, unit="s"),
        Metric(name='"\u00e9\\', value=1e300, unit=""),
        Progress(phase="p", done=1.0, total=None, unit="x"),
    ):
        assert from_line(to_line(event)) == event
    line = {"kind": "metric", "at": 1, "name": "m", "value": 2, "unit": "s"}
    assert from_line(json.dumps(line).encode()) == Metric(at=1.0, name="m", value=2.0, unit="s")
    assert from_line(json.dumps({**line, "value": True}).encode()) is None
    assert from_line(json.dumps({**line, "name": 7}).encode()) is None


def test_three_hundred_thousand_metrics_are_read_in_seconds(root: Path) -> None:
    job = folder(root)
    job.events.write_bytes(b"".join(to_line(Metric(at=1.0, name="m", value=0.5, unit="s")) for _ in range(10)) * 30_000)
    begin = time.process_time()
    assert read_job(job).series["m"].count == 300_000
    assert time.process_time() - begin < 8.0
