"""GPU snapshots as text: rows for people, a page to watch, and CSV."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from hfbench.gpu.reading import Unavailable, Value
from hfbench.gpu.telemetry import DeviceReading, GpuProcess, GpuSnapshot
from hfbench.line_width import cut_end
from hfbench.text import clip, printable
from hfbench.units import GIB, show_bytes

BAR = 10
MOST_PROCESSES = 8
"""Shown of one card."""
PLAIN, MUTED, WARN, ERROR = "", "muted", "warn", "error"
SGR = {MUTED: "2", WARN: "33", ERROR: "31"}
"""Parameters of the escape sequence that paints a state."""

Line = tuple[str, str]
"""Text, and its state."""


def plain_lines(snapshot: GpuSnapshot) -> list[str]:
    """One row a card with what is wrong below it, as wide as the terminal."""
    if not snapshot.devices:
        return [cut_end(f"no GPU: {snapshot.reason}")]
    rows = [f"{'':>3} {'GPU':<26}{'used':>11}{'total':>11}{'util':>7}{'temp':>7}{'power':>9}"]
    for device in snapshot.devices:
        rows += [cut_end(text) for text, _ in _card(device)]
    return [*rows, cut_end(_foot(snapshot))]


def watch_lines(snapshot: GpuSnapshot, *, width: int, height: int, ascii: bool, color: bool) -> list[str]:
    """The page that `--watch` repaints: bars of memory and utilisation, what is wrong, and processes.

    What does not fit `height` lines goes in turn: processes, then all but one line a card, then the last cards.
    """
    clock = time.strftime("%H:%M:%S", time.localtime(snapshot.at))
    head: list[Line] = [(f"{clock}  {_foot(snapshot)}", MUTED)]
    if not snapshot.devices:
        head.append((f"no GPU: {snapshot.reason}", WARN))
    lines: list[Line] = []
    for detail in (_watched, _without_processes, _compact):
        lines = [*head, *(line for device in snapshot.devices for line in detail(device, ascii))]
        if len(lines) <= height:
            break
    else:
        hidden = len(lines) - height + 1
        lines = [*lines[: max(height - 1, 1)], (f"and {hidden} more GPUs: a taller terminal shows them", WARN)]
    ellipsis = "..." if ascii else "…"
    return [_painted(clip(text, width, ellipsis=ellipsis), style, color) for text, style in lines]


def csv_lines(snapshot: GpuSnapshot, *, header: bool) -> list[str]:
    """A row a card. Unknown values are empty, and the column `unknown` says why; units stand in the names."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if header:
        writer.writerow(["at", "demo", *COLUMNS, "unknown"])
    for device in snapshot.devices:
        values = {name: _of(device, path) for name, path in COLUMNS.items()}
        why = [f"{name}: {value.reason}" for name, value in values.items() if isinstance(value, Unavailable)]
        cells = ["" if isinstance(value, Unavailable) else _cell(value) for value in values.values()]
        writer.writerow([snapshot.at, _cell(snapshot.demo), *cells, "; ".join(why)])
    return out.getvalue().splitlines()


def notes(device: DeviceReading) -> Iterator[Line]:
    """What an operator should know of a card, worst first: losses, errors, throttling, a bad slot, old values."""
    if device.waiting:
        yield device.waiting, ERROR
    if device.stale:
        told = ", ".join(f"{name} {age:.0f} s" for name, age in device.stale.items())
        yield f"old values: {told}", WARN
    for xid in () if isinstance(device.xids, Unavailable) else device.xids[-3:]:
        yield f"Xid {xid.code}: {xid.meaning}", ERROR
    for name, count in (("volatile", device.ecc.volatile_uncorrected), ("aggregate", device.ecc.aggregate_uncorrected)):
        if _positive(count):
            yield f"{count:.0f} uncorrected ECC errors ({name})", ERROR
    if device.rows.remapping_failed is True:
        yield "a memory row could not be replaced", ERROR
    if device.rows.remapping_pending is True or device.rows.retirement_pending is True:
        yield "memory is to be taken out of use: reset the GPU", WARN
    if not isinstance(device.throttle, Unavailable) and device.throttle:
        yield f"slowed by: {', '.join(device.throttle)}", WARN
    if _less(device.pcie.width, device.pcie.width_max):
        yield f"PCIe x{device.pcie.width:.0f} of x{device.pcie.width_max:.0f}", WARN
    if not isinstance(device.nvlink, Unavailable) and False in device.nvlink.active:
        down = [str(link) for link, active in enumerate(device.nvlink.active) if active is False]
        yield f"NVLink down: {', '.join(down)}", WARN
    if not isinstance(device.mig.instances, Unavailable):
        for each in device.mig.instances:
            used, total = _bytes(each.memory_used), _bytes(each.memory_total)
            yield f"MIG {each.index}: {used} of {total}  {_text(each.uuid)}", MUTED


def _card(device: DeviceReading) -> Iterator[Line]:
    if device.reason:
        yield f"{device.index:>3} {device.reason}", ERROR
        return
    memory = device.memory
    yield (
        f"{device.index:>3} {clip(_text(device.name), 25):<26}{_bytes(memory.used):>11}{_bytes(memory.total):>11}"
        f"{_number(device.utilization.gpu, '%'):>7}{_number(device.temperature, 'C'):>7}"
        f"{_number(device.power, 'W'):>9}",
        PLAIN,
    )
    for text, style in notes(device):
        yield f"    {text}", style
    yield from _processes(device)


def _watched(device: DeviceReading, ascii: bool) -> Iterator[Line]:
    yield from _without_processes(device, ascii)
    yield from _processes(device)


