"""What a terminal is owed: left as it was found, painted again, the size told, the place kept."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from line import Line

HFBENCH = [sys.executable, "-m", "hfbench"]
FAULTY = """
import sys
from hfbench.screens.jobs import JobsScreen
def fail(self): raise RuntimeError("the flux capacitor is empty")
JobsScreen.action_copy_id = fail
from hfbench.__main__ import main
sys.argv = ["hfbench"]
sys.exit(main())
"""
"""A workbench with a fault of its own behind a key."""

Open = Callable[..., Line]


@pytest.fixture
def variables(home: Path, tmp_path: Path) -> dict[str, str]:
    away = {"HFBENCH_HOME": str(home), "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "1", "LC_ALL": "C.UTF-8"}
    return {**{name: value for name, value in os.environ.items() if name not in ("TMUX", "NO_COLOR")}, **away}


@pytest.fixture
def line(variables: dict[str, str]) -> Iterator[Open]:
    opened: list[Line] = []

    def start(command: list[str] = HFBENCH, **more: int) -> Line:
        opened.append(Line(command, variables, **more))
        return opened[-1]

    yield start
    for each in opened:
        each.__exit__(None, None, None)


def assert_clean(one: Line) -> None:
    """No mode is left on, the cursor is seen, lines wrap, and typing is as before."""
    modes = one.modes()
    assert modes.pop("25"), "the cursor"
    assert modes.pop("7"), "wrapping"
    assert {name for name, on in modes.items() if on} == set()
    assert {"1049", "1000", "1003", "1006", "1004", "2004"} <= modes.keys(), "they were on"
    assert one.termios() == one.before


@pytest.mark.parametrize("name", ["q", "SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT"])
def test_whatever_ends_it_leaves_the_terminal_as_it_was(line: Open, name: str) -> None:
    one = line()
    one.wait("no models")
    if name == "q":
        one.press("q")
        assert one.wait_for_end() == 0
    else:
        os.kill(one.pid, getattr(signal, name))
        assert one.wait_for_end() == 128 + getattr(signal, name)
    assert_clean(one)


def test_a_fault_of_ours_is_a_sentence_on_a_clean_terminal_and_its_traceback_a_file(line: Open, home: Path) -> None:
    one = line([sys.executable, "-c", FAULTY])
    one.wait("no models")
    one.press("2")
    one.wait("no jobs yet")
    one.press("y")
    assert one.wait_for_end() == 1
    assert_clean(one)
    told = one.output.decode().rpartition("\x1b[?1006l")[2]
    assert "hfbench: RuntimeError: the flux capacitor is empty" in told
    assert "Traceback" not in told
    assert "hfbench attach" in " ".join(told.split())
    assert "in fail" in (home / "state" / "fault.log").read_text()


def test_ctrl_z_gives_the_terminal_back_and_going_on_paints_all_anew(line: Open) -> None:
    one = line()
    one.wait("no models")
    one.press("\x1a")
    wait_until_stopped(one)
    assert_clean(one)
    one.screen.reset()
    before = len(one.output)
    os.kill(one.pid, signal.SIGCONT)
    one.wait(lambda shown: "no models here" in shown and "q quit" in shown)
    assert b"\x1b[?1049h" in one.output[before:]
    one.press("2")
    one.wait("no jobs yet")
    one.press("q")
    assert one.wait_for_end() == 0
    assert_clean(one)


def test_stopped_by_force_and_gone_on_with_it_still_ends_clean(line: Open) -> None:
    one = line()
    one.wait("no models")
    os.kill(one.pid, signal.SIGSTOP)
    wait_until_stopped(one)
    one.screen.reset()
    os.kill(one.pid, signal.SIGCONT)
    one.wait(lambda shown: "no models here" in shown and "q quit" in shown)
    one.press("2")
    one.wait("no jobs yet")
    one.press("q")
    assert one.wait_for_end() == 0
    assert_clean(one)


def test_let_go_on_at_any_moment_it_never_locks_itself_out(line: Open) -> None:
    """Signals that come while a line is put into the output's queue: a terminal that goes away sends such a one."""
    one = line()
    one.wait("no models")
    for number in range(300):
        os.kill(one.pid, signal.SIGCONT)
        if number % 10 == 0:
            one.press("21"[number // 10 % 2])
        one.read(0.005)
    end = time.monotonic() + 60
    while "no jobs yet" not in one.shown():  # going on drops what was typed before it: so does Textual
        assert time.monotonic() < end, f"it answers no key; the screen shows\n{one.shown()}"
        one.press("2")
        one.read(0.5)
    one.press("q")
    assert one.wait_for_end() == 0
    assert_clean(one)


def wait_until_stopped(one: Line) -> None:
    end = time.monotonic() + 30
    while Path(f"/proc/{one.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < end, "it was never stopped"
        one.read(0.05)
    one.read(0.1)


def test_two_hundred_sizes_in_a_second_end_in_the_right_picture(line: Open) -> None:
    one = line()
    one.wait("no models")
    sizes = random.Random(8)
    for _ in range(200):
        one.resize(sizes.randint(1, 200), sizes.randint(1, 60))
        one.read(0.005)
    one.told_of_size(90, 30)
    one.screen.erase_in_display(2)
    other = line(columns=90, rows=30)
    for each in (one, other):
        each.wait(lambda shown: "no models here" in shown and "no GPU" in shown and "q quit" in shown)
        each.read(0.5)
    assert one.shown() == other.shown()


def test_below_80x24_a_line_says_so_and_the_rest_is_there(line: Open) -> None:
    one = line(columns=60, rows=20)
    shown = one.wait("no models")
    assert "this terminal is 60x20: some is left out below 80x24" in shown
    one.told_of_size(80, 24)
    one.wait(lambda shown: "left out" not in shown and "no models here" in shown)
    one.told_of_size(50, 10)
    one.wait("this terminal is 50x10")


def model(folder: Path, name: str) -> Path:
    """A model of two tensors."""
    path = folder / name
    path.mkdir(parents=True)
    header = json.dumps(
        {
            "model.embed.weight": {"dtype": "F32", "shape": [4, 4], "data_offsets": [0, 64]},
            "model.norm.weight": {"dtype": "F32", "shape": [4], "data_offsets": [64, 80]},
        }
    ).encode()
    (path / "config.json").write_text(json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}))
    (path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(80))
    return path


def test_attach_lands_on_the_tab_and_filter_of_a_workbench_that_was_killed(
    line: Open, home: Path, tmp_path: Path
) -> None:
    one = line([*HFBENCH, "--", str(model(tmp_path, "models/tiny"))])
    one.wait("LlamaForCausalLM")
    one.press("t")
    one.wait("model.embed.weight")
    one.press("/norm\r")
    one.wait(lambda shown: "model.embed" not in shown and "model.norm" in shown)
    wait_until_kept(one, home, "norm")
    os.kill(one.pid, signal.SIGKILL)
    one.wait_for_end()

    two = line([*HFBENCH, "attach"])
    shown = two.wait(lambda shown: "[Tensors]" in shown and "filter: norm" in shown and "model.norm" in shown)
    assert "model.embed" not in shown
    two.press("q")
    assert two.wait_for_end() == 0
    three = line([*HFBENCH, "attach"])
    three.wait(lambda shown: "[Tensors]" in shown and "filter: norm" in shown)


def wait_until_kept(one: Line, home: Path, text: str) -> None:
    end = time.monotonic() + 30
    while not any(text in each.read_text() for each in (home / "state").glob("*.json")):
        assert time.monotonic() < end, "the place was never kept"
        one.read(0.1)


def test_a_name_that_the_locale_cannot_show_moves_nothing(
    variables: dict[str, str], home: Path, tmp_path: Path
) -> None:
    model(tmp_path, "modèle-日本")
    (home / "config").mkdir(parents=True, exist_ok=True)
    (home / "config" / "config.toml").write_text(f'[models]\nroots = ["{tmp_path}"]\n')
    posix = {**variables, "LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    with Line(HFBENCH, posix) as one:
        shown = one.wait(lambda shown: "ok read" in shown or "warning" in shown)
        one.read(0.5)
        [row] = [each for each in one.shown().splitlines() if "llama" in each]
        [head] = [each for each in shown.splitlines() if "Type" in each]
        assert row.index("llama") == head.index("Type")
        assert bytes(one.output).isascii()
        assert b"\\u" not in one.output


def test_what_is_not_ours_is_drawn_in_ascii_too(line: Open) -> None:
    one = line([*HFBENCH, "--ascii"])
    one.wait("no models")
    one.press(":")
    one.wait("Search for commands")
    one.press("\x1b")
    one.read(0.5)
    one.press("?")
    one.wait("Keys here")
    assert bytes(one.output).isascii()
