"""What the control groups of this process allow it, in versions 1 and 2 of their files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hfbench.doctor.system import System

ROOT = Path("/sys/fs/cgroup")
NO_LIMIT = 1 << 60
"""Version 1 writes a number beyond this where memory has no limit."""


@dataclass(frozen=True, kw_only=True)
class Bound:
    """The tightest bound of a group and those above it, and the file that says so."""

    value: float
    where: str


@dataclass(frozen=True, kw_only=True)
class Cgroups:
    """Memory in bytes, processors as a number of them, and processes the kernel killed for want of memory.

    None where there is no bound, or no such file.
    """

    memory: Bound | None = None
    processors: Bound | None = None
    killed: Bound | None = None


def read_cgroups(system: System) -> Cgroups:
    """The bounds of the groups this process is in, as far as they can be seen from here."""
    groups = _groups(system.text("/proc/self/cgroup") or "")
    unified = ROOT / "unified" if system.exists(ROOT / "unified") else ROOT
    return Cgroups(
        memory=_least(
            [_bytes(system, folder / "memory.max") for folder in _above(system, unified, groups.get("", "/"))]
            + [_bytes(system, folder / "memory.limit_in_bytes") for folder in _old(system, groups, "memory")]
        ),
        processors=_least(
            [_share(system, folder / "cpu.max") for folder in _above(system, unified, groups.get("", "/"))]
            + [_old_share(system, folder) for folder in _old(system, groups, "cpu")]
        ),
        killed=_killed(system, [*_above(system, unified, groups.get("", "/")), *_old(system, groups, "memory")]),
    )


def _groups(text: str) -> dict[str, str]:
    """Path of the group by controller; the one of version 2 has no name."""
    rows = [line.split(":", 2) for line in text.splitlines() if line.count(":") >= 2]
    return {name: path for _, names, path in rows for name in (names.split(",") if names else [""])}


def _above(system: System, root: Path, group: str) -> list[Path]:
    """The folder of a group and of all above it. In a container the path may lead nowhere: then the root is its own."""
    parts = [part for part in group.split("/") if part and part != ".."]
    folders = [root.joinpath(*parts[:length]) for length in range(len(parts), -1, -1)]
    return [folder for folder in folders if system.exists(folder)]


def _old(system: System, groups: dict[str, str], controller: str) -> list[Path]:
    return _above(system, ROOT / controller, groups.get(controller, "/")) if system.exists(ROOT / controller) else []


def _bytes(system: System, file: Path) -> Bound | None:
    told = system.number(file)
    return None if told is None or told >= NO_LIMIT else Bound(value=told, where=str(file))


def _share(system: System, file: Path) -> Bound | None:
    words = (system.text(file) or "").split()
    if len(words) != 2 or not all(word.isdecimal() for word in words) or int(words[1]) == 0:
        return None
    return Bound(value=int(words[0]) / int(words[1]), where=str(file))


def _old_share(system: System, folder: Path) -> Bound | None:
    quota, period = system.number(folder / "cpu.cfs_quota_us"), system.number(folder / "cpu.cfs_period_us")
    if quota is None or not period or quota <= 0:
        return None
    return Bound(value=quota / period, where=str(folder / "cpu.cfs_quota_us"))


def _killed(system: System, folders: list[Path]) -> Bound | None:
    """How many processes of the innermost group that counts them were killed."""
    for folder in folders:
        for name in ("memory.events", "memory.oom_control"):
            for line in (system.text(folder / name) or "").splitlines():
                word, _, count = line.partition(" ")
                if word == "oom_kill" and count.strip().isdecimal():
                    return Bound(value=int(count), where=str(folder / name))
    return None


def _least(bounds: list[Bound | None]) -> Bound | None:
    return min((bound for bound in bounds if bound is not None), key=lambda bound: bound.value, default=None)
