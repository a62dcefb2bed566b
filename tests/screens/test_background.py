"""Reading beside the screen: stopped when nobody wants it, and never a traceback."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from textual.app import App
from textual.message import Message

from hfbench.errors import HfbenchError, UsageError
from hfbench.screens.background import Background, Stopped


@dataclass
class Said(Message):
    what: str


@dataclass
class Trouble(Message):
    error: HfbenchError


class Listener(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def on_said(self, message: Said) -> None:
        self.heard.append(message.what)

    def on_trouble(self, message: Trouble) -> None:
        self.heard.append(str(message.error))


Post = Callable[[Message], None]


async def test_errors_foreseen_or_not_become_one_sentence(until: Any) -> None:
    def foreseen(stopped: Stopped, post: Post) -> None:
        raise UsageError("no such model", where="x")

    def odd(stopped: Stopped, post: Post) -> None:
        raise ZeroDivisionError("line one\nline \x1b[31mtwo" + "!" * 1000)

    app = Listener()
    async with app.run_test() as pilot:
        background = Background(app, Trouble)
        background.start(foreseen)
        await until(pilot, lambda: app.heard == ["x: no such model"])
        background.start(odd)
        await until(pilot, lambda: len(app.heard) == 2)
        assert app.heard[1].startswith("unforeseen ZeroDivisionError: line one\\nline \\x1b[31mtwo!")
        assert len(app.heard[1]) < 300


async def test_what_comes_after_the_stop_goes_nowhere(until: Any) -> None:
    go = threading.Event()

    def slow(stopped: Stopped, post: Post) -> None:
        post(Said("begun"))
        go.wait(10)
        assert stopped()
        post(Said("late"))

    app = Listener()
    async with app.run_test() as pilot:
        background = Background(app, Trouble)
        background.start(slow)
        await until(pilot, lambda: app.heard == ["begun"])
        assert background.busy
        background.start(lambda stopped, post: post(Said("second")))
        go.set()
        await until(pilot, lambda: app.heard == ["begun", "second"])


def test_a_thread_that_never_ends_does_not_hold_the_exit() -> None:
    program = """
import threading
from textual.app import App
from hfbench.screens.background import Background

class Stuck(App):
    def on_mount(self):
        Background(self, lambda error: None).start(lambda stopped, post: threading.Event().wait())
        self.call_later(self.exit)

Stuck().run(headless=True)
print("left")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout.strip()[-4:]) == (0, "left"), done.stderr
