"""Running: real jobs, real signals, and results that stay valid whatever happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hfbench.jobs.directory import JobDirectory, job_ids
from hfbench.jobs.snapshot import State, read_job
from hfbench.paths import jobs_root

Run = Callable[..., Any]
HEAD = "hfbench: 1\nsteps:\n"
SLOW = HEAD + "  - toy.count: {to: 100000, pause: 0.05}\n  - gpus: {}\n"


def test_a_run_tells_its_story_in_order_with_the_figures_of_each_step(run: Run) -> None:
    done = run(
        HEAD + "  - toy.count: {to: 3, save_as: count}\n    expect: [count == 3, count.doubled == 6]\n"
        "  - sample.measure: {model: m, save_as: gen}\n"
        "    expect:\n      - count.count == 3\n      - gen.tpot.p99 < 62 ms\n"
    )
    assert done.code == 0, done.stderr
    assert [event["event"] for event in done.events] == [
        *("run_started", "step_started", "step_finished", "assert", "assert"),
        *("step_started", "step_finished", "assert", "assert", "run_finished"),
    ]
    started, counted, measured = done.events[0], *done.of("step_finished")
    assert (started["v"], started["cells"], started["steps"], len(started["sha256"])) == (1, 1, 2, 64)
    assert started["environment"]["python"]
    assert (counted["status"], counted["line"], counted["result"]) == ("ok", 3, {"count": 3, "doubled": 6.0})
    assert counted["metrics"]["number"] == {"last": 3, "unit": "s"}
    assert counted["job"] == done.of("step_started")[0]["job"]
    assert measured["metrics"]["tpot"] == {"p50": 0.05, "p99": 0.061, "n": 20, "unit": "s"}
    assert measured["job"] is None
    last = done.of("assert")[-1]
    assert (last["expr"], last["actual"], last["unit"], last["ok"], last["line"]) == (
        "gen.tpot.p99 < 62 ms",
        61,
        "ms",
        True,
        8,
    )
    assert done.events[-1]["counts"]["steps"] == {
        "ok": 2,
        **dict.fromkeys(("failed", "timeout", "skipped", "refused", "not_run"), 0),
    }
    assert done.events[-1]["exit"] == 0


def test_an_expectation_that_fails_ends_the_run_with_1_and_says_where(run: Run, tmp_path: Path) -> None:
    done = run(HEAD + "  - sample.measure: {model: m}\n    expect:\n      - tpot.p99 < 50 ms\n  - gpus: {}\n")
    assert done.code == done.events[-1]["exit"] == 1
    assert done.statuses == ["ok"]
    assert done.events[-1]["counts"]["steps"]["not_run"] == 1
    assert f"{tmp_path}/s.hfb.yaml:5: not as expected: tpot.p99 < 50 ms; it is 61 ms" in done.stderr


def test_on_fail_continue_goes_on_after_steps_and_expectations(run: Run) -> None:
    fails = "  - toy.fail: {}\n    on_fail: continue\n"
    expects = "  - gpus: {}\n    expect: devices.count == -1\n    on_fail: continue\n"
    done = run(HEAD + fails + expects + "  - gpus: {}\n")
    assert (done.code, done.statuses) == (3, ["failed", "ok", "ok"])


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("error", "the toy is broken"),
        ("bug", "ZeroDivisionError: a bug"),
        ("segv", "SIGSEGV"),
        ("kill", "SIGKILL"),
        ("exit", "status 7"),
        ("result", "the result says that it failed"),
    ],
)
def test_a_step_that_ends_badly_ends_the_run_with_3_and_its_reason(how: str, told: str, run: Run) -> None:
    done = run(HEAD + f"  - toy.fail: {{how: {how}}}\n  - gpus: {{}}\n")
    assert (done.code, done.statuses) == (3, ["failed"])
    assert told in json.dumps(done.of("step_finished")[0]["error"])
    assert told in done.stderr


def test_a_job_that_died_shows_the_last_lines_it_printed(run: Run) -> None:
    done = run(HEAD + "  - toy.fail: {how: segv}\n")
    assert "| about to fail by segv" in done.stderr
    assert done.of("step_finished")[0]["error"]["log"] == ["about to fail by segv"]


def test_an_error_inside_an_inline_action_is_a_failed_step_without_a_traceback(run: Run) -> None:
    done = run(HEAD + "  - sample.measure: {model: m, does: bug}\n")
    assert (done.code, done.statuses) == (3, ["failed"])
    error = done.of("step_finished")[0]["error"]
    assert error["found"] == "ZeroDivisionError: a bug"
    assert error["remedy"].startswith("hfbench sample measure --detach")
    assert "Traceback" not in done.stderr


def test_what_an_inline_action_prints_or_warns_about_stays_out_of_the_results(run: Run) -> None:
    done = run(HEAD + "  - sample.measure: {model: m, does: print}\n  - sample.measure: {model: m, does: warn}\n")
    assert (done.code, done.statuses) == (0, ["ok", "ok"])
    assert "this must not reach the results" in done.stderr
    assert "the fan is loud" in done.stderr


@pytest.mark.parametrize(
    "step", ["toy.count: {to: 100000, timeout: 0.3}", "sample.measure: {model: m, does: sleep, timeout: 300ms}"]
)
def test_a_step_that_takes_too_long_is_stopped(step: str, run: Run) -> None:
    done = run(HEAD + f"  - {step}\n")
    assert (done.code, done.statuses) == (3, ["timeout"])
    assert done.of("step_finished")[0]["duration_s"] < 25


@pytest.mark.parametrize(
    ("step", "expect"),
    [("toy.fail: {how: missing}", "failed == false"), ("sample.measure: {model: m, does: missing}", "batch == 1")],
)
def test_what_the_machine_lacks_ends_with_4_or_is_skipped(step: str, expect: str, run: Run) -> None:
    text = HEAD + f"  - {step[:-1]}, save_as: it}}\n    expect: it.{expect}\n"
    text += "  - gpus: {}\n    expect: devices.count >= 0\n"
    done = run(text)
    assert (done.code, done.statuses) == (4, ["failed"])
    done = run(text, "--skip-missing")
    assert (done.code, done.statuses) == (0, ["skipped", "ok"])
    assert [event["ok"] for event in done.of("assert")] == [None, True]
    assert done.events[-1]["counts"]["expectations"] == {"passed": 1, "failed": 0, "skipped": 1}


def test_a_result_that_lacks_a_gpu_is_what_the_machine_lacks(run: Run, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    step = HEAD + f"  - fit: {{model: {tmp_path}}}\n"
    done = run(step)
    if done.code == 0:
        pytest.skip("this machine has a GPU")
    assert (done.code, done.statuses) == (4, ["failed"])
    assert "name one with --gpu" in done.of("step_finished")[0]["error"]["found"]
    assert (run(step, "--skip-missing").code, run(step, "--skip-missing").statuses) == (0, ["skipped"])


def test_the_environment_counts_before_steps_and_steps_before_expectations(run: Run) -> None:
    expects = "  - gpus: {}\n    expect: devices.count == -1\n    on_fail: continue\n"
    fails = "  - toy.fail: {}\n    on_fail: continue\n"
    lacks = "  - toy.fail: {how: missing}\n    on_fail: continue\n"
    assert [run(HEAD + text).code for text in (expects, expects + fails, fails + lacks + expects)] == [1, 3, 4]


def test_an_expectation_on_a_step_that_failed_is_not_met(run: Run) -> None:
    fails = "  - toy.fail: {save_as: it}\n    on_fail: continue\n"
    done = run(HEAD + fails + "  - gpus: {}\n    expect: it.failed == true\n    on_fail: continue\n")
    assert done.of("assert")[0]["reason"] == "it has no result: it failed"
    assert done.code == 3


def test_results_saved_in_one_cell_are_not_seen_in_the_next(run: Run) -> None:
    done = run(
        "hfbench: 1\nmatrix: {batch: [2, 3]}\nsteps:\n"
        '  - sample.measure: {model: m, batch: "{{ batch }}", save_as: gen}\n    expect: "gen.batch == {{ batch }}"\n'
    )
    assert [(event["cell"], event["actual"]) for event in done.of("assert")] == [({"batch": 2}, 2), ({"batch": 3}, 3)]


def test_long_lists_are_left_out_by_length_and_hash_so_that_runs_compare(run: Run) -> None:
    text = HEAD + "  - sample.measure: {model: m, batch: 3}\n  - sample.measure: {model: m, batch: 2}\n"
    first, second = run(text), run(text)
    left_out = first.of("step_finished")[0]["result"]["output_ids"]
    assert left_out["left_out"] == 300
    assert left_out == second.of("step_finished")[0]["result"]["output_ids"]
    assert first.of("step_finished")[1]["result"]["output_ids"] == list(range(200))


def test_a_run_loads_neither_textual_nor_torch(samples: object, tmp_path: Path) -> None:
    script = tmp_path / "s.hfb.yaml"
    script.write_text(HEAD + "  - gpus: {}\n  - toy.count: {to: 1}\n")
    code = (
        "import sys; from pathlib import Path; from hfbench.scripts.command import run_script;"
        f"code = run_script(Path({str(script)!r}), check=False, dry_run=False, results=None, skip_missing=False);"
        "heavy = {'textual', 'torch', 'transformers', 'numpy', 'rich'} & set(sys.modules);"
        "sys.exit(code or str(heavy or '') or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.count("\n")) == (0, 6), done.stderr


@pytest.fixture
def start(samples: object, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a script in a process that the test watches; it is killed when the test is over."""
    running: list[subprocess.Popen[str]] = []

    def begin(text: str, *options: str, **more: Any) -> subprocess.Popen[str]:
        script = tmp_path / "s.hfb.yaml"
        script.write_text(text)
        command = [sys.executable, "-m", "hfbench", "--script", str(script), *options]
        told: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more}
        running.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, **told))
        return running[-1]

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def started_job(process: subprocess.Popen[str]) -> JobDirectory:
    """The job of the step that the process tells to have started, once it counts."""
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "step_started" and event["job"]:
            job = JobDirectory(jobs_root() / event["job"])
            until(partial(_counts, job))
            return job
    raise AssertionError(f"no job was started: {process.communicate()[1]}")


