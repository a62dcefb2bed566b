"""`hfbench gpus` looked at again and again: a page on a terminal, JSON lines and CSV everywhere else."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

Hfbench = Callable[..., "subprocess.CompletedProcess[str]"]
QUICK = ("--interval", "0.25")
COMMAND = [sys.executable, "-m", "hfbench", "gpus", "--demo"]


class Page:
    """`hfbench gpus --demo` in a terminal of its own."""

    def __init__(self, *words: str, **environment: str) -> None:
        self.fd, terminal = pty.openpty()
        told = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24", **environment}
        self.process = subprocess.Popen([*COMMAND, *words], stdout=terminal, stderr=terminal, env=told)
        os.close(terminal)
        self.seen = ""

    def until(self, found: Callable[[str], bool], seconds: float = 60) -> str:
        """Read until the condition holds, or the program ends."""
        end = time.monotonic() + seconds
        while not found(self.seen):
            assert time.monotonic() < end, self.seen[-500:]
            try:
                self.seen += os.read(self.fd, 65536).decode("utf-8", "replace")
            except OSError:
                break
        return self.seen

    def end(self, sent: signal.Signals | None = None) -> int:
        if sent is not None:
            self.process.send_signal(sent)
        self.until(lambda seen: False)
        os.close(self.fd)
        return self.process.wait(60)


def test_json_lines_are_whole_snapshots_that_say_demo(hfbench: Hfbench) -> None:
    done = hfbench("gpus", "--demo", "--watch", "--json", "--count", "3", *QUICK)
    assert (done.returncode, done.stderr) == (0, "")
    snapshots = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(snapshots) == 3
    assert all(each["demo"] and each["driver"] == "demo" for each in snapshots)
    assert {card["name"] for each in snapshots for card in each["devices"]} == {"demo card 80GB"}
    assert sorted({each["at"] for each in snapshots}) == [each["at"] for each in snapshots]


def test_csv_has_one_header_and_a_row_for_each_card_and_sample(hfbench: Hfbench) -> None:
    done = hfbench("gpus", "--demo", "--csv", "--count", "2", *QUICK)
    assert (done.returncode, done.stderr) == (0, "")
    rows = list(csv.DictReader(done.stdout.splitlines()))
    assert len(rows) == 2 * 4
    assert {row["index"] for row in rows} == {"0", "1", "2", "3"}
    assert {row["demo"] for row in rows} == {"true"}
    for row in rows:
        assert float(row["memory_used_bytes"]) + float(row["memory_free_bytes"]) < float(row["memory_total_bytes"])
    assert done.stdout.count("memory_used_bytes") == 1


def test_csv_without_a_card_says_why_beside_the_table(hfbench: Hfbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", os.devnull)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    done = hfbench("gpus", "--csv", "--count", "2", *QUICK)
    if len(done.stdout.splitlines()) > 1:
        pytest.skip("this machine has a GPU")
    assert (done.returncode, done.stdout.count("\n")) == (0, 1)
    assert done.stderr.startswith("hfbench: no GPU: ")
    assert done.stderr.count("\n") == 1, "once, not for each sample"


def test_json_and_csv_exclude_each_other(hfbench: Hfbench) -> None:
    done = hfbench("gpus", "--demo", "--csv", "--json")
    assert done.returncode == 2
    assert "exclude each other" in done.stderr


@pytest.mark.parametrize("words", [["--interval", "0.1"], ["--interval", "nan"], ["--count", "-1"], ["--csv", "3"]])
def test_what_makes_no_sense_is_a_usage_error(hfbench: Hfbench, words: list[str]) -> None:
    done = hfbench("gpus", "--demo", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("hfbench: gpus: ")


def test_the_environment_makes_demo_cards_for_every_command(hfbench: Hfbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFBENCH_DEMO_GPUS", "8")
    done = hfbench("gpus")
    assert len([line for line in done.stdout.splitlines() if "demo card" in line]) == 8
    assert "demo: made-up cards" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_page_repaints_in_place_and_ctrl_c_gives_the_cursor_back() -> None:
    page = Page("--watch", *QUICK)
    seen = page.until(lambda seen: seen.count("\x1b[H") >= 3)
    assert seen.startswith("\x1b[?25l\x1b[2J\x1b[H")
    assert seen.count("\x1b[2J") == 1
    frame = seen.split("\x1b[H")[1]
    assert "demo: made-up cards" in frame
    assert frame.count("\n") <= 24
    assert page.end(signal.SIGINT) == 130
    assert "\x1b[?25h" in page.seen
    assert "Traceback" not in page.seen


def test_a_small_terminal_gets_what_fits() -> None:
    page = Page("--watch", "--count", "1", COLUMNS="40", LINES="8")
    assert page.end() == 0
    lines = re.sub(r"\x1b\[[?0-9;]*[A-Za-z]", "", page.seen).splitlines()
    assert max(map(len, lines)) <= 40
    assert len(lines) <= 8


def test_colours_are_left_out_where_they_are_not_wanted() -> None:
    coloured, plain = Page("--watch", "--count", "1"), Page("--watch", "--count", "1", NO_COLOR="1")
    assert (coloured.end(), plain.end()) == (0, 0)
    assert re.search(r"\x1b\[[0-9;]+m", coloured.seen)
    assert not re.search(r"\x1b\[[0-9;]+m", plain.seen)


def test_a_terminal_without_utf8_gets_ascii() -> None:
    page = Page("--watch", "--count", "1", PYTHONIOENCODING="ascii")
    assert page.end() == 0
    assert page.seen.isascii()
    assert re.search(r"#+-*", page.seen)
    assert "\\u" not in page.seen


def test_a_dumb_terminal_and_a_pipe_get_lines_without_escapes(hfbench: Hfbench) -> None:
    page = Page("--watch", "--count", "2", *QUICK, TERM="dumb")
    assert page.end() == 0
    assert "\x1b" not in page.seen
    done = hfbench("gpus", "--demo", "--watch", "--count", "2", *QUICK)
    assert "\x1b" not in done.stdout
    assert done.stdout.count("made-up cards") == page.seen.count("made-up cards") == 2


def test_a_reader_that_leaves_ends_it_quietly() -> None:
    words = [*COMMAND, "--watch", "--json", *QUICK]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stderr
        json.loads(process.stdout.readline())
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == ""


def test_watching_without_an_end_is_refused_as_a_job(hfbench: Hfbench) -> None:
    done = hfbench("gpus", "--demo", "--watch", "--detach", "--json")
    job = json.loads(done.stdout)["job"] if done.stdout.startswith("{") else done.stdout.strip()
    waited = hfbench("jobs", "wait", str(job["id"] if isinstance(job, dict) else job))
    assert waited.returncode == 1
