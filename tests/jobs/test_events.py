"""events.jsonl: torn, foreign and newer lines, and readers that come at any time."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.jobs.directory import JobDirectory, create, take_lock
from hfbench.jobs.events import (
    KINDS,
    Event,
    Finished,
    Log,
    Metric,
    Progress,
    Queued,
    Running,
    Started,
    Unknown,
    from_line,
    to_line,
)
from hfbench.jobs.run import Run
from hfbench.jobs.snapshot import KEPT_SAMPLES, Follower, State, read_job
from hfbench.jobs.tail import EventTail, log_tail, read_events


@pytest.fixture
def job(root: Path) -> JobDirectory:
    """A job nobody works on."""
    made, lock = create(root, "toy.count", {"params": {"to": 3}})
    os.close(lock)
    return made


def write(job: JobDirectory, *lines: bytes) -> None:
    with job.events.open("ab") as file:
        file.write(b"".join(lines))


def test_every_event_reads_back(job: JobDirectory) -> None:
    told: list[Event] = [
        Started(pid=1, ticks=2, host="here"),
        Queued(device="cpu", waits_for="somebody"),
        Running(device="cpu"),
        Progress(phase="count", done=1, total=None),
        Metric(name="n", value=math.inf, unit="s"),
        Log(text="two\nlines \x1b[31m"),
        Finished(seconds=0.5),
    ]
    write(job, *map(to_line, told))
    assert read_events(job) == told


def test_a_line_holds_its_version_and_is_plain_ascii() -> None:
    line = to_line(Log(text="größer\u202e"))
    assert line.isascii()
    assert line.count(b"\n") == 1
    assert json.loads(line)["v"] == 1


def test_a_torn_line_waits_for_its_end(job: JobDirectory) -> None:
    line = to_line(Running())
    tail = EventTail(job)
    write(job, to_line(Started(pid=1, ticks=2, host="h")), line[:9])
    assert [event.kind for event in tail.read()] == ["started"]
    assert list(tail.read()) == []
    write(job, line[9:])
    assert [event.kind for event in tail.read()] == ["running"]


def test_a_torn_line_that_is_cut_off_again_spoils_nothing(job: JobDirectory) -> None:
    """A writer on a full disk takes back what did not fit, while somebody reads."""
    tail = EventTail(job)
    write(job, to_line(Running()))
    size = job.events.stat().st_size
    write(job, b'{"v":1,"kind":"met')
    assert [event.kind for event in tail.read()] == ["running"]
    os.truncate(job.events, size)
    write(job, to_line(Finished(seconds=1.0)))
    assert [event.kind for event in tail.read()] == ["finished"]
    assert tail.skipped == 0


@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b"[]",
        b"{}",
        b'{"kind": 5}',
        b'{"kind": "running"',
        b'{"kind": ["running"], "at": 1}',
        b'{"kind": "started", "at": 1, "pid": "many", "ticks": 1, "host": "h"}',
        b'{"kind": "started", "at": 1, "pid": true, "ticks": 1, "host": "h"}',
        b'{"kind": "started", "at": 1}',
        b'{"kind": "progress", "at": 1, "phase": "p", "done": "half"}',
        b'{"kind": "failed", "at": 1, "error": "oh"}',
        b'{"kind": "news", "at": "yesterday"}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"kind": "running", "at": ' + b"9" * 5000 + b"}",
    ],
)
def test_a_foreign_line_is_skipped_and_counted(job: JobDirectory, line: bytes) -> None:
    write(job, line, b"\n", to_line(Running()))
    tail = EventTail(job)
    assert [event.kind for event in tail.read()] == ["running"]
    assert tail.skipped == 1


@given(st.binary(max_size=200))
def test_no_line_at_all_makes_the_reader_stumble(line: bytes) -> None:
    event = from_line(line)
    assert event is None or isinstance(event, Event)


def test_an_event_of_a_newer_version_is_kept_as_it_is(job: JobDirectory) -> None:
    write(job, b'{"v": 7, "kind": "paused", "at": 5.0, "why": ["lunch"]}\n')
    [event] = read_events(job)
    assert isinstance(event, Unknown)
    assert (event.name, event.at, event.data["why"]) == ("paused", 5.0, ["lunch"])
    assert read_job(job).state is State.DIED, "and it is not taken for an end"


def test_new_fields_of_known_events_are_left_out(job: JobDirectory) -> None:
    write(job, b'{"v": 7, "kind": "finished", "at": 5.0, "seconds": 1.5, "mood": "good"}\n')
    assert read_events(job) == [Finished(at=5.0, seconds=1.5)]


def test_each_kind_has_a_word_of_its_own() -> None:
    assert all(kind.kind == word for word, kind in KINDS.items())
    assert {"finished", "failed", "cancelled", "died"} == {word for word, kind in KINDS.items() if kind.final}


def test_two_followers_see_the_same_whenever_they_came(job: JobDirectory) -> None:
    lock = take_lock(job.lock)
    assert lock is not None
    early = Follower(job)
    early.read()
    late_lines = [to_line(Metric(name="n", value=float(n), unit="s")) for n in range(5)]
    for line in late_lines:
        write(job, line)
        early.read()
    assert early.read().series == Follower(job).read().series
    assert early.read().series["n"].values == (0.0, 1.0, 2.0, 3.0, 4.0)
    os.close(lock)


def test_only_the_last_samples_are_kept_and_all_are_counted(job: JobDirectory) -> None:
    many = KEPT_SAMPLES + 10
    write(job, *(to_line(Metric(name="n", value=float(n), unit="s")) for n in range(many)))
    follower = Follower(job)
    follower.fold(EventTail(job).read())
    series = follower.fold([Metric(name="n", value=-1.0, unit="s")]).series["n"]
    assert (series.count, series.last, len(series.values)) == (many + 1, -1.0, KEPT_SAMPLES)


def test_a_result_without_a_last_event_counts_as_finished(job: JobDirectory) -> None:
    """The worker was killed between the two: the work is whole."""
    write(job, to_line(Running()))
    job.write("result.json", {"result": {"count": 3}})
    snapshot = read_job(job)
    assert (snapshot.state, snapshot.result) == (State.FINISHED, {"count": 3})
    assert snapshot.ended is not None


@pytest.mark.parametrize(
    "text", ["", "null", "[1]", "{", '{"params": 5, "created": "once", "label": []}', '{"created": NaN, "action": {}}']
)
def test_a_damaged_request_is_a_job_like_any_other(job: JobDirectory, text: str) -> None:
    from hfbench.jobs.history import History

    (job.path / "request.json").write_text(text)
    snapshot = read_job(job)
    assert (snapshot.params, snapshot.state) == ({}, State.DIED)
    assert abs(snapshot.created - job.path.stat().st_mtime) < 60, "by the name of the folder"
    assert [row.id for row in History(job.path.parent).rows()] == [job.id]


def test_a_progress_flood_is_thinned_but_keeps_its_ends() -> None:
    seen: list[Event] = []
    run = Run(seen.append)
    for done in range(1001):
        run.progress("count", done, 1000)
    assert len(seen) < 100
    assert [event.done for event in seen if isinstance(event, Progress)][0 :: len(seen) - 1] == [0, 1000]


def test_rate_and_time_left_follow_from_the_reports(job: JobDirectory) -> None:
    write(job, *(to_line(Progress(at=100.0 + n, phase="p", done=10.0 * n, total=100.0)) for n in range(4)))
    progress = read_job(job).progress
    assert progress is not None
    assert (progress.rate(103.0), progress.left(103.0), progress.share) == (10.0, 7.0, 0.3)
    assert progress.left(106.0) == 14.0  # nothing came for as long again: it takes longer than was thought


def test_nothing_is_left_of_a_phase_that_is_done_and_nothing_known_of_one_without_a_total(job: JobDirectory) -> None:
    done = [Progress(at=100.0, phase="a", done=0, total=2), Progress(at=102.0, phase="a", done=2, total=2)]
    write(job, *map(to_line, done))
    assert [(each.share, each.left(109.0)) for each in read_job(job).phases] == [(1.0, None)]
    write(job, *map(to_line, [Progress(at=103.0, phase="b", done=0), Progress(at=104.0, phase="b", done=1)]))
    assert [(each.share, each.left(109.0)) for each in read_job(job).phases][-1] == (None, None)


def test_the_log_tail_shows_what_a_progress_bar_shows_last(job: JobDirectory) -> None:
    job.log.write_bytes(b"one\n 10%\r 50%\r100%\n\nbad \xff byte\nunfinished")
    assert log_tail(job) == ["one", "100%", "bad \udcff byte", "unfinished"]
    assert log_tail(job, lines=1) == ["unfinished"]