def _counts(job: JobDirectory) -> bool:
    return bool(read_job(job).series)


def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, a minute at most."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not come to be"
        time.sleep(0.02)


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143)])
def test_a_signal_stops_the_job_and_leaves_whole_results(
    signum: signal.Signals, code: int, start: Callable[..., subprocess.Popen[str]]
) -> None:
    process = start(SLOW)
    job = started_job(process)
    process.send_signal(signum)
    rest, stderr = process.communicate(timeout=60)
    events = [json.loads(line) for line in rest.splitlines()]
    assert process.returncode == events[-1]["exit"] == code
    assert [event["event"] for event in events] == ["step_finished", "run_finished"]
    assert events[-1]["counts"]["steps"]["not_run"] == 1
    assert read_job(job).state is State.CANCELLED
    assert "Traceback" not in stderr


def test_a_signal_right_at_the_start_of_a_job_stops_it_too(start: Callable[..., subprocess.Popen[str]]) -> None:
    process = start(SLOW)
    assert process.stdout is not None
    while json.loads(process.stdout.readline())["event"] != "step_started":
        pass
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 143
    [job] = job_ids(jobs_root())
    assert read_job(JobDirectory(jobs_root() / job)).state.over


def test_a_signal_during_an_inline_action_ends_it_at_once(start: Callable[..., subprocess.Popen[str]]) -> None:
    process = start(HEAD + "  - sample.measure: {model: m, does: sleep}\n  - gpus: {}\n")
    assert process.stdout is not None
    while json.loads(process.stdout.readline())["event"] != "step_started":
        pass
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=20)
    assert process.returncode == json.loads(rest.splitlines()[-1])["exit"] == 130


