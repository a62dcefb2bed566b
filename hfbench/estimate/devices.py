"""GPUs by name, with the memory their driver reports: `devices.toml` says from where each figure is."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files

from hfbench.errors import UsageError
from hfbench.text import did_you_mean
from hfbench.units import MIB, TIB, UNITS, convert, show_bytes

MOST_MEMORY = 16 * TIB
"""No GPU comes near; a larger size is a slip of the hand."""

_BYTES = {unit.lower(): unit for unit, (dimension, _) in UNITS.items() if dimension == "bytes"}
_SIZE = re.compile(rf"\s*([0-9]+(?:\.[0-9]*)?(?:e\+?[0-9]{{1,3}})?)\s*({'|'.join(_BYTES)})\s*", re.IGNORECASE)
_COUNTED = re.compile(r"\s*([0-9]{1,6})\s*[x*]\s*([A-Za-z].*)", re.IGNORECASE | re.DOTALL)
_KIND = re.compile(r" (?:SXM|PCIe|NVL|\d+GB)")
"""Where the name of a model ends, and form and memory begin."""


@dataclass(frozen=True, kw_only=True)
class Device:
    """One kind of GPU. Bandwidth in bytes a second and bf16 in FLOP a second, dense; 0 where they are not known."""

    name: str
    memory_bytes: int
    bandwidth: float = 0.0
    bf16_flops: float = 0.0
    source: str = ""
    read: str = ""
    nominal: bool = False
    """The memory is that of the name: a driver tells a little less."""
    drivers: tuple[str, ...] = ()
    """Names under which drivers list it, where they are not words of `name`."""
    usual: bool = False
    """What the bare name of several means."""
    note: str = ""
    """What to tell about the choice."""


@lru_cache(maxsize=1)
def devices() -> tuple[Device, ...]:
    """Every kind in the table."""
    read = tomllib.loads((files("hfbench.estimate") / "devices.toml").read_text("utf-8"))
    return tuple(
        Device(
            name=row["name"],
            memory_bytes=row["memory_mib"] * MIB,
            bandwidth=row.get("bandwidth_gb_s", 0) * 1e9,
            bf16_flops=row.get("bf16_tflops", 0) * 1e12,
            source=row["source"],
            read=str(row["read"]),
            nominal=row.get("nominal", False),
            drivers=tuple(row.get("drivers", ())),
            usual=row.get("usual", False),
        )
        for row in read["device"]
    )


def find_device(text: str) -> Device:
    """The kind that a size such as `24 GiB`, a driver's name or words of a name mean.

    `note` says which was taken where the words fit several. UsageError when there is none, or several that differ.
    """
    if (size := _size(text)) is not None:
        return size
    if several := _COUNTED.fullmatch(text):
        name = several[2].strip()
        raise UsageError(
            f"{text[:40]!r} counts GPUs, and a GPU is named alone",
            remedy=f"name {name[:30]}, and divide the model by its ranks: tp={several[1]}",
        )
    wanted = _words(text)
    if not wanted:
        raise UsageError("a GPU needs a name", remedy="write for example H100, or a size such as 24GiB")
    for device in devices():
        if any(wanted == _words(name) for name in (device.name, *device.drivers)):
            return device
    return _chosen(text, [device for device in devices() if set(wanted) <= set(_words(device.name))])


def _size(text: str) -> Device | None:
    """A GPU of so much memory, None when the text is no size."""
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    number, unit = float(match[1]), _BYTES[match[2].lower()]
    size = convert(number, unit, "B")
    if not MIB <= size <= MOST_MEMORY:
        raise UsageError(
            f"{text[:40]!r} is no size of a GPU", remedy=f"write one from 1 MiB to {MOST_MEMORY // TIB} TiB"
        )
    note = (
        f"{number:g} GB are {show_bytes(size)}, a GPU named so has more: name it, or write GiB" if unit == "GB" else ""
    )
    return Device(name=f"{number:g} {unit} GPU", memory_bytes=int(size), source="as given", note=note)


def _chosen(text: str, found: list[Device]) -> Device:
    """The only one, the one that a bare name usually means, or the first of several with as much memory."""
    usual = next((device for device in found if device.usual), None)
    if len(found) == 1:
        return found[0]
    if found and (usual or len({device.memory_bytes for device in found}) == 1):
        taken = usual or found[0]
        others = ", ".join(device.name for device in found if device is not taken)
        return replace(taken, note=f"{text[:40]!r} is taken for {taken.name}; it also names {others}")
    if found:
        names = ", ".join(device.name for device in found)
        raise UsageError(f"{text[:40]!r} names GPUs of several sizes", remedy=f"write one of {names}")
    near = did_you_mean(text, [device.name for device in devices()])
    known = ", ".join(dict.fromkeys(" ".join(_KIND.split(device.name)[0].split()) for device in devices()))
    raise UsageError(
        f"{text[:40]!r} is not a GPU known here", remedy=near or f"known: {known}; or a size such as 24GiB"
    )


def _words(text: str) -> list[str]:
    parts = re.findall(r"[a-z0-9.]+", text.lower())
    return [word for word in parts if word not in ("nvidia", "amd", "geforce", "instinct", "gpu", "tesla")]
