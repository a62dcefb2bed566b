"""The workbench beside a driver that hangs, and with made-up cards."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyte
import pytest


def played(press: Callable[[str], bytes], **environment: str) -> tuple[int, str]:
    """Exit code and output of a workbench; `press` gives the keys for what was painted so far."""
    ours, terminal = pty.openpty()
    told = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40", **environment}
    words = [sys.executable, "-m", "hfbench"]
    with subprocess.Popen(words, stdin=terminal, stdout=terminal, stderr=terminal, env=told) as process:
        os.close(terminal)
        seen, end = "", time.monotonic() + 120
        try:
            while time.monotonic() < end:
                seen += os.read(ours, 65536).decode("utf-8", "replace")
                os.write(ours, press(seen))
        except OSError:  # it has let go of the terminal
            pass
        finally:
            process.kill() if time.monotonic() >= end else None
            os.close(ours)
        return process.wait(60), seen


@pytest.mark.parametrize("rules", ["nvmlInitWithFlags - 0 -1", "* 0 0 -1", "nvmlDeviceGetCount_v2 - 0 -1"])
def test_q_leaves_while_a_call_of_the_driver_hangs(fake_nvml_folder: Path, tmp_path: Path, rules: str) -> None:
    script = tmp_path / "rules"
    script.write_text(rules + "\n")
    environment = {"LD_LIBRARY_PATH": str(fake_nvml_folder), "FAKE_NVML_SCRIPT": str(script)}
    code, seen = played(lambda seen: b"q" if "Sources" in seen else b"", **environment)
    assert code == 0
    assert "Traceback" not in seen


def test_made_up_cards_are_called_so_and_more_than_fit_leave_nothing_of_other_rows_behind() -> None:
    screen = pyte.Screen(80, 24)
    stream, fed, last = pyte.Stream(screen), 0, "arrows reach them"
    line, since = "", 0.0

    def press(seen: str) -> bytes:
        nonlocal fed, line, since
        stream.feed(seen[fed:])
        fed = len(seen)
        if last not in seen:
            return b"3" if "16x demo" in screen.display[0] else b""
        since = since or time.monotonic()
        whole = line.endswith(last) and "and 6" in line  # once it leaves, the terminal echoes keys
        line = line if whole else next((line.strip() for line in screen.display if last in line), line)
        return b"q" if (line.endswith(last) and "and 6" in line) or time.monotonic() - since > 20 else b""

    code, _ = played(press, HFBENCH_DEMO_GPUS="16", COLUMNS="80", LINES="24")
    assert code == 0
    assert line == "and 6 more GPUs: arrows reach them"
