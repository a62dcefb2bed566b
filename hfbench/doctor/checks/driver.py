"""The NVIDIA driver: loaded, whole, reachable, and new enough for the CUDA of every torch."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from hfbench.doctor.check import Outcome, check, error, ok, saw, some, warning
from hfbench.doctor.system import System
from hfbench.gpu.nvml import REASONS
from hfbench.gpu.reading import known
from hfbench.models.problem import counted

KERNEL_VERSION = "/proc/driver/nvidia/version"
MODULES = "/proc/modules"
NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm")
LEAST_DRIVER = {11: (450, 80, 2), 12: (525, 60, 13), 13: (580, 65, 6)}
"""First driver that runs programs of a CUDA major version, by the minor version compatibility of NVIDIA's release
notes: https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html"""
LIBRARIES = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/lib/wsl/lib",
)
COMPAT = ("/usr/local/cuda/compat", "/usr/local/cuda/compat/lib")

_VERSION = re.compile(r"\b(\d{3,4}\.\d+(?:\.\d+)?)\b")
_LIBRARY = re.compile(r"lib(?:cuda|nvidia-ml)\.so\.(\d{3,4}\.\d+(?:\.\d+)?)")


def kernel_driver(system: System) -> str:
    """The version of the loaded kernel module; empty when none is loaded."""
    found = _VERSION.search((system.text(KERNEL_VERSION) or "").partition("\n")[0])
    return found[1] if found else ""


def has_card(system: System) -> bool:
    """Whether an NVIDIA card is on the PCI bus, by its vendor and a display class: with or without a driver."""
    bus = "/sys/bus/pci/devices"
    return any(
        (system.text(f"{bus}/{name}/vendor") or "").strip() == "0x10de"
        and (system.text(f"{bus}/{name}/class") or "").startswith("0x03")
        for name in system.names(bus)
    )


def numbers(version: str) -> tuple[int, ...]:
    """`580.65.06` as numbers that compare."""
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


@check("driver.loaded", "driver loaded", limit=15.0)
def loaded(system: System) -> Outcome:
    """Without the kernel module every CUDA program says that there is no device."""
    kernel, gpus = kernel_driver(system), system.gpus
    if kernel or gpus.devices:
        told = known(gpus.driver) or kernel
        return ok(f"{told}, {counted(len(gpus.devices), 'card')}" if gpus.devices else told, saw(told, KERNEL_VERSION))
    seen = saw(gpus.reason, "NVML")
    if not has_card(system):
        return ok("there is no NVIDIA card, and none is needed", seen, saw("no NVIDIA card", "/sys/bus/pci/devices"))
    return error(
        "an NVIDIA card is there and its driver is not loaded",
        seen,
        saw("absent", KERNEL_VERSION),
        remedy="install the NVIDIA driver, or load it with `modprobe nvidia`; in a container start it with --gpus all",
    )


@check("driver.mismatch", "library and kernel module", limit=15.0)
def mismatch(system: System) -> Outcome:
    """After an upgrade without a restart NVML and CUDA refuse: driver/library version mismatch."""
    kernel = kernel_driver(system)
    if not kernel:
        return ok("no kernel module is loaded")
    files = {match[1]: f"{folder}/{name}" for folder, name, match in _driver_files(system, LIBRARIES)}
    seen = (saw(kernel, KERNEL_VERSION), *(saw(version, file) for version, file in files.items()))
    told = system.gpus.reason == REASONS[18]
    if told or (files and kernel not in files):
        libraries = some(sorted(files)) or "another version"
        return error(
            f"the kernel module is {kernel}, the libraries are {libraries}",
            *seen,
            *([saw(system.gpus.reason, "NVML")] if told else []),
            remedy="restart the machine, or unload and load the nvidia modules; in a container, restart it",
        )
    return ok(f"both are {kernel}" if files else f"{kernel}; no library to compare in the usual folders", *seen)


@check("driver.cuda", "driver for torch's CUDA", limit=90.0)
def cuda(system: System) -> Outcome:
    """A driver older than the CUDA of torch makes torch.cuda.is_available() false, or kernels fail to load."""
    kernel, supported = kernel_driver(system) or known(system.gpus.driver) or "", known(system.gpus.cuda) or ""
    if not kernel:
        return ok("no driver, nothing to compare")
    built = [each for each in system.pythons if each.told.torch is not None and each.told.torch.cuda]
    if not built:
        return ok(f"driver {kernel}; no torch built for CUDA", saw(kernel, KERNEL_VERSION))
    seen = [saw(f"driver {kernel}, CUDA {supported or 'not told'}", f"{KERNEL_VERSION}, NVML")]
    seen += [
        saw(f"torch {each.told.torch.version}, CUDA {each.told.torch.cuda}", each.name)
        for each in built
        if each.told.torch
    ]
    old, limited = [], []
    for each in built:
        needed = numbers(each.told.torch.cuda if each.told.torch else "")
        least = LEAST_DRIVER.get(needed[0] if needed else 0, ())
        if least and numbers(kernel) < least:
            old.append(f"{each.name} needs {'.'.join(map(str, least))}")
        elif supported and needed > numbers(supported):
            limited.append(f"{each.name} has CUDA {'.'.join(map(str, needed))}")
    if old and not any(True for _ in _driver_files(system, (*COMPAT, *_library_path(system)))):
        return error(
            f"driver {kernel} is too old: {some(old)}",
            *seen,
            remedy="upgrade the driver, or install a torch of an older CUDA",
        )
    if old or limited:
        return warning(
            f"driver {kernel} is of CUDA {supported or 'an older version'}: {some([*old, *limited])}",
            *seen,
            remedy="code that is compiled at load (PTX, Triton with a newer ptxas) may be refused: upgrade the driver",
        )
    return ok(
        f"driver {kernel} (CUDA {supported or 'not told'}) serves {counted(len(built), 'Python')} with CUDA", *seen
    )


@check("driver.compat", "forward compatibility", limit=15.0)
def compat(system: System) -> Outcome:
    """A compat libcuda older than the driver, found first, makes CUDA fail with error 803."""
    kernel = kernel_driver(system)
    found = {
        f"{folder}/{name}": match[1]
        for folder, name, match in _driver_files(system, _library_path(system))
        if "libcuda" in name
    }
    if not kernel or not found:
        return ok("none is in the way")
    older = {file: version for file, version in found.items() if numbers(version) < numbers(kernel)}
    seen = (saw(kernel, KERNEL_VERSION), *(saw(version, file) for file, version in found.items()))
    if older:
        return error(
            f"LD_LIBRARY_PATH finds libcuda {some(older.values())} before that of the driver, {kernel}",
            *seen,
            remedy="take the compat folder out of LD_LIBRARY_PATH: the driver is newer and needs none",
        )
    if all(version == kernel for version in found.values()):
        return ok("libcuda on LD_LIBRARY_PATH is the driver's", *seen)
    return warning(
        f"libcuda {some(found.values())} of a compat package runs on driver {kernel}",
        *seen,
        remedy="this works on data centre cards only; elsewhere upgrade the driver instead",
    )


@check("driver.nouveau", "nouveau")
def nouveau(system: System) -> Outcome:
    """The free driver holds the card, so that NVIDIA's cannot bind it."""
    rows = (system.text(MODULES) or "").splitlines()
    if any(row.startswith("nouveau ") for row in rows):
        return error(
            "the nouveau driver is loaded",
            saw("nouveau", MODULES),
            remedy="blacklist nouveau in /etc/modprobe.d, rebuild the initramfs and restart",
        )
    return ok("is not loaded", saw(counted(len(rows), "module"), MODULES))


