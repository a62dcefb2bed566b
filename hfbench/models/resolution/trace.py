"""What a resolution tells: its steps in order, and what keeps each runtime from loading the model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from itertools import islice
from typing import Any, Literal

from hfbench.models.problem import quoted
from hfbench.models.runtimes import RUNTIMES, Names, Runtime
from hfbench.text import printable

State = Literal["ok", "note", "warning", "error", "skipped"]

MOST_NOTES = 40

MOST_ITEMS = 200
LONGEST_VALUE = 2_000
"""Items of a list or an object, and characters of a text, that are kept of one value out of a configuration."""

LONGEST_SENTENCE = 4_000

LONGEST_NUMBER = 40
"""Digits of a number in a sentence."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step: what was looked at, what was found, and why the next one follows. Text is safe to paint."""

    step: str
    looked_at: str
    found: str
    why: str
    state: State
    details: Mapping[str, Any]
    """The same as data, where there is more than a sentence: `before` and `after` of RoPE, files that would run."""


class Stage(IntEnum):
    """How far a runtime gets before it stops."""

    CONFIGURATION = 1
    MODEL = 2
    WEIGHTS = 3


@dataclass(slots=True)
class Fate:
    """What is known so far of one runtime and this model."""

    names: Names
    config_class: str | None = None
    model_class: str | None = None
    files: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    blockers: list[tuple[Stage, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    alarm: str = ""
    """What is dangerous about loading the model, though the runtime does."""

    def blocked(self, stage: Stage) -> str:
        """The first reason why the runtime does not get past a stage, empty when it does."""
        return next((reason for at, reason in sorted(self.blockers, key=lambda each: each[0]) if at <= stage), "")


class Trace:
    """Collects steps and fates while a model is looked at."""

    def __init__(self, names: Mapping[Runtime, Names]) -> None:
        self.steps: list[Step] = []
        self.fates: dict[Runtime, Fate] = {runtime: Fate(names[runtime]) for runtime in RUNTIMES}

    def step(self, step: str, looked_at: str, found: str, why: str = "", state: State = "ok", **details: Any) -> None:
        """Add one step; its texts may hold names from files."""
        self.steps.append(
            Step(
                step=step,
                looked_at=_sentence(looked_at),
                found=_sentence(found),
                why=_sentence(why),
                state=state,
                details={key: plain(value) for key, value in details.items()},
            )
        )

    def block(self, stage: Stage, reason: str, *runtimes: Runtime) -> None:
        """Note what keeps these runtimes, or all, from loading the model."""
        for runtime in runtimes or RUNTIMES:
            self.fates[runtime].blockers.append((stage, _sentence(reason)))

    def note(self, sentence: str, *runtimes: Runtime) -> None:
        """Note what does not stop these runtimes, or all, and is worth knowing."""
        for runtime in runtimes or RUNTIMES:
            notes = self.fates[runtime].notes
            if len(notes) < MOST_NOTES:
                notes.append(_sentence(sentence))


def shown(value: object) -> str:
    """A value out of a configuration in JSON's spelling, short enough for a sentence."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return str(value) if abs(value) < 10**LONGEST_NUMBER else "a very large number"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list) else quoted(value)


def plain(value: Any, depth: int = 4) -> Any:
    """A value as data for JSON, cut off where it is deeper, longer or wider than in any real configuration."""
    if isinstance(value, Mapping):
        kept = islice(value.items(), MOST_ITEMS)
        return {plain(str(key)): plain(item, depth - 1) for key, item in kept} if depth else "an object"
    if isinstance(value, (list, tuple)):
        return [plain(item, depth - 1) for item in value[:MOST_ITEMS]] if depth else "a list"
    if isinstance(value, str):
        return value if len(value) <= LONGEST_VALUE else f"{value[:LONGEST_VALUE]}..."
    return shown(value) if isinstance(value, int) and abs(value) >= 2**64 else value


def by_runtime(told: Mapping[str, str]) -> str:
    """What is said of each runtime, told once where it is the same: `transformers and vLLM: LlamaConfig`."""
    alike: dict[str, list[str]] = {}
    for title, text in told.items():
        alike.setdefault(text, []).append(title)
    if len(alike) == 1 and len(told) == len(RUNTIMES):
        return f"all four runtimes: {next(iter(alike))}"
    return "; ".join(f"{joined(titles)}: {text}" for text, titles in alike.items())


def joined(words: list[str], last: str = "and") -> str:
    """`a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}" if words else ""


def _sentence(text: str) -> str:
    return printable(text if len(text) <= LONGEST_SENTENCE else f"{text[:LONGEST_SENTENCE]}...")
