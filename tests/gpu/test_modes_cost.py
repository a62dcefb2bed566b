"""What a round of bench.modes is said to cost, and that the options it advises fit."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from hfbench.gpu.modes_cost import RoundCost, cost_words, fitting_flags
from hfbench.jobs.events import ADVICE


@dataclass(frozen=True)
class Asked:
    new_tokens: int = 64
    budget: float = 120.0
    warmup: int = 2


def test_a_round_that_fits_is_told_with_its_warm_up() -> None:
    level, words = cost_words(RoundCost(first=1.0, token=0.1), Asked(), prompt=128, least=10)
    assert level == "info"
    assert (
        words
        == "a round of all modes takes 7.30 s: the budget of 2 m 00 s is for 2 rounds of warm-up and those that count"
    )


def test_a_budget_that_cannot_hold_two_rounds_is_told_with_what_does() -> None:
    level, words = cost_words(RoundCost(first=2.0, token=1.0), Asked(), prompt=128, least=10)
    assert level == ADVICE
    assert words.endswith("the budget does not hold two rounds: --new-tokens 9, or --budget 780s holds 10")


@given(st.floats(0.01, 500), st.floats(0.001, 50), st.integers(1, 4096), st.integers(2, 4096))
def test_what_is_advised_fits_as_often_as_is_said(first: float, token: float, prompt: int, new: int) -> None:
    asked = replace(Asked(), new_tokens=new)
    flags = fitting_flags(RoundCost(first=first, token=token), asked, prompt=prompt, rounds=10).split()
    given_flags = dict(zip(flags[::2], map(int, flags[1::2]), strict=True))
    if not given_flags:
        return
    shorter, fewer = given_flags.get("--prompt", prompt), given_flags["--new-tokens"]
    assert (shorter >= 1, 2 <= fewer <= new, shorter <= prompt) == (True, True, True)
    assert first * shorter / prompt + token * (fewer - 1) <= asked.budget / 10 * 1.000001
