"""`hfbench --script`: what is read, where results go, and what `--check` and `--dry-run` leave alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Hfbench = Callable[..., subprocess.CompletedProcess[str]]
TEXT = (
    "hfbench: 1\nmatrix: {batch: [1, 2]}\nsteps:\n  - sample.measure: {model: m, batch: '{{ batch }}', token: hf_x}\n"
)


@pytest.fixture
def script(samples: object, tmp_path: Path) -> Path:
    """A script that is right."""
    path = tmp_path / "s.hfb.yaml"
    path.write_text(TEXT)
    return path


def test_check_says_that_a_script_is_right_and_leaves_stdout_empty(script: Path, hfbench: Hfbench) -> None:
    done = hfbench("--script", script, "--check")
    assert (done.returncode, done.stdout) == (0, "")
    assert re.fullmatch(re.escape(str(script)) + r": \d+ steps?, \d+ cells?: ok\n", done.stderr)


def test_check_tells_errors_on_stderr_only_and_writes_nothing(script: Path, hfbench: Hfbench, home: Path) -> None:
    script.write_text(TEXT.replace("model", "modle"))
    done = hfbench("--script", script, "--check", "--results", script.with_suffix(".jsonl"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].endswith("sample.measure: unknown argument 'modle'; did you mean 'model'?")
    assert not home.exists()
    assert not script.with_suffix(".jsonl").exists()


def test_dry_run_prints_every_step_of_every_cell_and_runs_none(script: Path, hfbench: Hfbench, home: Path) -> None:
    done = hfbench("--script", script, "--dry-run")
    planned = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(each["event"], each["cell"], each["step"], each["line"]) for each in planned] == [
        ("planned", {"batch": 1}, 1, 4),
        ("planned", {"batch": 2}, 1, 4),
    ]
    assert [each["params"]["batch"] for each in planned] == [1, 2]
    assert planned[0]["params"]["token"] == "***"
    assert "hf_x" not in done.stdout
    assert not home.exists()


def test_results_in_a_file_leave_stdout_empty(script: Path, tmp_path: Path, hfbench: Hfbench) -> None:
    results = tmp_path / "results.jsonl"
    results.write_text("older results that are longer than nothing\n" * 1000)
    done = hfbench("--script", script, "--results", results)
    assert (done.returncode, done.stdout) == (0, "")
    events = [json.loads(line)["event"] for line in results.read_text().splitlines()]
    assert (events[0], events[-1], len(events)) == ("run_started", "run_finished", 6)


@pytest.mark.parametrize("where", [".", "missing/results.jsonl", "s.hfb.yaml", "fifo", "x" * 300])
def test_results_that_cannot_be_written_are_found_before_anything_runs(
    where: str, script: Path, tmp_path: Path, hfbench: Hfbench, home: Path
) -> None:
    os.mkfifo(tmp_path / "fifo")
    script.write_text("hfbench: 1\nsteps:\n  - toy.count: {to: 1}\n")
    done = hfbench("--script", script, "--results", tmp_path / where)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("hfbench: ")
    assert not home.exists()
    assert script.read_text().startswith("hfbench: 1\n")


@pytest.mark.parametrize("kind", ["folder", "fifo", "missing", "device", "socket", "name"])
def test_a_script_that_is_not_a_file_is_a_sentence_and_never_a_wait(
    kind: str, tmp_path: Path, hfbench: Hfbench
) -> None:
    path = {"folder": tmp_path, "device": Path("/dev/zero"), "name": tmp_path / ("x" * 300)}.get(kind, tmp_path / kind)
    if kind == "fifo":
        os.mkfifo(path)
    if kind == "socket":
        import socket

        os.chdir(tmp_path)
        socket.socket(socket.AF_UNIX).bind("socket")
    done = hfbench("--script", path, "--check")
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_names_of_files_reach_the_terminal_escaped(samples: object, tmp_path: Path, hfbench: Hfbench) -> None:
    script = tmp_path / "evil\x1b[31m.hfb.yaml"
    script.write_text('hfbench: 2\nname: "\\e]0;x\\a"\nsteps:\n  - "\\e[2J": {}\n')
    done = hfbench("--script", script)
    assert done.returncode == 2
    assert "\x1b" not in done.stderr
    assert "\\x1b[2J" in done.stderr


def test_results_hold_no_escape_byte(samples: object, tmp_path: Path, hfbench: Hfbench) -> None:
    script = tmp_path / "s.hfb.yaml"
    script.write_text('hfbench: 1\nname: "\\e[31m"\nsteps:\n  - sample.measure: {model: "\\e[2J\\u202e"}\n')
    done = hfbench("--script", script)
    assert done.returncode == 0
    assert done.stdout.isascii()
    assert "\x1b" not in done.stdout + done.stderr


def test_closed_stdout_is_a_sentence(script: Path) -> None:
    command = ["sh", "-c", f"exec '{sys.executable}' -m hfbench --script '{script}' >&-"]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr == "hfbench: standard output is closed. Write the results with --results FILE\n"


def test_warnings_do_not_fail_a_check(samples: object, tmp_path: Path, hfbench: Hfbench) -> None:
    script = tmp_path / "s.hfb.yaml"
    script.write_text("hfbench: 1\nvars: {x: 1}\nsteps:\n  - gpus: {}\n")
    done = hfbench("--script", script, "--check")
    told = [f"{script}:2:8: warning: nothing uses the variable 'x'", f"{script}: 1 step, 1 cell: ok"]
    assert (done.returncode, done.stderr.splitlines()) == (0, told)


def test_a_broken_file_of_actions_is_named_beside_the_action_that_is_not_known(
    tmp_path: Path, hfbench: Hfbench
) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "own_action.py").write_text("def broken(:\n")
    script = tmp_path / "s.hfb.yaml"
    script.write_text("hfbench: 1\nsteps:\n  - own.action: {}\n")
    done = hfbench("--script", script, env={"HFBENCH_ACTIONS": str(folder)})
    assert done.returncode == 2
    assert "own_action.py: cannot be loaded: SyntaxError" in done.stderr
    assert f"{script}:3:5: unknown action 'own.action'" in done.stderr
