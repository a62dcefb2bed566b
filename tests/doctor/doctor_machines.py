"""Machines that checks look at: a healthy one as a tree of files, and what a test changes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpu_readings import snapshot

from hfbench.doctor.pythons import Interpreter
from hfbench.doctor.system import Ran, Room, System
from hfbench.environments.probed import Probed, Torch
from hfbench.units import GIB

MOUNTS = {"/": "ext4", "/proc": "proc", "/dev/shm": "tmpfs", "/tmp": "ext4"}
LIMITS = {
    "Max open files": "65536 524288",
    "Max processes": "96549 96549",
    "Max locked memory": "unlimited unlimited",
    "Max core file size": "0 unlimited",
}
HEALTHY = {
    "/proc/modules": "ext4 1000 1 - Live 0x0\n",
    "/proc/self/status": "Name:\tpython\nCpus_allowed_list:\t0-7\n",
    "/proc/self/cgroup": "0::/user.slice\n",
    "/proc/meminfo": "MemTotal: 67108864 kB\nMemAvailable: 60000000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n",
    "/proc/vmstat": "nr_free_pages 1\noom_kill 0\n",
    "/proc/sys/kernel/core_pattern": "core\n",
    "/sys/devices/system/cpu/online": "0-7\n",
    "/sys/devices/system/node/node0/cpulist": "0-3\n",
    "/sys/devices/system/node/node1/cpulist": "4-7\n",
    "/sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "/sys/fs/cgroup/memory.max": "max\n",
    "/usr/bin/g++": "#!/bin/sh\n",
    "/usr/bin/gcc": "#!/bin/sh\n",
    "/usr/include/python3.11/Python.h": "",
    "/home/me/work/notes.txt": "",
    "/home/me/.cache/huggingface/hub/version.txt": "1",
    "/tmp/x": "",
    "/dev/shm/x": "",
}
DRIVER = {
    "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27\n",
    "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.65.06": "",
    "/usr/lib/x86_64-linux-gnu/libcuda.so.580.65.06": "",
    "/dev/nvidiactl": "",
    "/dev/nvidia-uvm": "",
    "/dev/nvidia0": "",
}
ENVIRON = {"PATH": "/usr/bin", "HOME": "/home/me", "USER": "me", "LANG": "C.UTF-8", "TERM": "xterm-256color"}


def python(name: str = "here", *, torch: Torch | None = None, trouble: str = "", **versions: str) -> Interpreter:
    """An interpreter that answered, unless `trouble` says that it did not."""
    if torch is not None:
        versions["torch"] = torch.version
    silent = trouble and not versions
    told = Probed(
        python="" if silent else versions.pop("python", "3.11.9"),
        versions={key.replace("_", "-"): value for key, value in versions.items()},
        folders=(f"/opt/{name}/site-packages",),
        torch=torch,
        trouble=trouble,
    )
    return Interpreter(name=name, command=(f"/opt/{name}/bin/python",), told=told)


def cuda_torch(cuda: str = "13.0", *arches: str) -> Torch:
    """A torch for these architectures."""
    return Torch(version="2.9.0", cuda=cuda, arch_list=arches or ("sm_80", "sm_90", "sm_100", "compute_120"))


def build(
    root: Path,
    *,
    files: Mapping[str, str | None] = {},
    environ: Mapping[str, str] = {},
    mounts: Mapping[str, str] = {},
    limits: Mapping[str, str] = {},
    cards: Sequence[Any] = (),
    no_cards: str = "the NVIDIA driver is not loaded",
    commands: Mapping[str, Ran] = {},
    rooms: Mapping[str, Room] = {},
    pythons: Sequence[Interpreter] | None = None,
    default_power: Mapping[int, Any] = {},
    skew: float | None = 0.0,
    cwd: str = "/home/me/work",
) -> System:
    """A machine below `root`: `files` are added to a healthy one, and taken from it where their text is None."""
    told = {
        "/proc/self/mountinfo": "".join(map(_mount_row, (MOUNTS | mounts).items())),
        "/proc/self/limits": "Limit  Soft  Hard\n" + "".join(map(_limit_row, (LIMITS | limits).items())),
    }
    for name, text in {**HEALTHY, **told, **files}.items():
        if text is not None:
            file = root / name.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            file.chmod(0o755)
    for folder in ("/home/me/work", "/tmp", "/dev/shm", "/jobs", "/leases"):
        if files.get(folder, "") is not None:
            (root / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
    plenty = Room(total=1000 * GIB, free=500 * GIB, inodes=10**8, inodes_free=10**7)
    by_place = {root / name.lstrip("/"): room for name, room in rooms.items()}
    return System(
        root=root,
        environ=ENVIRON | environ,
        cwd=Path(cwd),
        include=Path("/usr/include/python3.11"),
        jobs=Path("/jobs"),
        leases=Path("/leases"),
        config=Path("/home/me/.config/hfbench/config.toml"),
        user=1000,
        now=lambda: 1000.0,
        run=lambda words, seconds: commands.get(words[0]),
        room=lambda folder: by_place.get(folder, plenty),
        stamp=lambda folder: None if skew is None else 1000.0 + skew,
        gpus_read=lambda: snapshot(*cards, reason="" if cards else no_cards),
        default_power_read=lambda: default_power,
        pythons_read=lambda: (python(),) if pythons is None else tuple(pythons),
    )


def _mount_row(mount: tuple[str, str]) -> str:
    kind, _, options = mount[1].partition(",")
    return f"25 1 8:1 / {mount[0]} rw,{options or 'relatime'} shared:1 - {kind} /dev/sda rw\n"


def _limit_row(limit: tuple[str, str]) -> str:
    soft, hard = limit[1].split()
    return f"{limit[0]:<26}{soft:<21}{hard:<21}units\n"
