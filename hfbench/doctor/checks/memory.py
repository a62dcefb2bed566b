"""Host memory: how much this process may take, shared memory, and whether the kernel had to end somebody."""

from __future__ import annotations

import re

from hfbench.doctor.check import Outcome, check, error, ok, saw, unknown, warning
from hfbench.doctor.system import System
from hfbench.units import GIB, MIB, show_bytes

SHARED = "/dev/shm"
DOCKER_SHARED = 64 * MIB
"""What Docker gives unless --shm-size says otherwise."""
ENOUGH_SHARED = GIB
HUGEPAGES = "/sys/kernel/mm/transparent_hugepage/enabled"
SWAPPINESS = "/proc/sys/vm/swappiness"
LITTLE = 4 * GIB
"""Memory below which no model of use is loaded."""


@check("memory.shared", "shared memory")
def shared(system: System) -> Outcome:
    """Data loader workers and NCCL pass tensors through /dev/shm and end with a bus error when it is full."""
    mount, room = system.mount(SHARED), system.room(system.at(SHARED))
    if mount is None or room is None or not system.exists(SHARED):
        return error(
            "there is no /dev/shm",
            saw("absent", SHARED),
            remedy="mount a tmpfs there, or start the container with --shm-size=8g",
        )
    seen = saw(f"{show_bytes(room.total)}, {show_bytes(room.free)} free, {mount.kind}", SHARED)
    if room.total <= DOCKER_SHARED:
        return warning(
            f"{show_bytes(room.total)}, a container's default",
            seen,
            remedy="start the container with --shm-size=8g or --ipc=host",
        )
    if min(room.total, room.free) < ENOUGH_SHARED:
        what = "small" if room.total < ENOUGH_SHARED else "almost full"
        remedy = (
            "give it more room (mount -o remount,size=8G /dev/shm)"
            if what == "small"
            else "remove files nobody uses from /dev/shm"
        )
        return warning(f"{show_bytes(room.free)} free of {show_bytes(room.total)}: {what}", seen, remedy=remedy)
    return ok(f"{show_bytes(room.free)} free of {show_bytes(room.total)}", seen)


@check("memory.group", "memory of the group")
def group(system: System) -> Outcome:
    """A limit of the container or job below what the machine shows ends a load by the kernel's hand."""
    total = system.meminfo.get("MemTotal", 0)
    if not total:
        return unknown("the machine does not tell its memory", saw("no MemTotal", "/proc/meminfo"))
    seen = [
        saw(
            f"{show_bytes(total)} in all, {show_bytes(system.meminfo.get('MemAvailable', 0))} available",
            "/proc/meminfo",
        )
    ]
    bound = system.cgroups.memory
    if bound is not None:
        seen.append(saw(show_bytes(bound.value), bound.where))
    if bound is not None and bound.value < 0.95 * total:
        return warning(
            f"{show_bytes(bound.value)} of the machine's {show_bytes(total)}",
            *seen,
            remedy="count with the limit, or ask for more: --memory of the container, --mem of the job",
        )
    if total < LITTLE:
        return warning(
            f"{show_bytes(total)} in all", *seen, remedy="models are read through host memory: use small ones"
        )
    return ok(f"{show_bytes(total)}, no tighter limit", *seen)


@check("memory.killed", "ended for want of memory")
def killed(system: System) -> Outcome:
    """The kernel ends a process without a word to it; the counter of the group remembers."""
    bound = system.cgroups.killed
    if bound is not None and bound.value > 0:
        return warning(
            f"processes of this group that the kernel ended: {bound.value:.0f}",
            saw(f"oom_kill {bound.value:.0f}", bound.where),
            remedy="load with less (dtype, batch), or ask for a higher memory limit",
        )
    counted = re.search(r"^oom_kill (\d+)", system.text("/proc/vmstat") or "", re.MULTILINE)
    if counted and int(counted[1]) > 0:
        return warning(
            f"processes that the kernel ended since the machine started: {counted[1]}",
            saw(f"oom_kill {counted[1]}", "/proc/vmstat"),
            remedy="see which with `dmesg | grep -i 'out of memory'`",
        )
    if bound is None and counted is None:
        return unknown("the kernel does not count", saw("no oom_kill", "/proc/vmstat"))
    return ok("nobody", saw("oom_kill 0", bound.where if bound is not None else "/proc/vmstat"))


@check("memory.swap", "swap")
def swap(system: System) -> Outcome:
    """Memory that is in use and on disk makes everything slow, measurements first."""
    total, free = system.meminfo.get("SwapTotal", 0), system.meminfo.get("SwapFree", 0)
    if not total:
        return ok("none", saw("SwapTotal 0", "/proc/meminfo"))
    used = total - free
    seen = (
        saw(f"{show_bytes(used)} of {show_bytes(total)} used", "/proc/meminfo"),
        saw(system.number(SWAPPINESS), SWAPPINESS),
    )
    if used > max(0.1 * total, GIB):
        return warning(
            f"{show_bytes(used)} in use",
            *seen,
            remedy="end what holds memory before you measure: `swapoff -a` brings it back",
        )
    return ok(f"{show_bytes(used)} of {show_bytes(total)} used", *seen)


@check("memory.hugepages", "transparent huge pages")
def hugepages(system: System) -> Outcome:
    """`never` makes large CPU tensors slower; `madvise` and `always` are both fine for them."""
    told = system.text(HUGEPAGES)
    chosen = re.search(r"\[(\w+)\]", told or "")
    if chosen is None:
        return ok("not a matter of this kernel", saw("absent", HUGEPAGES))
    seen = saw((told or "").strip(), HUGEPAGES)
    if chosen[1] == "never":
        return warning("never", seen, remedy=f"echo madvise | sudo tee {HUGEPAGES}")
    return ok(chosen[1], seen)