@check("driver.nodes", "device nodes")
def nodes(system: System) -> Outcome:
    """A container or a user without access to /dev/nvidia* sees the driver and no card."""
    if not kernel_driver(system):
        return ok("no driver, none needed")
    cards = [f"/dev/{name}" for name in system.names("/dev") if re.fullmatch(r"nvidia\d+", name)]
    absent = [node for node in NODES if not system.exists(node)] + ([] if cards else ["/dev/nvidia0"])
    closed = [
        node for node in (*NODES, *cards) if system.exists(node) and not os.access(system.at(node), os.R_OK | os.W_OK)
    ]
    seen = [saw(some(cards) or "no card", "/dev")]
    if closed:
        return error(
            f"{some(closed)} cannot be opened by user {system.user}",
            *seen,
            remedy="add the user to the group that owns them (often video or render), or mend the udev rule",
        )
    if absent:
        return error(
            f"{some(absent)} is not there",
            *seen,
            remedy="run `nvidia-modprobe -u -c 0`, or start the container with --gpus all",
        )
    return ok(f"{counted(len(cards), 'card')} can be opened", *seen)


def _driver_files(system: System, folders: tuple[str, ...]) -> Iterator[tuple[str, str, re.Match[str]]]:
    """Libraries of the driver with their version in the name, by folder."""
    for folder in folders:
        for name in system.names(folder):
            if match := _LIBRARY.fullmatch(name):
                yield folder, name, match


def _library_path(system: System) -> tuple[str, ...]:
    return tuple(part for part in system.variable("LD_LIBRARY_PATH").split(":") if part.startswith("/"))
