"""Processes that load a kernel file: however they end, whoever asked is told, and none is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from kernel_files import COPY, write

from hfbench.errors import HfbenchError
from hfbench.gpu.kernels.processes import Crew
from hfbench.gpu.kernels.static import MODULE

pytest.importorskip("triton")

PATIENCE = 60.0


def gone(pid: int) -> bool:
    """True when a process has ended, or only waits to be collected."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def until_gone(pid: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while not gone(pid):
        assert time.monotonic() < deadline, f"process {pid} is still there"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("first", "sentence"),
    [
        ("import os; os._exit(0)\n", "could not be loaded: the process ended by exit status 0"),
        ("import ctypes; ctypes.string_at(0)\n", "could not be loaded: the process ended by SIGSEGV, at line 1"),
        ("while True: pass\n", "could not be loaded: still running after 1.00 s, at line 1"),
        ("input()\n", "mine.py:1: EOFError: EOF when reading a line"),
        ("import sys; sys.exit('no')\n", "mine.py:1: ends Python with status no when it is loaded"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_one_sentence(tmp_path: Path, first: str, sentence: str) -> None:
    path = write(tmp_path, first + COPY)
    with (
        Crew(MODULE, path, size=1, seconds=5, start_seconds=1) as crew,
        pytest.raises(HfbenchError) as caught,
    ):
        crew.load()
    assert sentence in str(caught.value)


def test_a_file_that_sleeps_is_given_up_and_meanwhile_it_is_told_that_it_loads(tmp_path: Path) -> None:
    path = write(tmp_path, "import time\ntime.sleep(600)\n" + COPY)
    told: list[float] = []
    with (
        Crew(MODULE, path, size=1, seconds=5, idle_seconds=2.0, loading=told.append) as crew,
        pytest.raises(HfbenchError) as caught,
    ):
        crew.load()
    assert "could not be loaded: nothing has happened for 2.00 s, at line 2. Load it with" in str(caught.value)
    assert told
    assert told == sorted(told)


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    with Crew(MODULE, write(tmp_path), size=1, seconds=5) as crew:
        plan = crew.load()
        (member,) = crew._members
        assert not gone(member.process.pid)
        scratch = Path(crew._scratch.name)
    assert plan["name"] == "copy"
    assert [each["label"] for each in plan["configs"]] == ["BLOCK=64 w4 s3", "BLOCK=128 w8 s3"]
    assert gone(member.process.pid)
    assert not scratch.exists()


def test_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    path = write(tmp_path)
    program = (
        "import sys\nfrom pathlib import Path\nfrom hfbench.gpu.kernels.processes import Crew\n"
        "crew = Crew('hfbench.gpu.kernels.compiled', Path(sys.argv[1]), size=1, seconds=5)\ncrew.load()\n"
        "print(crew._members[0].process.pid, flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},  # where the scratch of a process that is killed stays
    ) as owner:
        assert owner.stdout
        child = int(owner.stdout.readline())
        assert not gone(child)
        os.kill(owner.pid, signal.SIGKILL)
    until_gone(child)
