"""Something that was measured, read once and whole: what a comparison, a baseline and a report work on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

VERSION = 1
"""Of a subject as it is kept in a baseline."""

CellKey: TypeAlias = tuple[tuple[str, str], ...]
"""Which cell of a sweep: its axes in order, each with its value as JSON. `true` is no text, and 1 is not `"1"`."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One action that ran: a job, or one step of a cell. `result` is None where it came to none."""

    values: dict[str, Any] = field(default_factory=dict)
    """Its place in a sweep: the values of its cell."""
    step: str = ""
    """Which step of the cell it is, where a cell has several: `2 bench.generate`."""
    action: str
    params: dict[str, Any] = field(default_factory=dict)
    result: dict[str, Any] | None = None
    environment: dict[str, Any] = field(default_factory=dict)
    state: str = "finished"
    reason: str = ""
    """Why there is no result, or what else went wrong."""
    job: str = ""
    on: str = ""
    """Where it ran, when that was not told as local."""
    created: float | None = None
    seconds: float | None = None
    led_to: str = ""
    """What its model led to: `org/name@commit`, or the real path of a folder; empty where that is not known."""

    @property
    def cell(self) -> CellKey:
        """Which cell it is of; empty for a job by itself."""
        return cell_key(self.values)

    @property
    def place(self) -> str:
        """Cell and step in words, for eyes alone: `batch=4 dtype=bf16`, empty for a job by itself."""
        return " ".join(filter(None, (cell_label(self.values), self.step)))

    @property
    def model(self) -> str:
        """The model it is about, or the kernel; empty when it is about neither."""
        told = self.params.get("model") or self.params.get("kernel") or (self.result or {}).get("model")
        return str(told or "")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One expectation of a script, and how it went: `ok` is None where it could not be asked."""

    values: dict[str, Any] = field(default_factory=dict)
    step: str = ""
    text: str
    ok: bool | None
    actual: str = ""
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One job, one sweep, one script's results, one file: `measured` in the order it ran."""

    given: str
    kind: str
    """`job`, `sweep`, `script`, `file` or `baseline`."""
    name: str
    state: str
    made: float | None = None
    measured: tuple[Measured, ...] = ()
    expectations: tuple[Asked, ...] = ()
    script: str = ""
    """The text of the script that runs it again, for a sweep."""
    environment: dict[str, Any] = field(default_factory=dict)
    """Of a script's own process; each measured action has one too where its job is still there."""
    hfbench: str = ""
    notes: tuple[str, ...] = ()

    @property
    def cells(self) -> int:
        """How many different places there are; 1 for a job."""
        return len({each.cell for each in self.measured})

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions in it, each once."""
        return tuple(dict.fromkeys(each.action for each in self.measured))

    @property
    def models(self) -> tuple[str, ...]:
        """The models in it, each once."""
        return tuple(dict.fromkeys(each.model for each in self.measured if each.model))

    @property
    def headline(self) -> str:
        """The figure it is remembered by; empty for several cells."""
        told = (self.measured[0].result or {}).get("headline") if len(self.measured) == 1 else ""
        return str(told or "")


def cell_key(values: Mapping[str, Any]) -> CellKey:
    """What tells a cell from every other, the same whatever the order of its axes."""
    return tuple((name, value_key(values[name])) for name in sorted(values))


def value_key(value: object) -> str:
    """What tells a value from others, of other types too."""
    return json.dumps(value, sort_keys=True, default=str)


def cell_label(values: Mapping[str, Any]) -> str:
    """The values of a cell in words, the same whatever their order; different cells may read alike."""
    return " ".join(f"{name}={value_word(values[name])}" for name in sorted(values))


def value_word(value: object) -> str:
    """A value as a script would write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)
