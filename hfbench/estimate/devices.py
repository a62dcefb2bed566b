"""GPUs by name, with the memory their driver reports: `devices.toml` says from where each figure is."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from hfbench.errors import UsageError
from hfbench.text import did_you_mean
from hfbench.units import MIB, UNITS, convert, parse_quantity


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
        )
        for row in read["device"]
    )


def find_device(text: str) -> Device:
    """The kind whose name holds all the words given, the first of several; or a size of memory such as `24 GiB`.

    UsageError when there is none.
    """
    wanted = set(_words(text))
    if not wanted:
        raise UsageError("a GPU needs a name", remedy="write for example H100, or a size such as 24GiB")
    for device in devices():
        if wanted <= set(_words(device.name)):
            return device
    if re.match(r"\s*\d", text):
        number, unit = parse_quantity(text)
        if unit is not None and UNITS[unit][0] == "bytes" and number >= 1:
            size = int(convert(number, unit, "B"))
            return Device(name=f"a GPU of {text.strip()}", memory_bytes=size, source="as given")
    near = did_you_mean(text, [device.name for device in devices()])
    known = ", ".join(dict.fromkeys(_words(device.name)[0].upper() for device in devices()))
    raise UsageError(
        f"{text[:40]!r} is not a GPU known here", remedy=near or f"known: {known}; or a size such as 24GiB"
    )


def _words(text: str) -> list[str]:
    parts = re.findall(r"[a-z0-9.]+", text.lower())
    return [word for word in parts if word not in ("nvidia", "amd", "geforce", "instinct", "gpu", "tesla")]
