"""The disks of models, jobs and temporary files: room, kind, clock and what may be run from them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from hfbench.doctor.check import Outcome, check, error, ok, saw, unknown, warning
from hfbench.doctor.mounts import Mount
from hfbench.doctor.system import System
from hfbench.units import GIB, MIB, show_bytes, show_elapsed

WANTED = {"models": (GIB, 10 * GIB), "jobs": (100 * MIB, GIB), "temporary files": (100 * MIB, GIB)}
"""Free bytes below which something fails, and below which it soon will."""
FEW_INODES = 10_000
SKEW = 2.0
"""Seconds a disk's clock may differ: file systems keep whole seconds, some only every second one."""

CLOSED = "nothing can be written"


def places(system: System) -> Mapping[str, Path]:
    """Folders that get large, by what lies in them."""
    return {"models": system.hub, "jobs": system.jobs, "temporary files": system.temporary}


@check("disks.room", "room")
def room(system: System) -> Outcome:
    """A disk that is full ends a download, a conversion or a build at its end."""
    full, scarce, seen = list[str](), list[str](), []
    for what, folder in places(system).items():
        found = system.room(system.at(system.nearest(folder)))
        if found is None:
            seen.append(saw("not told", folder))
            continue
        fails, soon = WANTED[what]
        seen.append(saw(f"{show_bytes(found.free)} free of {show_bytes(found.total)}", f"{folder} ({what})"))
        if found.free < soon:
            (full if found.free < fails else scarce).append(f"{show_bytes(found.free)} for {what}")
    remedy = "remove what can be fetched again (`hf cache delete`, `hfbench jobs remove`), or use another disk"
    if full:
        return error(f"only {', '.join([*full, *scarce])}", *seen, remedy=remedy)
    if scarce:
        return warning(f"only {', '.join(scarce)}", *seen, remedy=remedy)
    return ok("enough everywhere", *seen)


@check("disks.inodes", "number of files")
def inodes(system: System) -> Outcome:
    """A disk with room but without inodes says that it is full."""
    seen, none, few = [], list[str](), list[str]()
    for what, folder in places(system).items():
        found = system.room(system.at(system.nearest(folder)))
        if found is None or not found.inodes:
            continue
        seen.append(saw(f"{found.inodes_free:,} of {found.inodes:,} inodes free", f"{folder} ({what})"))
        if found.inodes_free < FEW_INODES:
            (few if found.inodes_free else none).append(what)
    if none or few:
        told = f"no more files can be made for {', '.join(none)}" if none else f"few more files for {', '.join(few)}"
        remedy = "find folders of many small files with `du --inodes -d2`, and remove what is not needed"
        return (error if none else warning)(told, *seen, remedy=remedy)
    return ok("enough everywhere", *seen)


@check("disks.writable", "writable")
def writable(system: System) -> Outcome:
    """A cache of another user or a disk mounted read-only fails at the first download."""
    closed, seen = [], []
    for what, folder in places(system).items():
        nearest, mount = system.nearest(folder), system.mount(folder)
        read_only = mount is not None and "ro" in mount.options
        seen.append(saw(f"{'read-only, ' if read_only else ''}{mount.kind if mount else 'kind not told'}", nearest))
        if read_only or not os.access(system.at(nearest), os.W_OK | os.X_OK):
            closed.append(f"{what} ({nearest})")
    if closed:
        remedy = "choose a folder of your own: HF_HOME for models, HFBENCH_HOME for jobs, TMPDIR for temporary files"
        return error(f"nothing can be written for {', '.join(closed)}", *seen, remedy=remedy)
    return ok("all", *seen)


@check("disks.memory", "kept in memory")
def in_memory(system: System) -> Outcome:
    """Models and results on a tmpfs take host memory, and are gone after a restart."""
    return _of_kind(
        system,
        lambda mount: mount.in_memory,
        told="in memory",
        remedy="set HF_HOME and HFBENCH_HOME to folders of a disk",
    )


@check("disks.network", "on the network")
def network(system: System) -> Outcome:
    """Locks of a network disk may bind one machine only, and mapped weights are read page by page."""
    return _of_kind(
        system,
        lambda mount: mount.network,
        told="on a network disk",
        remedy="keep jobs on a disk of this machine; copy models to one before you measure",
    )


@check("disks.clock", "clock of the disks")
def clock(system: System) -> Outcome:
    """A disk whose clock differs makes new files look old: caches and jobs are misjudged."""
    seen, off = [], []
    for what, folder in places(system).items():
        nearest, before = system.nearest(folder), system.now()
        told = system.stamp(system.at(nearest))
        if told is None:
            seen.append(saw(CLOSED, nearest))
            continue
        skew = told - system.now() if told > before else min(0.0, told - before)
        seen.append(saw(f"{skew:+.1f} s", nearest))
        if abs(skew) > SKEW:
            off.append(f"{what} by {show_elapsed(abs(skew))} {'ahead' if skew > 0 else 'behind'}")
    if off:
        return warning(
            f"differs for {', '.join(off)}", *seen, remedy="set the clock of the machine or of the file server"
        )
    if all(each.read == CLOSED for each in seen):
        return unknown("nothing can be written anywhere", *seen)
    return ok("agrees with the machine's", *seen)


@check("disks.noexec", "programs in tmp folders")
def noexec(system: System) -> Outcome:
    """torch.compile and Triton load libraries they just built; from a noexec disk that fails."""
    folders = {"TMPDIR": system.temporary}
    folders |= {
        name: Path(told) for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR") if (told := system.variable(name))
    }
    folders.setdefault("TRITON_CACHE_DIR", system.home / ".triton")
    seen, closed = [], []
    for name, folder in folders.items():
        mount = system.mount(folder)
        if mount is None:
            continue
        seen.append(
            saw(f"{mount.kind} at {mount.point}{', noexec' if 'noexec' in mount.options else ''}", f"{name} {folder}")
        )
        if "noexec" in mount.options:
            closed.append(name)
    if closed:
        remedy = f"set {' and '.join(closed)} to a folder from which programs may run"
        return error(f"{', '.join(closed)} lies on a disk mounted noexec", *seen, remedy=remedy)
    return ok("may be done", *seen)


def _of_kind(system: System, bad: Callable[[Mount], bool], *, told: str, remedy: str) -> Outcome:
    """Whether models or jobs lie on a kind of disk that is bad for them."""
    mounts = {what: system.mount(places(system)[what]) for what in ("models", "jobs")}
    found = {what: mount for what, mount in mounts.items() if mount is not None}
    seen = [saw(f"{mount.kind} at {mount.point}", f"{places(system)[what]} ({what})") for what, mount in found.items()]
    if not found:
        return unknown("the kinds of the disks are not told", saw("no row for them", "/proc/self/mountinfo"))
    if named := [f"{what} ({mount.kind})" for what, mount in found.items() if bad(mount)]:
        return warning(f"{told}: {' and '.join(named)}", *seen, remedy=remedy)
    return ok(f"none is {told}", *seen)
