"""What the driver counts, as pictures: a device, a process on it, and what job works there."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.gpu.explain.picture import MemoryPicture, OtherProcess
from hfbench.gpu.reading import known
from hfbench.gpu.telemetry import DeviceReading, GpuProcess, GpuSnapshot


def device_picture(device: DeviceReading, pid: int | None = None, *, slice: str = "") -> MemoryPicture:
    """A device as seen by process `pid`, or by nobody in particular; `slice` is the UUID of a MIG instance.

    Processes are those of the whole card: the driver lists them so to whoever may not look into slices.
    """
    card_total = _whole(device.memory.total)
    own = [each for each in _processes(device) if each.pid == pid]
    cut = next((each for each in _slices(device) if slice and each[0] == slice), None)
    total, free = (cut[1], cut[2]) if cut else (card_total, _whole(device.memory.free))
    return MemoryPicture(
        device=f"cuda:{device.index}",
        card=known(device.name) or "",
        total=total,
        card_total=card_total if cut else None,
        free=free,
        driver=None if cut else _whole(device.memory.reserved),
        process_used=_whole(own[0].memory) if own else None,
        others=tuple(
            OtherProcess(pid=each.pid, bytes=_whole(each.memory), who=_who(each))
            for each in _processes(device)
            if each.pid != pid
        ),
    )


def unread(device: DeviceReading) -> tuple[str, ...]:
    """Why parts of a device's picture are not known."""
    if device.reason:
        return (device.reason,)
    told = {"memory": device.memory.total, "processes": device.processes}
    return tuple(f"{name}: {value.reason}" for name, value in told.items() if hasattr(value, "reason"))


def devices_of(snapshot: GpuSnapshot, pid: int) -> list[DeviceReading]:
    """The devices on which a process holds memory."""
    return [device for device in snapshot.devices if any(each.pid == pid for each in _processes(device))]


def find_reading(snapshot: GpuSnapshot, lease: str) -> tuple[DeviceReading, str] | None:
    """The device a lease names and the slice of it, if it names one; None for what is not here."""
    for device in snapshot.devices:
        if device.uuid == lease:
            return device, ""
        if any(uuid == lease for uuid, _, _ in _slices(device)):
            return device, lease
    return None


def _processes(device: DeviceReading) -> tuple[GpuProcess, ...]:
    return known(device.processes) or ()


def _slices(device: DeviceReading) -> Iterator[tuple[str, int | None, int | None]]:
    """UUID, total and free bytes of each slice."""
    for each in known(device.mig.instances) or ():
        total, used = _whole(each.memory_total), _whole(each.memory_used)
        yield known(each.uuid) or "", total, None if total is None or used is None else max(0, total - used)


def _who(process: GpuProcess) -> str:
    command = known(process.command) or ""
    words = command.split()
    program = words[0].rpartition("/")[2] if words else ""
    return f"job {process.job}" if process.job else ", ".join(filter(None, [known(process.user) or "", program]))


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, (int, float)) else None
