"""Programs of other projects, installed from the package index into environments of their own when first wanted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

CONSTRAINTS = Path(__file__).resolve().parents[2] / "constraints.txt"


def command_of(package: str, command: str) -> Path | str:
    """The command of a pinned package such as `name==1.0`, or the sentence why it cannot be had.

    Environments stay in the cache folder (XDG_CACHE_HOME), one a package and Python version.
    """
    home = home_of(package)
    found = home / "bin" / command
    if not found.exists():
        reason = install(home, [[package]])
        if reason or not found.exists():
            return f"{package} cannot be installed here: {reason or f'it has no command {command}'}"
    return found


def python_with(package: str, before: Sequence[str]) -> Path | str:
    """The Python of an environment with a pinned package, or the sentence why it cannot be had.

    What is named in `before` is installed first, one after the other, in the versions of the repository's constraints:
    a resolver that meets torch only as a dependency takes the newest one, with all that a GPU wants.
    """
    home = home_of(package)
    python, complete = home / "bin" / "python", home / "complete"
    if not complete.exists():
        pinned = ["-c", str(CONSTRAINTS)]
        reason = install(home, [*([*pinned, each] for each in before), [*pinned, package]])
        if reason:
            shutil.rmtree(home, ignore_errors=True)
            return f"{package} cannot be installed here: {reason}"
        complete.touch()
    return python


def home_of(package: str) -> Path:
    """Where the environment of a package lies."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "hfbench-bench" / f"{package}-python{sys.version_info.major}.{sys.version_info.minor}"


def install(home: Path, steps: Sequence[Sequence[str]]) -> str:
    """Make an environment and run pip in it, once a step; the first failure in a line, or nothing."""
    venv.create(home, with_pip=True, clear=True)
    for step in steps:
        words = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", *step]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no reason given"]
            return next((line for line in lines if line.startswith("ERROR:")), lines[-1])[:200]
    return ""
