"""The machine as checks see it: files below a root, variables, commands, disks and cards. A test gives its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from hfbench.doctor.cgroups import Cgroups, read_cgroups
from hfbench.doctor.limits import Limit, read_limits
from hfbench.doctor.mounts import Mount, mount_of, read_mounts
from hfbench.doctor.pythons import Interpreter, read_pythons
from hfbench.paths import config_file, jobs_root, leases_root

if TYPE_CHECKING:
    from hfbench.gpu.reading import Value
    from hfbench.gpu.telemetry import GpuSnapshot

MOST_TEXT = 1 << 20
"""Bytes read of a file at most."""


@dataclass(frozen=True, kw_only=True)
class Ran:
    """A command that ended: its exit code and what it printed."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, kw_only=True)
class Room:
    """A file system: bytes and inodes, in all and free for this user. `inodes` is 0 where it counts none."""

    total: int
    free: int
    inodes: int
    inodes_free: int


def run_command(words: Sequence[str], seconds: float) -> Ran | None:
    """Run a command without input; None when it is not there or takes longer."""
    try:
        done = subprocess.run(
            list(words),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return Ran(code=done.returncode, out=done.stdout[:MOST_TEXT], err=done.stderr[:MOST_TEXT])


def room_of(folder: Path) -> Room | None:
    """How full the file system of a folder is; None when it cannot be told."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    return Room(
        total=found.f_blocks * found.f_frsize,
        free=found.f_bavail * found.f_frsize,
        inodes=found.f_files,
        inodes_free=found.f_favail,
    )


def stamp_of(folder: Path) -> float | None:
    """The time a file system gives to what is written now, in seconds since the epoch; None where nothing can be.

    The file it takes has no name, or loses it at once.
    """
    try:
        with TemporaryFile(dir=folder) as file:
            file.write(b"1")
            file.flush()
            return os.fstat(file.fileno()).st_mtime
    except OSError:
        return None


def read_gpus() -> GpuSnapshot:
    """One sample of all cards."""
    from hfbench.gpu.telemetry import Sampler

    sampler = Sampler()
    try:
        return sampler.sample()
    finally:
        sampler.close()


def read_default_power() -> dict[int, Value]:
    """The power limit in watts that each card comes with, by its index."""
    from hfbench.gpu.nvml import open_nvml
    from hfbench.gpu.reading import Unavailable

    nvml = open_nvml()
    if isinstance(nvml, Unavailable):
        return {}
    try:
        count, found = nvml.count(), dict[int, "Value"]()
        for index in range(0 if isinstance(count, Unavailable) else count):
            handle = nvml.read("nvmlDeviceGetHandleByIndex", index)
            told = handle if isinstance(handle, Unavailable) else _default_limit(nvml, handle)
            found[index] = told if isinstance(told, Unavailable) else told / 1000
        return found
    finally:
        nvml.close()


def _default_limit(nvml: object, handle: object) -> Value:
    told: Value = nvml.read("nvmlDeviceGetPowerManagementDefaultLimit", handle)  # type: ignore[attr-defined]
    return told


@dataclass(frozen=True, kw_only=True)
class System:
    """This machine and this process. Absolute paths are looked up below `root`; nothing is written."""

    root: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    cwd: Path = field(default_factory=Path.cwd)
    jobs: Path = field(default_factory=jobs_root)
    leases: Path = field(default_factory=leases_root)
    config: Path = field(default_factory=config_file)
    include: Path = field(default_factory=lambda: Path(sysconfig.get_path("include")))
    user: int = field(default_factory=os.geteuid)
    now: Callable[[], float] = time.time
    run: Callable[[Sequence[str], float], Ran | None] = run_command
    room: Callable[[Path], Room | None] = room_of
    stamp: Callable[[Path], float | None] = stamp_of
    gpus_read: Callable[[], GpuSnapshot] = read_gpus
    default_power_read: Callable[[], Mapping[int, Value]] = read_default_power
    pythons_read: Callable[[], Sequence[Interpreter]] = read_pythons

    def at(self, path: str | Path) -> Path:
        """Where a path of the machine lies."""
        absolute = Path(path) if Path(path).is_absolute() else self.cwd / path
        return self.root / absolute.relative_to("/")

    def text(self, path: str | Path) -> str | None:
        """The text of a file, at most a MiB of it; None when it cannot be read."""
        try:
            with open(os.open(self.at(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                return file.read(MOST_TEXT).decode("utf-8", "replace")
        except OSError:
            return None

    def number(self, path: str | Path) -> int | None:
        """The whole number a file holds; None when it holds none."""
        told = (self.text(path) or "").strip()
        return int(told) if told.lstrip("-").isdecimal() else None

    def names(self, folder: str | Path) -> list[str]:
        """The names in a folder, in order; none where there is no such folder."""
        try:
            return sorted(os.listdir(self.at(folder)))
        except OSError:
            return []

    def exists(self, path: str | Path) -> bool:
        """Whether something is there."""
        return os.path.lexists(self.at(path))

    def which(self, name: str) -> str | None:
        """The executable of a name on PATH."""
        for folder in filter(None, self.environ.get("PATH", os.defpath).split(os.pathsep)):
            if shutil.which(name, path=str(self.at(folder))):
                return str(Path(folder) / name)
        return None

    def nearest(self, path: str | Path) -> Path:
        """The path itself, or the nearest folder above it that is there: where it would be made."""
        given = Path(path) if Path(path).is_absolute() else self.cwd / path
        return next((each for each in (given, *given.parents) if self.at(each).exists()), Path("/"))

    def mount(self, path: str | Path) -> Mount | None:
        """The file system a path lies on, links followed; None when it cannot be told."""
        found = self.at(self.nearest(path)).resolve()
        inside = (
            Path("/") / found.relative_to(self.root.resolve()) if found.is_relative_to(self.root.resolve()) else found
        )
        return mount_of(inside, self.mounts)

    def variable(self, name: str) -> str:
        """An environment variable; empty when it is not set."""
        return self.environ.get(name, "")

    @property
    def home(self) -> Path:
        """The user's home folder."""
        return Path(self.variable("HOME") or "/root")

    @property
    def hub(self) -> Path:
        """The Hugging Face cache by the variables of this system."""
        from hfbench.models.reference import cache_folder

        told = str(cache_folder(self.environ))
        home = os.path.expanduser("~")  # what `expand` put in place of ~ is the home of this process
        return self.home / told.removeprefix(home).lstrip("/") if told.startswith(home) else Path(told)

    @property
    def temporary(self) -> Path:
        """Where temporary files are made."""
        return Path(next(filter(None, map(self.variable, ("TMPDIR", "TEMP", "TMP"))), "/tmp"))

    @cached_property
    def mounts(self) -> tuple[Mount, ...]:
        """All file systems this process sees."""
        return read_mounts(self.text("/proc/self/mountinfo") or "")

    @cached_property
    def limits(self) -> Mapping[str, Limit]:
        """The resource limits of this process by the kernel's names."""
        return read_limits(self.text("/proc/self/limits") or "")

    @cached_property
    def cgroups(self) -> Cgroups:
        """What the control groups of this process allow it."""
        return read_cgroups(self)

    @cached_property
    def gpus(self) -> GpuSnapshot:
        """The cards, read once."""
        return self.gpus_read()

    @cached_property
    def default_power(self) -> Mapping[int, Value]:
        """The power limit in watts each card comes with, read once."""
        return self.default_power_read()

    @cached_property
    def pythons(self) -> Sequence[Interpreter]:
        """This Python first, then those of the configuration; asked once."""
        return self.pythons_read()

    @cached_property
    def meminfo(self) -> Mapping[str, int]:
        """/proc/meminfo in bytes."""
        rows = (line.partition(":") for line in (self.text("/proc/meminfo") or "").splitlines())
        return {
            name: int(rest.split()[0]) * 1024
            for name, _, rest in rows
            if rest.split()[:1] and rest.split()[0].isdecimal()
        }
