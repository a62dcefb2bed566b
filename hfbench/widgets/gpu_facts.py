"""All that is known of one GPU, as facts: what is wrong first, then what it does, then who works on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass

from hfbench.actions.gpus_text import notes
from hfbench.gpu.reading import Unavailable, Value, known
from hfbench.gpu.telemetry import DeviceReading, GpuProcess
from hfbench.text import printable
from hfbench.units import show_bytes
from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.glyphs import Glyphs
from hfbench.widgets.gpu_tiles import UNREAD, load_line

HISTORY = 48
"""Signs of the line of past loads."""


def card_facts(device: DeviceReading, load: Sequence[float | None], glyphs: Glyphs) -> list[Fact]:
    """The facts of a card; a card that is lost has only its reason."""
    if device.reason:
        return [Fact("state", device.reason, "error")]
    found = [
        Fact("state", text, "error" if state == "error" else "warn")
        for text, state in notes(device)
        if state in ("warn", "error")
    ]
    facts = found or [Fact("state", "nothing holds it back", "ok")]
    facts += [Fact("slice", text) for text, state in notes(device) if state not in ("warn", "error")]
    dot = f" {glyphs.dot} "
    memory = device.memory
    facts.append(
        Fact(
            "memory",
            f"{_bytes(memory.used)} used{dot}{_bytes(memory.reserved)} reserved{dot}{_bytes(memory.free)} free"
            f"{dot}{_bytes(memory.total)} in all",
        )
    )
    busy = (
        f"{_number(device.utilization.gpu)}% of the time a kernel ran{dot}{_number(device.utilization.memory)}% memory"
    )
    facts.append(Fact("load", busy))
    if any(each is not None for each in load):
        facts.append(Fact("", load_line(load, HISTORY, glyphs), "muted"))
    clocks = (
        f"SM {_number(device.clock_sm)} of {_number(device.clock_sm_max)} MHz{dot}"
        f"memory {_number(device.clock_memory)} of {_number(device.clock_memory_max)} MHz"
    )
    facts.append(Fact("clocks", clocks))
    facts.append(Fact("power", f"{_number(device.power)} of {_number(device.power_limit)} W{dot}{_heat(device)}"))
    facts += _links(device, dot)
    facts += _errors(device, dot)
    facts += _processes(device)
    facts.append(Fact("UUID", _text(device.uuid)))
    facts += [Fact("unknown", each, "muted") for each in unknown(device)]
    return facts


def unknown(device: DeviceReading) -> list[str]:
    """Why values are unknown: one line a reason, with the values it costs."""
    costs: dict[str, list[str]] = {}
    for name, reason in _reasons(device):
        costs.setdefault(reason, []).append(name)
    return [f"{', '.join(names)}: {printable(reason)}" for reason, names in costs.items()]


def _reasons(record: object, under: str = "") -> Iterator[tuple[str, str]]:
    assert is_dataclass(record)
    for field in fields(record):
        value, name = getattr(record, field.name), (f"{under} {field.name}" if under else field.name).replace("_", " ")
        if isinstance(value, Unavailable):
            yield name, value.reason
        elif is_dataclass(value):
            yield from _reasons(value, field.name)


def _heat(device: DeviceReading) -> str:
    heat = f"{_number(device.temperature)} C"
    slows = known(device.temperature_limits.slowdown)
    hot = known(device.temperature_memory)
    heat += f", memory {hot:.0f} C" if hot is not None else ""
    return heat + (f", slows at {slows:.0f} C" if slows is not None else "")


def _links(device: DeviceReading, dot: str) -> Iterator[Fact]:
    pcie = device.pcie
    if not all(isinstance(each, Unavailable) for each in (pcie.generation, pcie.width, pcie.rx)):
        yield Fact(
            "PCIe",
            f"generation {_number(pcie.generation)} of {_number(pcie.generation_max)}{dot}"
            f"x{_number(pcie.width)} of x{_number(pcie.width_max)}{dot}"
            f"in {_bytes(pcie.rx)}/s{dot}out {_bytes(pcie.tx)}/s{dot}{_number(pcie.replays)} replays",
        )
    links = known(device.nvlink)
    if links is not None and links.active:
        up = sum(each is True for each in links.active)
        yield Fact("NVLink", f"{up} of {len(links.active)} links up{dot}{_number(links.crc_errors)} CRC errors")


def _errors(device: DeviceReading, dot: str) -> Iterator[Fact]:
    ecc, rows = device.ecc, device.rows
    enabled = known(ecc.enabled)
    if enabled is not None:
        counts = f"{_number(ecc.volatile_corrected)} corrected, {_number(ecc.volatile_uncorrected)} not"
        life = f"{_number(ecc.aggregate_corrected)} and {_number(ecc.aggregate_uncorrected)} over its life"
        yield Fact("ECC", f"on{dot}{counts}{dot}{life}" if enabled else "off")
    if known(rows.remapped_uncorrected) is not None:
        yield Fact("rows", f"{_number(rows.remapped_corrected)} + {_number(rows.remapped_uncorrected)} remapped")


def _processes(device: DeviceReading) -> Iterator[Fact]:
    processes: Iterable[GpuProcess] = known(device.processes) or ()
    for number, each in enumerate(sorted(processes, key=lambda each: not each.job)):
        who = f"job {each.job}" if each.job else _text(each.user)
        told = f"{each.pid} {_bytes(each.memory)} {'+'.join(each.kinds)} {who}: {_text(each.command)}"
        yield Fact("" if number else "processes", told)


def _number(value: Value) -> str:
    return UNREAD if isinstance(value, Unavailable) else f"{value:,.0f}"


def _bytes(value: Value) -> str:
    return UNREAD if isinstance(value, Unavailable) else show_bytes(value)


def _text(value: str | Unavailable) -> str:
    return UNREAD if isinstance(value, Unavailable) else printable(value)
