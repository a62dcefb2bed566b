"""An action from the command line: waited for, detached, interrupted."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hfbench.jobs.cancel import cancel
from hfbench.jobs.directory import JobDirectory, job_ids
from hfbench.jobs.follow import wait_until
from hfbench.jobs.snapshot import State, read_job
from hfbench.paths import jobs_root

pytestmark = pytest.mark.usefixtures("toy_actions")

Hfbench = Callable[..., "subprocess.CompletedProcess[str]"]
LONG = ["toy", "count", "--to", "100000"]


@pytest.fixture
def only_job(home: Path) -> Iterator[Callable[[], JobDirectory]]:
    """The one job of the test, as soon as it counts; stopped after the test."""

    def find() -> JobDirectory:
        end = time.monotonic() + 60
        while not job_ids(jobs_root()):
            assert time.monotonic() < end, "no job appeared"
            time.sleep(0.02)
        job = JobDirectory(jobs_root() / job_ids(jobs_root())[0])
        wait_until(job, lambda s: s.progress is not None, timeout=60)
        return job

    yield find
    for each in job_ids(jobs_root()):
        cancel(JobDirectory(jobs_root() / each))


def start(*words: str, **more: object) -> subprocess.Popen[str]:
    told = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "stdin": subprocess.DEVNULL, **more}
    return subprocess.Popen([sys.executable, "-m", "hfbench", *words], **told)  # type: ignore[call-overload, no-any-return]


def test_it_waits_and_prints_the_result(hfbench: Hfbench) -> None:
    done = hfbench("toy", "count", "--to", "3")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^count +3$", done.stdout, re.M)


def test_json_is_the_result_and_the_job(hfbench: Hfbench) -> None:
    told = json.loads(hfbench("toy", "count", "--to", "3", "--json").stdout)
    assert (told["count"], told["doubled"]) == (3, 6.0)
    assert told["job"] in job_ids(jobs_root())


@pytest.mark.parametrize(
    ("how", "code", "told"),
    [
        ("error", 1, "toy: the toy is broken. Buy another"),
        ("missing", 4, "there is no toy here"),
        ("segv", 1, "the job died: killed by SIGSEGV"),
        ("bug", 1, "ZeroDivisionError: a bug"),
        ("result", 1, ""),
    ],
)
def test_a_bad_end_is_said_with_its_exit_code(hfbench: Hfbench, how: str, code: int, told: str) -> None:
    done = hfbench("toy", "fail", "--how", how)
    assert done.returncode == code
    assert told in done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    in_json = hfbench("toy", "fail", "--how", how, "--json")
    assert in_json.returncode == code
    answer = json.loads(in_json.stdout)
    assert (
        answer["failed"]
        if how == "result"
        else told
        in f"{answer['error']['where']}: {answer['error']['found']}. {answer['error']['remedy']}".replace("buy", "Buy")
    )


def test_what_a_dead_worker_printed_cannot_harm_the_terminal(hfbench: Hfbench) -> None:
    done = hfbench("toy", "fail", "--how", "segv", "--say", "\x1b[2J\u202e")
    assert r"hfbench: | \x1b[2J\u202e" in done.stderr
    assert "\x1b" not in done.stderr


def test_detached_it_prints_the_id_and_leaves(hfbench: Hfbench, only_job: Callable[[], JobDirectory]) -> None:
    done = hfbench(*LONG, "--detach")
    job = only_job()
    assert (done.returncode, done.stdout) == (0, f"{job.id}\n")
    assert read_job(job).state is State.RUNNING
    told = json.loads(hfbench("toy", "count", "--detach", "--json").stdout)
    assert Path(told["directory"]).name == told["job"]


def test_no_output_holds_an_escape_byte_in_a_pipe(hfbench: Hfbench) -> None:
    for words in (["toy", "count"], ["jobs", "list"], ["jobs", "show", "last"], ["jobs", "logs", "last"], ["--help"]):
        done = hfbench(*words, env={"FORCE_COLOR": "1", "TERM": "xterm-256color"})
        assert "\x1b" not in done.stdout + done.stderr, words


def test_ctrl_c_cancels_the_job_and_says_130(only_job: Callable[[], JobDirectory]) -> None:
    waiting = start(*LONG, "--json")
    job = only_job()
    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=60)
    assert waiting.returncode == 130
    assert read_job(job).state is State.CANCELLED
    assert json.loads(out)["state"] == "cancelled"
    assert "was cancelled: stopped on request" in err


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_any_other_end_of_the_one_who_waits_leaves_the_job_alone(
    only_job: Callable[[], JobDirectory], signum: signal.Signals
) -> None:
    waiting = start(*LONG)
    job = only_job()
    waiting.send_signal(signum)
    out, err = waiting.communicate(timeout=60)
    assert (waiting.returncode, out, err) == (-signum, "", "")
    assert read_job(job).state is State.RUNNING


def test_the_shell_sees_143_after_a_request_to_end(only_job: Callable[[], JobDirectory]) -> None:
    line = f"{sys.executable} -m hfbench {' '.join(LONG)} & read; kill $!; wait $!; echo $?"
    shell = subprocess.Popen(["bash", "-c", line], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    only_job()
    out, _ = shell.communicate("\n", timeout=60)
    assert out == "143\n"


def test_on_a_terminal_one_line_tells_how_far_it_is(hfbench: Hfbench) -> None:
    leader, terminal = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    waiting = start("toy", "count", "--to", "40", stderr=terminal, env=env)
    os.close(terminal)
    seen = b""
    try:
        while chunk := os.read(leader, 4096):
            seen += chunk
    except OSError:
        pass  # a pseudo-terminal ends with EIO
    out, _ = waiting.communicate(timeout=60)
    os.close(leader)
    assert waiting.returncode == 0
    assert b"running" in seen
    assert b"count" in seen
    assert b"\n" not in seen
    assert seen.endswith(b"\r\x1b[K")
    assert "\x1b" not in out


def test_a_second_job_for_the_device_waits_unless_told_otherwise(
    hfbench: Hfbench, only_job: Callable[[], JobDirectory]
) -> None:
    hfbench(*LONG, "--detach")
    first = only_job()
    assert hfbench("toy", "count", "--no-lease").returncode == 0
    second = hfbench("toy", "count", "--detach").stdout.strip()
    snapshot = wait_until(JobDirectory(jobs_root() / second), lambda s: s.state is State.QUEUED, timeout=60)
    assert (snapshot.state, snapshot.waits_for) == (State.QUEUED, first.id)
    assert "queued" in hfbench("jobs", "list").stdout


def test_a_time_limit_ends_the_job(hfbench: Hfbench) -> None:
    done = hfbench(*LONG, "--timeout", "200ms")
    assert (done.returncode, "time limit of 200 ms" in done.stderr) == (1, True)


def test_an_unwritable_jobs_folder_is_one_sentence(hfbench: Hfbench, home: Path) -> None:
    home.mkdir()
    (home / "jobs").write_text("in the way")
    done = hfbench("toy", "count", "--json")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert json.loads(done.stdout)["error"]["where"] == str(home / "jobs")


def test_an_inline_action_that_breaks_is_a_sentence(hfbench: Hfbench, tmp_path: Path) -> None:
    (tmp_path / "inline.py").write_text(INLINE)
    env = {"HFBENCH_ACTIONS": str(tmp_path)}
    done = hfbench("toy", "inline", env=env)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "hfbench: careful\\x1b\nhfbench: ZeroDivisionError: oh. HFBENCH_DEBUG=1 shows the traceback\n"
    assert not (tmp_path / "home").exists(), "it leaves no job"


INLINE = '''
from dataclasses import dataclass
from hfbench.actions.base import action

@action("toy.inline", result=str, inline=True)
@dataclass(frozen=True, kw_only=True)
class Inline:
    """Break at once."""

    def perform(self, run):
        run.log("careful\\x1b", "warning")
        raise ZeroDivisionError("oh")
'''


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_job_started_with_closed_streams_is_alive_and_finishes(home: Path, toy_actions: Path, closed: str) -> None:
    """As cron and daemons start things: no file may take the place of a standard stream."""
    command = f"{sys.executable} -m hfbench toy count --to 3 --detach {closed}"
    subprocess.run(["bash", "-c", command], check=False, timeout=60)
    [job] = [JobDirectory(each) for each in (home / "jobs").iterdir() if each.is_dir()]
    assert wait_until(job, lambda s: s.state.over, timeout=60).state is State.FINISHED


def test_diagnostics_never_go_to_stdout(home: Path) -> None:
    told = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m hfbench inspect nope 2>&-"], capture_output=True, timeout=60, check=False
    )
    assert (told.returncode, told.stdout) == (2, b"")
