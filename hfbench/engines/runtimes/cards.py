"""The cards a model would run on: those of this machine, or one that is named, with memory and compute capability."""

from __future__ import annotations

from dataclasses import dataclass

from hfbench.engines.runtimes.precision import table
from hfbench.errors import UsageError
from hfbench.estimate.devices import Device, find_device
from hfbench.text import printable


@dataclass(frozen=True, kw_only=True)
class Cards:
    """Cards of one kind. `present` counts those of this machine, None where the kind is only named.

    `capability` is empty where it is not known; `why` says why there is no card, or what was taken for one.
    """

    device: Device | None = None
    capability: str = ""
    present: int | None = None
    why: str = ""

    @property
    def name(self) -> str:
        """What to call them."""
        return self.device.name if self.device else "no GPU"


def cards_named(text: str) -> Cards:
    """The kind that a person names, as for `fit`; UsageError when there is none."""
    device = find_device(text)
    return Cards(device=device, capability=capability_of(device.name), why=device.note)


def cards_here() -> Cards:
    """The GPUs of this machine as the driver lists them; of several kinds the one with the least memory."""
    from hfbench.gpu.reading import Unavailable
    from hfbench.gpu.telemetry import Sampler

    sampler = Sampler()
    try:
        snapshot = sampler.sample()
    finally:
        sampler.close()
    seen = [each for each in snapshot.devices if not each.reason and not isinstance(each.memory.total, Unavailable)]
    if not seen:
        return Cards(present=0, why=snapshot.reason or "no GPU tells its memory")
    least = min(seen, key=lambda each: int(each.memory.total))  # type: ignore[arg-type]
    told = least.compute_capability
    device = Device(
        name=printable(str(least.name)),
        memory_bytes=int(least.memory.total),  # type: ignore[arg-type]
        source="the driver of this machine",
    )
    capability = "" if isinstance(told, Unavailable) else str(told)
    return Cards(device=device, capability=capability, present=len(seen))


def capability_of(name: str) -> str:
    """The compute capability of a kind of card by the words of its name; empty where the tables do not tell it."""
    from hfbench.gpu.kernels.architectures import architectures

    known = {
        card: f"{each.number // 10}.{each.number % 10}" for each in architectures().values() for card in each.cards
    }
    known |= table()["cards"]
    words = set(_words(name))
    fitting = [card for card in known if set(_words(card)) <= words]
    return known[max(fitting, key=len)] if fitting else ""


def given_capability(text: str) -> str:
    """A compute capability as a person writes it; UsageError when it is none."""
    head, dot, tail = text.strip().partition(".")
    if dot and head.isdecimal() and tail.isdecimal() and len(head) < 4 and len(tail) < 3:
        return f"{int(head)}.{int(tail)}"
    raise UsageError(f"{text[:20]!r} is no compute capability", remedy="write it as 9.0")


def _words(name: str) -> list[str]:
    return name.lower().replace("-", " ").split()
