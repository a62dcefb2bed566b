"""Where the cells of a sweep run, and how many at once at each place."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from hfbench.errors import UsageError
from hfbench.gpu.devices import list_devices, parse_device
from hfbench.jobs.executors.base import Need
from hfbench.jobs.executors.known import executor_of
from hfbench.jobs.executors.spec import parse_on
from hfbench.scripts.perform import job_request
from hfbench.scripts.plan import Plan, PlannedStep

USUAL = {"slurm": 1000, "ray": 8, "ssh": 1}
"""Cells at once at a place: Slurm queues them itself, as many as its arrays have; a job on Ray keeps a process here."""
LIGHT = 4
"""Cells at once on this machine at most, when none of them takes a device."""

ASKED_AGAIN = 10.0
"""Seconds after which a place that was out of reach is asked again."""


@dataclass
class Slot:
    """Room for one cell. `device` is what `auto` stands for in it; empty leaves that to the job."""

    on: str
    device: str = ""

    def settled(self, step: PlannedStep) -> PlannedStep:
        """The step as it runs here: a device left open is the slot's, a place left open is where the slot is."""
        field = step.spec.lease
        if self.device and field and str(getattr(step.request, field)) == "auto" and not step.on:
            step = dataclasses.replace(step, request=dataclasses.replace(step.request, **{field: self.device}))  # type: ignore[type-var]
        on = "" if self.on == "local" or step.spec.inline else self.on
        return dataclasses.replace(step, on=step.on or on)


@dataclass
class Place:
    """One place and its free slots, of as many as it has."""

    on: str
    free: list[Slot]
    of: int = field(init=False)
    shut_until: float = 0.0
    """Until when, by the monotonic clock, it is given no cell, as it was out of reach."""

    def __post_init__(self) -> None:
        self.of = len(self.free)

    @property
    def takes(self) -> bool:
        """Whether it has room for a cell and was not found out of reach just now."""
        return bool(self.free) and time.monotonic() >= self.shut_until

    def shut(self) -> None:
        """Give it no cell for a while."""
        self.shut_until = time.monotonic() + ASKED_AGAIN

    def slot(self) -> Slot:
        """A free slot, or one more: for what runs there already."""
        return self.free.pop(0) if self.free else Slot(self.on)


def places_for(on: Sequence[str], slots: int | None, plan: Plan) -> list[Place]:
    """The places of a sweep; UsageError for one that cannot be read, or the same twice."""
    if twice := {each for each in on if list(on).count(each) > 1}:
        raise UsageError(
            f"the place {min(twice)} was given twice", where="--on", remedy="--slots says how many at once"
        )
    return [Place(each, _slots(each, slots, plan)) for each in on or ("local",)]


def refuse_never(on: Sequence[str], plan: Plan) -> None:
    """Ask each place elsewhere, before there is a sweep, whether it could ever run the jobs of the first cell:
    UsageError or MissingError where it says no. Whoever gives no answer is waited for later."""
    first = plan.cells[0]
    for where in [parse_on(each) for each in on]:
        steps = [Slot(where.text).settled(step) for step in first.steps]
        requests = [job_request(step, "") for step in steps if not step.spec.inline and step.on == where.text]
        if requests and not where.is_local:
            executor_of(where).refuse([Need(gpus=each.gpus, command=tuple(each.command)) for each in requests])


def _slots(on: str, wanted: int | None, plan: Plan) -> list[Slot]:
    where = parse_on(on)
    if where.is_local:
        devices = _devices(plan)
        count = wanted or len(devices)
        return [Slot("local", devices[number % len(devices)]) for number in range(count)]
    return [Slot(on) for _ in range(wanted or min(USUAL[where.kind], len(plan.cells)))]


def _devices(plan: Plan) -> list[str]:
    """What `auto` stands for in each slot of this machine: one for each device, since a device measures one cell at a
    time; several without one where no step takes a device at all."""
    steps = [step for _, step in plan if step.spec.lease]
    if not steps:
        return [""] * max(1, min(LIGHT, len(os.sched_getaffinity(0))))
    asked = {str(getattr(step.request, step.spec.lease or "")) for step in steps}
    if "auto" not in asked:
        return [""] * max(1, len({parse_device(each) for each in asked}))
    gpus = list_devices().gpus
    return [f"cuda:{gpu.index}" for gpu in gpus] if len(gpus) > 1 else [""]
