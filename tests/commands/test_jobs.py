"""`hfbench jobs`: every verb, with and without JSON."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hfbench.commands.jobs import table
from hfbench.jobs.cancel import cancel
from hfbench.jobs.directory import JobDirectory, find_job, job_ids
from hfbench.jobs.follow import wait_until
from hfbench.jobs.history import JobRow
from hfbench.jobs.snapshot import State, read_job
from hfbench.paths import jobs_root

pytestmark = pytest.mark.usefixtures("toy_actions")

Hfbench = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def finished(hfbench: Hfbench) -> JobDirectory:
    """A job that has counted to three."""
    hfbench("toy", "count", "--to", "3", "--label", "first try")
    return find_job(jobs_root(), "last")


@pytest.fixture
def running(hfbench: Hfbench) -> Iterator[JobDirectory]:
    """A job that counts for a long time."""
    job = find_job(jobs_root(), hfbench("toy", "count", "--to", "100000", "--detach").stdout.strip())
    wait_until(job, lambda s: s.progress is not None, timeout=60)
    yield job
    if job.path.exists():
        cancel(job)


def test_a_list_without_jobs_says_how_to_start_one(hfbench: Hfbench, home: Path) -> None:
    done = hfbench("jobs")
    assert (done.returncode, done.stdout) == (
        0,
        f"no jobs yet in {home / 'jobs'}; hfbench bench generate MODEL starts one\n",
    )
    assert json.loads(hfbench("jobs", "list", "--json").stdout) == []
    assert not home.exists()


def test_the_list_shows_the_newest_first(hfbench: Hfbench, finished: JobDirectory) -> None:
    hfbench("toy", "fail")
    head, second, first = hfbench("jobs", "list").stdout.splitlines()
    assert head.split() == ["JOB", "STATE", "ACTION", "RAN", "STARTED", "RESULT"]
    assert first.split()[:3] == [finished.short_id, "finished", "toy.count"]
    assert second.endswith("  the toy is broken"), "what was found; where and what to do are on its page"
    assert first.endswith("  first try: number 3.00 s"), "the label stands before the result"
    assert hfbench("jobs", "--json").stdout.count("toy.fail") == hfbench("jobs", "list", "--json").stdout.count(
        "toy.fail"
    )
    assert len(hfbench("jobs", "-n", "1").stdout.splitlines()) == 2
    assert len(hfbench("jobs", "list", "-n", "1").stdout.splitlines()) == 2
    [row] = json.loads(hfbench("jobs", "list", "-n", "1", "--json").stdout)
    assert (row["action"], row["state"]) == ("toy.fail", "failed")


ROW = JobRow(
    id="2026-01-05T08-00-00-a_very.long_action_name-0123ab",
    action="a_very.long_action_name",
    label="x" * 200,
    model="m" * 200,
    device="cpu",
    state=State.CANCELLING,
    created=0.0,
    started=1.0,
    ended=None,
    headline="h" * 200,
    note="\x1b[2J" * 50,
)


@pytest.mark.parametrize(
    ("told", "end"),
    [
        ({"label": "", "headline": ""}, "  m"),
        ({"label": "", "headline": "tpot 8 ms"}, "  tpot 8 ms"),
        ({"label": "night", "headline": "tpot 8 ms"}, "  night: tpot 8 ms"),
        ({"label": "night", "headline": ""}, "  night"),
        (
            {"label": "the night of it all", "headline": "8.00 ms  1,000 tok/s"},
            "  the nig...: 8.00 ms  1,000 tok/s",
        ),
        ({"label": "the night of it all", "headline": "h" * 60}, f"  the n...: {'h' * 19}..."),
        ({"label": "s n=4", "headline": "tpot 8 ms  9 tok/s"}, "  s n=4: tpot 8 ms  9 tok/s"),
        ({"label": "generate-n n=4", "headline": "tpot 8 ms?  1,000 tok/s?"}, "  n=4: tpot 8 ms?  1,000 tok/s?"),
        ({"label": "generate dtype=bf16 n=4", "headline": "tpot 8 ms?  9 tok/s"}, "  dtype=bf16 n=4: tpot 8 ms?"),
        ({"label": "g dtype=bf16 batch=4 prompt=16", "headline": "tpot 425 ms  9 tok/s"}, "  bf16 4 16: tpot 425 ms"),
    ],
)
def test_the_label_gives_way_before_the_result_but_not_the_cell_of_a_sweep(told: dict[str, str], end: str) -> None:
    row = replace(ROW, state=State.FINISHED, model="a/m", **told)  # type: ignore[arg-type]
    assert table([row], 2.0)[1].endswith(end)
    assert all(part in table([row], 2.0, width=200)[1] for part in told.values())
    assert len(table([row], 2.0)[1]) <= 80


def test_every_row_fits_eighty_columns() -> None:
    lines = table([ROW], 10_000_000.0)
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in lines[1]
    assert lines[1].startswith("0123ab  cancelling  a_very.long...")


def test_a_job_that_a_newer_hfbench_wrote_is_told_as_such(hfbench: Hfbench, finished: JobDirectory) -> None:
    assert "a newer hfbench" not in hfbench("jobs", "show", "last").stdout
    finished.write("request.json", {**finished.request, "v": 2, "hfbench": "9.9"})
    for words in (("jobs", "show", "last"), ("report", "last"), ("compare", "last", "last")):
        done = hfbench(*words)
        assert "a newer hfbench (9.9) wrote this job" in " ".join((done.stdout + done.stderr).split()), words


def test_show_tells_all_about_one_job(hfbench: Hfbench, finished: JobDirectory) -> None:
    told = hfbench("jobs", "show", finished.short_id).stdout
    for part in (finished.id, "finished", str(finished.path), "to", "doubled"):
        assert part in told
    assert re.search(r"^  label +first try$", told, re.M)
    assert re.search(r"^  status +finished  \d s  number 3.00 s$", told, re.M), "no time left, no samples"
    data = json.loads(hfbench("jobs", "show", "last", "--json").stdout)
    assert (data["state"], data["label"], data["result"]["count"]) == ("finished", "first try", 3)
    assert (data["params"]["to"], data["metrics"]["number"]["count"]) == (3, 3)
    assert data["environment"]["host"]
    assert data["directory"] == str(finished.path)


def test_show_tells_why_a_job_failed(hfbench: Hfbench) -> None:
    hfbench("toy", "fail", "--how", "segv")
    told = hfbench("jobs", "show", "last").stdout
    assert "died: killed by SIGSEGV: native code crashed" in told
    assert "| about to fail by segv" in told
    hfbench("toy", "fail")
    told = hfbench("jobs", "show", "last").stdout
    assert "failed: toy: the toy is broken. Buy another" in told, "the whole sentence"


def test_logs_are_what_the_worker_printed(hfbench: Hfbench, finished: JobDirectory) -> None:
    assert hfbench("jobs", "logs", "last").stdout == "counted 1\ncounted 2\ncounted 3\n"
    assert hfbench("jobs", "logs", "last", "-f").stdout == "counted 1\ncounted 2\ncounted 3\n"
    assert json.loads(hfbench("jobs", "logs", "last", "--json").stdout)["lines"][-1] == "counted 3"
    finished.log.write_bytes(b"\x1b[2J evil \xff\n")
    assert hfbench("jobs", "logs", "last").stdout == "\\x1b[2J evil \\xff\n"
    finished.log.unlink()
    for more in ([], ["-f"]):
        done = hfbench("jobs", "logs", "last", *more)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_following_logs_prints_lines_as_they_come_until_the_end(hfbench: Hfbench, running: JobDirectory) -> None:
    command = [sys.executable, "-m", "hfbench", "jobs", "logs", "-f", running.short_id]
    following = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert following.stdout is not None
    assert [following.stdout.readline() for _ in range(3)] == ["counted 1\n", "counted 2\n", "counted 3\n"]
    hfbench("jobs", "cancel", running.id)
    rest = following.stdout.read()
    assert following.wait(60) == 0
    assert rest.splitlines()[-1] == running.log.read_text().splitlines()[-1]


def test_cancel_stops_several_and_says_how_they_ended(hfbench: Hfbench, running: JobDirectory) -> None:
    queued = hfbench("toy", "count", "--detach").stdout.strip()
    done = hfbench("jobs", "cancel", running.id, queued, "--json")
    assert done.returncode == 0
    assert [each["state"] for each in json.loads(done.stdout)] == ["cancelled", "cancelled"]
    again = hfbench("jobs", "cancel", running.id)
    assert again.stdout == f"{running.id} cancelled: stopped on request\n"


def test_wait_ends_with_the_job_and_tells_how(hfbench: Hfbench, finished: JobDirectory) -> None:
    done = hfbench("jobs", "wait", "last")
    assert (done.returncode, done.stdout) == (0, f"{finished.id} finished\n")
    hfbench("toy", "fail")
    bad = hfbench("jobs", "wait", "last", "--json")
    assert (bad.returncode, json.loads(bad.stdout)["state"]) == (1, "failed")


def test_ctrl_c_while_waiting_leaves_somebody_elses_job_alone(running: JobDirectory) -> None:
    leader, terminal = pty.openpty()
    command = [sys.executable, "-m", "hfbench", "jobs", "wait", running.id]
    env = {**os.environ, "TERM": "xterm"}
    waiting = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=terminal, text=True, env=env)
    os.close(terminal)
    assert b"r" in os.read(leader, 4096)  # its first line is drawn: it watches
    waiting.send_signal(signal.SIGINT)
    assert waiting.wait(60) == 130
    os.close(leader)
    assert read_job(running).state is State.RUNNING


def test_rm_deletes_what_is_over_and_only_that(hfbench: Hfbench, finished: JobDirectory, running: JobDirectory) -> None:
    refused = hfbench("jobs", "rm", running.id)
    assert (refused.returncode, "the job is not over" in refused.stderr) == (2, True)
    assert running.path.exists()
    done = hfbench("jobs", "rm", finished.short_id, "--json")
    assert json.loads(done.stdout) == {"removed": [finished.id]}
    assert job_ids(jobs_root()) == [running.id]
    gone = hfbench("jobs", "show", finished.id)
    assert (gone.returncode, "no job matches" in gone.stderr) == (2, True)


def test_the_first_characters_of_a_short_id_name_the_job(hfbench: Hfbench, finished: JobDirectory) -> None:
    assert finished.id in hfbench("jobs", "show", finished.short_id[:3]).stdout
    done = hfbench("jobs", "rm", finished.short_id[:4], finished.short_id)
    assert (done.returncode, done.stdout) == (0, "removed 1\n")


def test_one_running_job_among_several_spares_them_all(
    hfbench: Hfbench, finished: JobDirectory, running: JobDirectory
) -> None:
    assert hfbench("jobs", "rm", finished.id, running.id).returncode == 2
    assert finished.path.exists()


def test_reindex_counts_the_folders(hfbench: Hfbench, finished: JobDirectory) -> None:
    (jobs_root() / ".index.sqlite").write_bytes(b"rubbish")
    assert hfbench("jobs", "reindex").stdout == "1 job\n"
    assert json.loads(hfbench("jobs", "reindex", "--json").stdout) == {"jobs": 1}


def test_reindex_without_a_folder_says_so(hfbench: Hfbench) -> None:
    done = hfbench("jobs", "reindex")
    assert (done.returncode, "there is no jobs folder yet" in done.stderr) == (2, True)


def test_a_job_of_an_action_that_is_gone_is_still_shown(hfbench: Hfbench, finished: JobDirectory) -> None:
    done = hfbench("jobs", "show", "last", env={"HFBENCH_ACTIONS": ""})
    assert (done.returncode, "doubled" in done.stdout) == (0, True)
