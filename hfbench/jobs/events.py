"""What a job writes while it runs: one JSON object a line, append-only, readable by older and newer versions."""

from __future__ import annotations

import dataclasses
import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hfbench.codec import decode, encode

SCHEMA_VERSION = 1
NUMBER, PLAIN = rb"(-?(?:0|[1-9]\d{0,17})(?:\.\d+)?(?:e[+-]?\d+)?)", rb'"([ !#-\[\]-~]*)"'
USUAL_METRIC = re.compile(
    rb'\{"v":\d{1,9},"kind":"metric","at":%b,"name":%b,"value":%b,"unit":%b\}\n?' % (NUMBER, PLAIN, NUMBER, PLAIN)
)
"""A metric as `to_line` writes it: long jobs write hundreds of thousands, which are to be read without a parser."""

ADVICE = "advice"
"""Level of a log line that whoever waits for the job is told at once."""

KINDS: dict[str, type[Event]] = {}


@dataclass(frozen=True, kw_only=True)
class Event:
    """Base of all events. `at` is seconds since the epoch, by the clock of the machine that wrote it."""

    kind: ClassVar[str]
    final: ClassVar[bool] = False
    at: float = field(default_factory=time.time)

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls):
            KINDS[cls.kind] = cls


@dataclass(frozen=True, kw_only=True)
class Started(Event):
    """The worker process is alive. `ticks` is its start time in clock ticks since boot: a pid alone may be reused."""

    kind: ClassVar[str] = "started"
    pid: int
    ticks: int
    host: str


@dataclass(frozen=True, kw_only=True)
class Queued(Event):
    """The job waits for a device that another job holds."""

    kind: ClassVar[str] = "queued"
    device: str
    waits_for: str


@dataclass(frozen=True, kw_only=True)
class Placed(Event):
    """A keeper handed the job to an executor, which calls it `id`; told again when its node is known."""

    kind: ClassVar[str] = "placed"
    on: str
    id: str
    node: str = ""


@dataclass(frozen=True, kw_only=True)
class Waiting(Event):
    """The job has not begun where it was handed to, and why."""

    kind: ClassVar[str] = "waiting"
    reason: str


@dataclass(frozen=True, kw_only=True)
class Requeued(Event):
    """The executor begins the job again: what an earlier attempt told of its work is void."""

    kind: ClassVar[str] = "requeued"
    reason: str
    attempt: int


@dataclass(frozen=True, kw_only=True)
class Trouble(Event):
    """The executor does not answer: the job may go on there. An empty reason ends it."""

    kind: ClassVar[str] = "trouble"
    reason: str


@dataclass(frozen=True, kw_only=True)
class Running(Event):
    """The job has its device, if it needs one, and the action begins."""

    kind: ClassVar[str] = "running"
    device: str = ""


@dataclass(frozen=True, kw_only=True)
class Progress(Event):
    """`done` of `total` units of the named phase; a total of None is not known."""

    kind: ClassVar[str] = "progress"
    phase: str
    done: float
    total: float | None = None
    unit: str = ""


@dataclass(frozen=True, kw_only=True)
class Metric(Event):
    """One measured value, written as soon as it is known."""

    kind: ClassVar[str] = "metric"
    name: str
    value: float
    unit: str


@dataclass(frozen=True, kw_only=True)
class Log(Event):
    """A line for the reader of the job: `level` is info, advice, warning or error."""

    kind: ClassVar[str] = "log"
    text: str
    level: str = "info"


@dataclass(frozen=True, kw_only=True)
class Artifact(Event):
    """A file the job made. `path` is relative to the job directory when it lies inside."""

    kind: ClassVar[str] = "artifact"
    path: str
    bytes: int
    what: str = ""


@dataclass(frozen=True, kw_only=True)
class Finished(Event):
    """The action is done and result.json is in place."""

    kind: ClassVar[str] = "finished"
    final: ClassVar[bool] = True
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Failed(Event):
    """The action ended with an error: the parts of an HfbenchError, and a traceback when it was unforeseen."""

    kind: ClassVar[str] = "failed"
    final: ClassVar[bool] = True
    error: dict[str, Any]
    traceback: str = ""


@dataclass(frozen=True, kw_only=True)
class Cancelled(Event):
    """Somebody asked the job to stop, and it did."""

    kind: ClassVar[str] = "cancelled"
    final: ClassVar[bool] = True
    reason: str


@dataclass(frozen=True, kw_only=True)
class Died(Event):
    """The worker ended without a word; written by the process that waited for it and saw how."""

    kind: ClassVar[str] = "died"
    final: ClassVar[bool] = True
    reason: str
    signal: str = ""
    status: int | None = None


@dataclass(frozen=True, kw_only=True)
class Unknown(Event):
    """An event of a newer version, kept as it is."""

    kind: ClassVar[str] = "unknown"
    name: str
    data: dict[str, Any]


def to_line(event: Event) -> bytes:
    """The event as one line of events.jsonl, newline included."""
    data = {"v": SCHEMA_VERSION, "kind": event.kind, **encode(event)}
    return json.dumps(data, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def from_line(line: bytes) -> Event | None:
    """The event of a line; None for a torn or foreign line, which a reader skips."""
    try:
        if usual := USUAL_METRIC.fullmatch(line):
            at, name, value, unit = usual.groups()
            return Metric(at=float(at), name=name.decode(), value=float(value), unit=unit.decode())
        data = json.loads(line)
        kind = KINDS.get(data["kind"])
        if kind is None:
            return Unknown(at=float(data["at"]), name=str(data["kind"]), data=data)
        return decode(kind, data)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError):
        return None


def plain(event: Event) -> dict[str, Any]:
    """The event as JSON data with its kind."""
    return {"kind": event.kind, **encode(event)}


def field_names(kind: type[Event]) -> Iterator[str]:
    """The fields of an event in the order they are written."""
    return (each.name for each in dataclasses.fields(kind))