def test_a_reader_that_goes_away_stops_the_job_without_a_word(start: Callable[..., subprocess.Popen[str]]) -> None:
    process = start(SLOW)
    job = started_job(process)
    assert process.stdout is not None
    process.stdout.close()
    until(lambda: process.poll() is not None)
    assert process.returncode == 130
    assert read_job(job).state is State.CANCELLED
    assert process.stderr is not None
    stderr = process.stderr.read()
    assert "Traceback" not in stderr
    assert "Broken" not in stderr


def test_a_script_whose_job_somebody_else_cancels_has_a_failed_step(
    start: Callable[..., subprocess.Popen[str]],
) -> None:
    from hfbench.jobs.cancel import cancel

    process = start(SLOW)
    cancel(started_job(process))
    rest, _ = process.communicate(timeout=30)
    event = json.loads(rest.splitlines()[0])
    assert (process.returncode, event["status"]) == (3, "failed")
    assert "was cancelled" in event["error"]["found"]


def test_full_results_end_the_run_with_a_sentence(start: Callable[..., subprocess.Popen[str]]) -> None:
    with open("/dev/full", "wb") as full:
        process = start(SLOW, stdout=full)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 1
    assert stderr.splitlines()[-1] == "hfbench: standard output: the results cannot be written: No space left on device"
    assert all(read_job(JobDirectory(jobs_root() / job)).state.over for job in job_ids(jobs_root()))


def test_a_script_without_stderr_runs_all_the_same(start: Callable[..., subprocess.Popen[str]]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = start(HEAD + "  - gpus: {}\n", stderr=writer)
    os.close(writer)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, json.loads(out.splitlines()[-1])["event"]) == (0, "run_finished")
