"""A script on a terminal is shown for people; its results go to a file, or to a reader that is none."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

TEXT = """hfbench: 1
steps:
  - sample.measure: {model: m, batch: 2}
  - toy.count: {to: 4, pause: 0.1, save_as: counted}
    expect:
      - counted.count == 5
  - sample.measure: {model: m, does: missing}
"""


@pytest.fixture
def script(samples: object, tmp_path: Path) -> Path:
    """Three steps, of which one is a job that takes a moment and is not as expected."""
    path = tmp_path / "s.hfb.yaml"
    path.write_text(TEXT.replace("== 5", "== 5\n    on_fail: continue"))
    return path


def on_a_terminal(*words: str | Path) -> tuple[int, str]:
    """Exit code of a command whose stdout and stderr are one terminal, and everything that was drawn there."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "hfbench", *map(str, words)],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color"},
    )
    os.close(theirs)
    drawn = bytearray()
    try:
        while chunk := os.read(ours, 65536):
            drawn += chunk
    except OSError:  # how Linux tells that the other end was closed
        pass
    os.close(ours)
    return process.wait(60), drawn.decode()


def test_steps_are_told_as_they_begin_and_end_with_their_results_and_one_line_moves(
    script: Path, tmp_path: Path
) -> None:
    results = tmp_path / "r.jsonl"
    code, drawn = on_a_terminal("--script", script, "--results", results)
    assert code == 4, "the last step lacks something of this machine"
    assert '"event"' not in drawn
    lines = [line.rpartition("\x1b[K")[2].rstrip("\r") for line in drawn.split("\n")]
    begun, result, ended = (
        next(place for place, line in enumerate(lines) if re.match(pattern, line))
        for pattern in (r"\[2/3\] toy\.count$", r"count +4$", r"\[2/3\] toy\.count ok, ")
    )
    assert begun < result < ended
    assert re.search(r"\x1b\[Krunning  0 s  count +\d+%", drawn), "how far the job is stands on a line that moves"
    assert any(line.endswith("not as expected: counted.count == 5; it is 4") for line in lines)
    assert [line for line in lines if line.startswith("[3/3] sample.measure failed, ")]
    events = [json.loads(line)["event"] for line in results.read_text().splitlines()]
    assert (events[0], events[-1], events.count("step_finished")) == ("run_started", "run_finished", 3)


def test_lines_of_json_are_there_for_the_asking(script: Path) -> None:
    _, drawn = on_a_terminal("--script", script, "--json")
    assert drawn.count('{"event":"step_finished"') == 3
    assert "[2/3] toy.count\r\n" not in drawn


def test_a_dry_run_shows_the_arguments_that_are_not_the_usual_ones(script: Path) -> None:
    code, drawn = on_a_terminal("--script", script, "--dry-run")
    assert (code, drawn.split("\r\n")[:2]) == (
        0,
        ["[1/3] sample.measure model=m batch=2", "[2/3] toy.count to=4 pause=0.1"],
    )
