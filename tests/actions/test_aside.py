"""aside: actions in a child process, answered, refused, interrupted, and never left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hfbench.actions.aside import SLICE, Aside
from hfbench.actions.check import Check
from hfbench.actions.resolve import Resolve
from hfbench.errors import HfbenchError, Interrupted, UsageError
from hfbench.jobs.run import Run

PATIENCE = 60.0


@pytest.fixture
def aside() -> Iterator[Aside]:
    with Aside() as made:
        yield made


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A configuration whose index names many files, none of which is there."""
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "rope_theta": 1e4, "num_hidden_layers": 1}
    (tmp_path / "config.json").write_text(json.dumps(config))
    weight_map = {f"t{n}": f"model-{n:05d}.safetensors" for n in range(2 * SLICE + 50)}
    index = {"metadata": {"total_size": 5000}, "weight_map": weight_map}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    return tmp_path


def eventually(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "this never came true"
        time.sleep(0.02)


def pid_of(aside: Aside) -> int:
    assert aside._child is not None
    return aside._child.pid


def is_there(pid: int) -> bool:
    """True for a process that lives; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_the_answer_is_what_the_action_itself_returns_long_lists_included(aside: Aside, model: Path) -> None:
    resolved = aside.ask("resolve", {"model": str(model)})
    assert resolved == Resolve(model=str(model)).perform(Run())
    checked = aside.ask("check", {"model": str(model)})
    assert len(checked.findings) > 2 * SLICE
    assert checked == Check(model=str(model)).perform(Run())


def test_one_child_answers_all_requests(aside: Aside, model: Path) -> None:
    aside.ask("rule", {"rule": "HB142"})
    first = pid_of(aside)
    assert aside.ask("rule", {"rule": "missing-shard"}).id == "HB142"
    assert pid_of(aside) == first


def test_what_an_action_refuses_is_raised_here_and_the_child_goes_on(aside: Aside) -> None:
    with pytest.raises(UsageError, match="there is no rule 'HB0'"):
        aside.ask("rule", {"rule": "HB0"})
    assert aside.ask("rule", {"rule": "HB142"}).name == "missing-shard"


def test_a_fault_of_an_action_is_one_sentence(aside: Aside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bad.py").write_text(BAD_ACTION)
    monkeypatch.setenv("HFBENCH_ACTIONS", str(tmp_path))
    with pytest.raises(HfbenchError, match="unforeseen ZeroDivisionError: "):
        aside.ask("toy.bad", {})


BAD_ACTION = """
from dataclasses import dataclass
from hfbench.actions.base import action

@action("toy.bad", result=dict, inline=True)
@dataclass(frozen=True, kw_only=True)
class Bad:
    "Divide by zero."
    def perform(self, run):
        print("this is no answer")
        return 1 // 0
"""


def test_a_child_that_is_killed_is_told_and_the_next_request_starts_another(aside: Aside, model: Path) -> None:
    aside.ask("rule", {"rule": "HB142"})
    first = pid_of(aside)
    os.kill(first, signal.SIGSTOP)
    threading.Timer(0.3, os.kill, (first, signal.SIGKILL)).start()
    with pytest.raises(HfbenchError, match="the process that performs check was ended by SIGKILL"):
        aside.ask("check", {"model": str(model)})
    assert aside.ask("rule", {"rule": "HB142"}).id == "HB142"
    assert pid_of(aside) != first


def test_a_child_that_has_died_between_two_requests_is_told_too(aside: Aside) -> None:
    aside.ask("rule", {"rule": "HB142"})
    first = pid_of(aside)
    os.kill(first, signal.SIGKILL)
    eventually(lambda: not is_there(first))  # so that the request meets a broken pipe
    with pytest.raises(HfbenchError, match="the process that performs rule was ended by SIGKILL"):
        aside.ask("rule", {"rule": "HB142"})
    assert aside.ask("rule", {"rule": "HB142"}).id == "HB142"


def test_a_child_that_hangs_is_ended_once_nobody_waits(aside: Aside, model: Path) -> None:
    aside.ask("rule", {"rule": "HB142"})
    child = pid_of(aside)
    os.kill(child, signal.SIGSTOP)
    asked: list[float] = []

    def stopped() -> bool:
        asked.append(time.monotonic())
        return len(asked) > 3

    with pytest.raises(Interrupted):
        aside.ask("check", {"model": str(model)}, stopped)
    assert not is_there(child)


def test_the_child_ends_when_the_process_that_asks_is_killed(model: Path) -> None:
    code = (
        "import sys\n"
        "from hfbench.actions.aside import Aside\n"
        "aside = Aside()\n"
        "aside.ask('rule', {'rule': 'HB142'})\n"
        "print(aside._child.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        assert is_there(child)
        parent.kill()
    eventually(lambda: not is_there(child))


def test_what_the_child_started_ends_with_it(aside: Aside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow.py").write_text(SLOW_ACTION)
    monkeypatch.setenv("HFBENCH_ACTIONS", str(tmp_path))
    told = tmp_path / "pid"

    def stopped() -> bool:
        return told.exists() and bool(told.read_text())

    with pytest.raises(Interrupted):
        aside.ask("toy.slow", {"told": str(told)}, stopped)
    eventually(lambda: not is_there(int(told.read_text())))


SLOW_ACTION = """
import subprocess, sys
from dataclasses import dataclass
from pathlib import Path
from hfbench.actions.base import action
from hfbench.actions.params import param

@action("toy.slow", result=dict, inline=True)
@dataclass(frozen=True, kw_only=True)
class Slow:
    "Wait for a helper."
    told: Path = param("Where to write the helper's process id", kind="path")
    def perform(self, run):
        with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as helper:
            self.told.write_text(str(helper.pid))
        return {}
"""
