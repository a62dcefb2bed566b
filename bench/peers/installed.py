"""Commands of other projects, installed from the package index into an environment of their own when first wanted."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path


def command_of(package: str, command: str) -> Path | str:
    """The command of a pinned package such as `name==1.0`, or the sentence why it cannot be had.

    Environments stay in the cache folder (XDG_CACHE_HOME), one a package and Python version.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "hfbench-bench" / f"{package}-python{sys.version_info.major}.{sys.version_info.minor}"
    found = home / "bin" / command
    if not found.exists():
        venv.create(home, with_pip=True, clear=True)
        install = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", package]
        done = subprocess.run(install, capture_output=True, text=True)
        if done.returncode or not found.exists():
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            return f"{package} cannot be installed here: {reason[:200]}"
    return found
