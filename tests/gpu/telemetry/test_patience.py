"""Calls that take too long: what is waited for, what is left alone, and what happens when they return."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from hfbench.gpu.telemetry.patience import MOST_STUCK, Patience, Task

CARD, OTHER = "card", "other"


def task(name: str, call: Callable[[], object], group: str = CARD) -> Task:
    return Task((group, name), call)


def until(found: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not found():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_calls_are_made_in_their_order_and_all_are_waited_for() -> None:
    made: list[int] = []
    patience = Patience(60)
    patience.run(task(str(number), lambda number=number: made.append(number)) for number in range(100))  # type: ignore[misc]
    assert made == list(range(100))
    assert not patience.stuck
    patience.close()


def test_a_slow_call_within_its_limit_is_waited_for() -> None:
    made: list[str] = []
    patience = Patience(60)
    patience.run([task("slow", lambda: (time.sleep(0.2), made.append("slow")))])
    assert made == ["slow"]


def test_a_late_call_is_skipped_until_it_returns_and_then_made_again() -> None:
    made: list[str] = []
    held = threading.Event()

    def hang() -> None:
        made.append("began")
        held.wait(60)
        made.append("returned")

    patience = Patience(0.05)
    tasks = [task("first", lambda: made.append("first")), task("hung", hang), task("last", lambda: made.append("last"))]
    patience.run(tasks)
    assert made == ["first", "began", "last"]
    assert set(patience.late(CARD)) == {"hung"}
    assert patience.late(OTHER) == {}
    patience.run(tasks)
    assert made == ["first", "began", "last", "first", "last"]
    held.set()
    until(lambda: not patience.stuck)
    patience.run(tasks)
    assert made[5:] == ["returned", "first", "began", "returned", "last"]


def test_a_group_in_which_calls_hang_is_given_up_and_others_go_on() -> None:
    held, made = threading.Event(), []

    def hang() -> None:
        made.append(CARD)
        held.wait(60)

    patience = Patience(0.05)
    tasks = [task(str(number), hang) for number in range(8)] + [task("own", lambda: made.append(OTHER), OTHER)]
    for _ in range(3):
        patience.run(tasks)
    assert made.count(CARD) == MOST_STUCK
    assert made.count(OTHER) == 3
    held.set()
    until(lambda: not patience.stuck)


def test_calls_that_return_just_when_nobody_waits_any_more_are_not_lost() -> None:
    """Around its limit a call is either waited for or late, and in both cases the next round makes it again."""
    patience, made = Patience(0.004), []
    for _ in range(150):
        patience.run([task("close", lambda: (time.sleep(0.004), made.append(1)))])
        until(lambda: not patience.stuck)
    assert len(made) == 150