def _without_processes(device: DeviceReading, ascii: bool) -> Iterator[Line]:
    if device.reason:
        yield f"{device.index:>3} {_text(device.name)}  {device.reason}", ERROR
        return
    yield f"{device.index:>3} {_text(device.name)}", PLAIN
    load = device.utilization.gpu
    yield (
        f"    mem {_bar(_share(device), ascii)} {_gib(device.memory.used)}/{_gib(device.memory.total)} GiB"
        f"  util {_bar(None if isinstance(load, Unavailable) else load / 100, ascii)} {_number(load, '%')}",
        PLAIN,
    )
    yield (
        f"    {_number(device.power, 'W')} of {_number(device.power_limit, 'W')}  {_number(device.temperature, 'C')}"
        f"  SM {_number(device.clock_sm, 'MHz')} of {_number(device.clock_sm_max, 'MHz')}"
        f"  mem {_number(device.clock_memory, 'MHz')}",
        PLAIN,
    )
    for text, style in notes(device):
        yield f"    {text}", style


def _compact(device: DeviceReading, ascii: bool) -> Iterator[Line]:
    """One line: the numbers first, the worst note last, which a narrow terminal cuts."""
    if device.reason:
        yield f"{device.index:>3} {device.reason}", ERROR
        return
    note, style = next(notes(device), ("", PLAIN))
    used, total = _gib(device.memory.used), _gib(device.memory.total)
    yield (
        f"{device.index:>3} {_bar(_share(device), ascii)} {f'{used}/{total} GiB':>15}"
        f"{_number(device.utilization.gpu, '%'):>7}{_number(device.temperature, 'C'):>6}"
        f"{_number(device.power, 'W'):>7}  {note}".rstrip(),
        style,
    )


def _processes(device: DeviceReading) -> Iterator[Line]:
    if isinstance(device.processes, Unavailable):
        return
    for each in device.processes[:MOST_PROCESSES]:
        yield f"    {_process(each)}", MUTED
    if len(device.processes) > MOST_PROCESSES:
        yield f"    and {len(device.processes) - MOST_PROCESSES} more processes", MUTED


def _process(each: GpuProcess) -> str:
    job = f"job {each.job}" if each.job else _text(each.user)
    return f"{each.pid:>7} {_bytes(each.memory):>9} {'+'.join(each.kinds)} {job}: {_text(each.command)}"


def _foot(snapshot: GpuSnapshot) -> str:
    if not snapshot.devices:
        return "demo" if snapshot.demo else "GPUs"
    late = f"; {snapshot.waiting}" if snapshot.waiting else ""
    demo = "demo: made-up cards; " if snapshot.demo else ""
    return f"{demo}driver {_text(snapshot.driver)}, CUDA {_text(snapshot.cuda)}{late}"


def _painted(text: str, style: str, color: bool) -> str:
    return f"\x1b[{SGR[style]}m{text}\x1b[0m" if style and color else text


def _bar(share: float | None, ascii: bool) -> str:
    full, empty = ("#", "-") if ascii else ("█", "░")
    if share is None:
        return "?" * BAR
    filled = round(max(0.0, min(share, 1.0)) * BAR)
    return full * filled + empty * (BAR - filled)


def _share(device: DeviceReading) -> float | None:
    """Of the memory, what is used; None where one of both is not known."""
    used, total = device.memory.used, device.memory.total
    if isinstance(used, Unavailable) or isinstance(total, Unavailable) or not total:
        return None
    return used / total


def _positive(value: Value) -> bool:
    return not isinstance(value, Unavailable) and value > 0


def _less(value: Value, most: Value) -> bool:
    return not isinstance(value, Unavailable) and not isinstance(most, Unavailable) and value < most


def _text(value: str | Unavailable) -> str:
    return printable(value.reason if isinstance(value, Unavailable) else value)


def _bytes(value: Value) -> str:
    return "n/a" if isinstance(value, Unavailable) else show_bytes(value)


def _gib(value: Value) -> str:
    return "n/a" if isinstance(value, Unavailable) else f"{value / GIB:.1f}"


def _number(value: Value, unit: str) -> str:
    return "n/a" if isinstance(value, Unavailable) else f"{value:.0f} {unit}"


COLUMNS: Mapping[str, str] = {
    "index": "index",
    "uuid": "uuid",
    "name": "name",
    "memory_used_bytes": "memory.used",
    "memory_reserved_bytes": "memory.reserved",
    "memory_free_bytes": "memory.free",
    "memory_total_bytes": "memory.total",
    "utilization_gpu_percent": "utilization.gpu",
    "utilization_memory_percent": "utilization.memory",
    "temperature_c": "temperature",
    "temperature_memory_c": "temperature_memory",
    "power_w": "power",
    "power_limit_w": "power_limit",
    "energy_j": "energy",
    "clock_sm_mhz": "clock_sm",
    "clock_sm_max_mhz": "clock_sm_max",
    "clock_memory_mhz": "clock_memory",
    "clock_memory_max_mhz": "clock_memory_max",
    "throttle": "throttle",
    "pcie_generation": "pcie.generation",
    "pcie_width": "pcie.width",
    "pcie_rx_bytes_per_s": "pcie.rx",
    "pcie_tx_bytes_per_s": "pcie.tx",
    "pcie_replays": "pcie.replays",
    "ecc_corrected": "ecc.volatile_corrected",
    "ecc_uncorrected": "ecc.volatile_uncorrected",
    "processes": "processes",
    "stale_s": "age",
    "reason": "reason",
}
"""Columns and the value each stands for; processes are their pids."""


def _of(device: DeviceReading, path: str) -> Any:
    value: Any = device
    for part in path.split("."):
        value = getattr(value, part)
    return value


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return " + ".join(_cell(each) for each in value)
    if is_dataclass(value):
        return str(getattr(value, fields(value)[0].name))
    return printable(str(value))
