"""One card between samples: its handle, the values read last, and when."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import fields as fields_of
from functools import partial
from typing import Any

from hfbench.gpu.nvml import LASTING, LOST_REASONS, Nvml
from hfbench.gpu.reading import Unavailable
from hfbench.gpu.telemetry.decode import throttling
from hfbench.gpu.telemetry.fields import FAST, SLOW, STATIC, Field
from hfbench.gpu.telemetry.patience import Task
from hfbench.gpu.telemetry.readings import (
    UNREAD,
    DeviceReading,
    Ecc,
    Memory,
    Mig,
    Pcie,
    Rows,
    TemperatureLimits,
    Utilization,
    Xid,
)

HANDLE = "handle"
GROUPS: dict[str, Any] = {"pcie": Pcie, "temperature_limits": TemperatureLimits}
"""Fields that are read in parts."""
WHOLE: dict[str, Any] = {
    "memory": Memory,
    "utilization": Utilization,
    "ecc": Ecc,
    "rows": Rows,
    "mig": Mig,
}
"""Fields of several values that are read together."""
DERIVED = frozenset({"index", "throttle", "xids", "reason", "stale", "waiting"})


class Card:
    """What is known of one card. Its tasks write into it from whichever thread makes them."""

    def __init__(self, nvml: Nvml, index: int) -> None:
        self.index = index
        self.handle: Any = UNREAD
        self._nvml = nvml
        self._held: dict[str, tuple[Any, float]] = {}
        self._asked: dict[str, float] = {}
        self._slow_due = 0.0
        self.lost = ""

    def tasks(self, now: float, slow_every: float) -> Iterator[Task]:
        """Calls that are due, in their order: fast ones with each sample, the others when it is time."""
        yield Task((self, HANDLE), self._find)
        due = now >= self._slow_due and not self.lost
        wanted: list[Field] = [*FAST, *(each for each in STATIC if due and self._lacks(each.name))]
        if due:
            self._slow_due = now + slow_every
            wanted += SLOW
        for each in wanted:
            self._asked[each.name] = now
            yield Task((self, each.name), partial(self._read, each))

    def reading(self, now: float, late: dict[str, float], xids: tuple[Xid, ...] | Unavailable) -> DeviceReading:
        """The card as it was read last; `late` are calls that have not returned, with their seconds."""
        waiting = f"no answer to {' and '.join(late)} for {max(late.values()):.0f} s" if late else ""
        values: dict[str, Any] = {}
        stale: dict[str, float] = {}
        for name in ALL_NAMES:
            value, at = self._held.get(name, (None, now))
            if value is None:
                value = Unavailable(waiting) if late else UNREAD
            elif at < self._asked.get(name, 0.0):
                stale[name] = round(now - at, 1)
            values[name] = value
        self.lost = "" if late else _loss(values)
        if self.lost:
            self._forget()
        if self.lost or (late and not self._held):
            why = self.lost or waiting
            return lost(self.index, why, uuid=self._once("uuid"), name=self._once("name"), xids=xids, waiting=waiting)
        return _built(self.index, values, stale, waiting, xids)

    @property
    def uuid(self) -> str | None:
        """The UUID as it was first told, if it was."""
        return self._once("uuid")

    def came_back(self) -> bool:
        """True once, when a card that was lost answers again: what is read rarely is then due at once."""
        back = bool(self.lost) and isinstance(self._value("temperature"), (int, float))
        self.lost = "" if back else self.lost
        return back

    def replaced(self) -> bool:
        """True when the handle now leads to another card than before."""
        now, before = self._value("uuid"), self._once("uuid")
        if isinstance(now, str) and before is None:
            self._held["uuid.once"] = (now, 0.0)
        return isinstance(now, str) and isinstance(before, str) and now != before

    def _find(self) -> None:
        self.handle = self._nvml.read("nvmlDeviceGetHandleByIndex", self.index)

    def _read(self, field: Field) -> None:
        handle = self.handle
        if handle is UNREAD:
            return  # the call for the handle hangs: there is nothing to ask
        value = handle if isinstance(handle, Unavailable) else field.read(self._nvml, handle)
        self._held[field.name] = (value, time.monotonic())
        if field.name == "name" and isinstance(value, str):
            self._held["name.once"] = (value, 0.0)

    def _lacks(self, name: str) -> bool:
        value = self._value(name)
        return value is None or (isinstance(value, Unavailable) and value.reason not in LASTING)

    def _value(self, name: str) -> Any:
        return self._held.get(name, (None, 0.0))[0]

    def _once(self, name: str) -> str | None:
        """A name that was known before the card was lost."""
        value: str | None = self._value(f"{name}.once")
        return value

    def _forget(self) -> None:
        """Nothing read before the loss is true any more; all is asked again when the card is back."""
        self._held = {name: held for name, held in self._held.items() if name.endswith(".once")}
        self._slow_due = 0.0


def _names(fields: Iterable[Field]) -> tuple[str, ...]:
    return tuple(field.name for field in fields)


ALL_NAMES = _names([*FAST, *STATIC, *SLOW])


def lost(
    index: int,
    reason: str,
    *,
    uuid: str | None = None,
    name: str | None = None,
    xids: tuple[Xid, ...] | Unavailable = UNREAD,
    waiting: str = "",
) -> DeviceReading:
    """A row in which one reason stands for every value but the name the card is known by."""
    unknown = Unavailable(reason)
    whole = WHOLE | GROUPS
    values: dict[str, Any] = {
        each.name: _all(whole[each.name], unknown) if each.name in whole else unknown
        for each in fields_of(DeviceReading)
        if each.name not in DERIVED
    }
    values |= {"uuid": uuid or unknown, "name": name or unknown, "throttle": unknown}
    seen = xids if isinstance(xids, tuple) and xids else unknown  # why a card is lost is told by its last errors
    return DeviceReading(index=index, reason=reason, xids=seen, waiting=waiting, **values)


def _all(kind: Any, unknown: Unavailable) -> Any:
    return kind(**dict.fromkeys((each.name for each in fields_of(kind)), unknown))


def _loss(values: dict[str, Any]) -> str:
    """Why the whole card is unknown. Drivers remember the UUID of a card that fell off the bus: memory and temperature
    tell, by a code that means loss, or by failing as the UUID does."""
    memory = values["memory"]
    signs = [memory if isinstance(memory, Unavailable) else memory.total, values["temperature"]]
    reasons = [each.reason for each in signs if isinstance(each, Unavailable) and each != UNREAD]
    if len(reasons) < len(signs):
        return ""
    alike = {each.reason for each in (*signs, values["uuid"]) if isinstance(each, Unavailable)}
    gone = LOST_REASONS.issuperset(reasons) or (len(alike) == 1 and isinstance(values["uuid"], Unavailable))
    return reasons[0] if gone else ""


def _built(
    index: int,
    values: dict[str, Any],
    stale: dict[str, float],
    waiting: str,
    xids: tuple[Xid, ...] | Unavailable,
) -> DeviceReading:
    given: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {group: {} for group in GROUPS}
    for name, value in values.items():
        group, _, part = name.partition(".")
        if part:
            parts[group][part] = value
        elif isinstance(value, Unavailable) and name in WHOLE:
            given[name] = _all(WHOLE[name], value)
        else:
            given[name] = value
    words = given["clock_reasons"]
    return DeviceReading(
        index=index,
        **given,
        **{group: GROUPS[group](**found) for group, found in parts.items()},
        throttle=words if isinstance(words, Unavailable) else throttling(words),
        xids=xids,
        stale=stale,
        waiting=waiting,
    )
