"""A real terminal for tests: tmux with a socket of its own, keys in, screen out."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest


class Terminal:
    """One tmux server with one session. Use as a context manager; leaving kills the server."""

    def __init__(self, folder: Path, size: tuple[int, int] = (80, 24)) -> None:
        if shutil.which("tmux") is None:
            pytest.skip("tmux is not installed")
        self.socket, self.size = folder / "tmux.sock", size

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *trouble: object) -> None:
        self.kill()

    def start(self, words: Sequence[str | Path], **environment: str) -> None:
        """Run a program in a new session; the shell behind it stays, so that its end can be seen."""
        told = [f"{name}={value}" for name, value in environment.items()]
        program = shlex.join(["env", *told, *map(str, words)])
        columns, rows = map(str, self.size)
        line = f"{program}; echo [left with status $?]; exec sleep 600"
        self._tmux("new-session", "-d", "-x", columns, "-y", rows, line)

    def press(self, *keys: str) -> None:
        """Send keys by tmux's names, one after the other."""
        for key in keys:
            self._tmux("send-keys", key)

    def type(self, text: str) -> None:
        """Send text as it is."""
        self._tmux("send-keys", "-l", text)

    def screen(self) -> str:
        """What is on the screen."""
        return self._tmux("capture-pane", "-p")

    def wait(self, text: str | Callable[[str], bool], seconds: float = 90.0) -> str:
        """The screen once it holds the text; AssertionError shows the screen when it never does."""
        holds = text if callable(text) else lambda shown: text in shown
        end = time.monotonic() + seconds
        while not holds(shown := self.screen()):
            if time.monotonic() > end:
                raise AssertionError(f"{text!r} never came; the screen shows\n{shown}")
            time.sleep(0.05)
        return shown

    def flags(self, name: str) -> str:
        """A flag of the pane, such as `alternate_on`, by tmux's name."""
        return self._tmux("display", "-p", f"#{{{name}}}").strip()

    def kill(self) -> None:
        """End the server, as a dropped connection would."""
        self._tmux("kill-server", check=False)

    def _tmux(self, *words: str, check: bool = True) -> str:
        command = ["tmux", "-S", str(self.socket), "-f", "/dev/null", *words]
        environment = {name: value for name, value in os.environ.items() if name != "TMUX"}
        return subprocess.run(command, check=check, capture_output=True, text=True, env=environment).stdout
