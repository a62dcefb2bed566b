"""Processes of our own modules beside this one: how they are started, answer on stdout, and end with who asked."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

NICENESS = 10
"""The one who looks at the screen comes first."""


ALONE = str(Path(__file__).parent / "alone")
"""A folder in which nothing but this package is found, whatever is installed beside it; `python ALONE MODULE` runs one
of its modules."""
OF_OUR_PYTHON = ("PYTHONPATH", "PYTHONHOME", "PYTHONEXECUTABLE", "VIRTUAL_ENV")
"""Variables that would lead another Python to the packages of this one."""


def python_path() -> str:
    """PYTHONPATH of a child: where this package lies, then what was on it."""
    return os.pathsep.join(dict.fromkeys([ALONE, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]))


def foreign_environment() -> dict[str, str]:
    """Variables for another Python, which has packages of its own."""
    return {name: value for name, value in os.environ.items() if name not in OF_OUR_PYTHON}


def start_beside(module: str) -> subprocess.Popen[bytes]:
    """`python -m hfbench.MODULE`, leading a group of its own, with pipes to its stdin and stdout.

    -P: it never imports from the current folder, which may be a model's.
    """
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": python_path()},
        process_group=0,
    )


def end_group(child: subprocess.Popen[bytes]) -> int:
    """End such a child and all it started; its return code."""
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
    with contextlib.suppress(BrokenPipeError), child:  # closes the pipes and waits; what was not written is gone
        pass
    return child.returncode


def answers_alone() -> BinaryIO:
    """In the child: stdout for answers alone, as what a library prints is none; Ctrl-C is for whoever asks."""
    giving = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)
    return giving


def end_with_parent() -> None:
    """In a thread of the child: its stdin ends when the process that asks does; nobody waits for what is under way."""
    sys.stdin.buffer.read()
    end_own_group()


def end_own_group() -> None:
    """End this process and, where it leads a group, all of that."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)
