"""One thread that answers the latest request: nothing runs twice at once, the last request is always answered."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from textual.app import App
from textual.message import Message

from hfbench.errors import HfbenchError
from hfbench.screens.latest_wins import LatestWins


@dataclass
class Answered(Message):
    number: int


@dataclass
class Failed(Message):
    error: HfbenchError


class Listening(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.answers: list[int] = []
        self.errors: list[str] = []

    def on_answered(self, message: Answered) -> None:
        self.answers.append(message.number)

    def on_failed(self, message: Failed) -> None:
        self.errors.append(str(message.error))


async def test_requests_that_were_overtaken_are_passed_over(until: Any) -> None:
    free, asked = threading.Event(), list[int]()

    def deed(number: int) -> Message:
        asked.append(number)
        free.wait(60)
        return Answered(number)

    app = Listening()
    async with app.run_test() as pilot:
        latest = LatestWins(app, deed, Failed)
        latest.ask(0)
        await until(pilot, lambda: asked == [0], 60)
        for number in range(1, 50):
            latest.ask(number)
        free.set()
        await until(pilot, lambda: app.answers == [0, 49], 60)
        assert asked == [0, 49]
        latest.ask(50)
        await until(pilot, lambda: app.answers == [0, 49, 50], 60)
        latest.stop()


async def test_an_error_is_one_message_and_the_next_request_is_answered(until: Any) -> None:
    def deed(number: int) -> Message:
        if number == 0:
            raise HfbenchError("foreseen")
        if number == 1:
            raise ValueError("not\x1b[2J foreseen")
        return Answered(number)

    app = Listening()
    async with app.run_test() as pilot:
        latest = LatestWins(app, deed, Failed)
        latest.ask(0)
        await until(pilot, lambda: len(app.errors) == 1, 60)
        latest.ask(1)
        await until(pilot, lambda: len(app.errors) == 2, 60)
        latest.ask(2)
        await until(pilot, lambda: app.answers == [2], 60)
        assert app.errors[0] == "foreseen"
        assert app.errors[1].startswith("unforeseen ValueError: not\\x1b[2J foreseen")
        latest.stop()


async def test_after_stop_nothing_is_answered_and_the_thread_ends(until: Any) -> None:
    free, begun = threading.Event(), threading.Event()

    def deed(number: int) -> Message:
        begun.set()
        free.wait(60)
        return Answered(number)

    app = Listening()
    async with app.run_test() as pilot:
        latest = LatestWins(app, deed, Failed)
        latest.ask(0)
        await until(pilot, begun.is_set, 60)
        thread = latest._thread
        latest.stop()
        free.set()
        assert thread
        await until(pilot, lambda: not thread.is_alive(), 60)
        latest.ask(1)
        await pilot.pause()
        assert app.answers == []
