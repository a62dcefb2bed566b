"""What a round of bench.modes costs, and the options with which its budget holds enough of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from hfbench.jobs.events import ADVICE
from hfbench.models.problem import counted
from hfbench.units import show_seconds

LEAST_NEW_TOKENS = 2


class Shape(Protocol):
    """What decides how long a round takes and how many are wanted; bench.modes declares these fields."""

    @property
    def new_tokens(self) -> int: ...
    @property
    def budget(self) -> float: ...
    @property
    def warmup(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class RoundCost:
    """Seconds of one round over all modes: to their first tokens, and for each token after these."""

    first: float
    token: float

    def seconds(self, new_tokens: int) -> float:
        """A round of so many tokens."""
        return self.first + self.token * (new_tokens - 1)


def cost_words(cost: RoundCost, shape: Shape, *, prompt: int, least: int) -> tuple[str, str]:
    """The level of a log line and the line: what a round takes, and where the budget does not hold two, what fits.

    `least` are the rounds after which an interval can be narrow enough.
    """
    each = cost.seconds(shape.new_tokens)
    told = f"a round of all modes takes {show_seconds(each)}"
    if shape.warmup:
        budget = show_seconds(shape.budget)
        told += f": the budget of {budget} is for {counted(shape.warmup, 'round')} of warm-up and those that count"
    if 2 * each <= shape.budget:
        return "info", told
    rounds = shape.warmup + least
    flags = fitting_flags(cost, shape, prompt=prompt, rounds=rounds)
    whole = f"--budget {math.ceil(each * rounds)}s"
    fits = f"{flags}, or {whole}" if flags else whole
    return ADVICE, f"{told}; the budget does not hold two rounds: {fits} holds {least}"


def fitting_flags(cost: RoundCost, shape: Shape, *, prompt: int, rounds: int) -> str:
    """The options of a smaller round, as long a one as the budget holds so often; empty where none is small enough."""
    room = shape.budget / rounds
    new = min(shape.new_tokens, int((room - cost.first) / cost.token) + 1) if cost.token else shape.new_tokens
    if new >= LEAST_NEW_TOKENS:
        return f"--new-tokens {new}"
    half = room / 2  # the time to the first token grows with the prompt, or faster
    shorter, new = int(prompt * half / cost.first), min(shape.new_tokens, int(half / cost.token) + 1)
    return f"--prompt {shorter} --new-tokens {new}" if shorter >= 1 and new >= LEAST_NEW_TOKENS else ""
