"""Devices an action can run on: `cpu`, `cuda:N` and `auto`, found without torch."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hfbench.errors import MissingError, UsageError
from hfbench.gpu.nvml import Nvml, open_nvml
from hfbench.gpu.reading import Unavailable

VISIBLE = "CUDA_VISIBLE_DEVICES"
AUTO = "auto"
_DEVICE = re.compile(r"cpu|auto|cuda(?::(\d{1,4}))?")


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU as CUDA numbers it in this process; `lease` is the identity that all processes agree on."""

    index: int
    lease: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Inventory:
    """The GPUs a CUDA program started here would see, or the reason there are none."""

    gpus: tuple[Gpu, ...]
    reason: str

    @property
    def names(self) -> tuple[str, ...]:
        """What can be asked for: `cpu`, `cuda:0` and so on."""
        return ("cpu", *(f"cuda:{gpu.index}" for gpu in self.gpus))


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """What a field of a request stands for on this machine: a GPU, or None for the CPU."""

    gpu: Gpu | None
    why: str = ""
    """Why `auto` took the CPU, in a sentence; empty for all else."""

    @property
    def name(self) -> str:
        """`cpu` or `cuda:N`."""
        return f"cuda:{self.gpu.index}" if self.gpu else "cpu"

    @property
    def lease(self) -> str:
        """What a job holds while it uses the device: `cpu`, or the GPU's UUID whatever number it has here."""
        return self.gpu.lease if self.gpu else "cpu"


def parse_device(text: str) -> int | None:
    """The index of a CUDA device, or None for the CPU; `auto` asks for the first GPU.

    UsageError for anything else than `cpu`, `auto`, `cuda` and `cuda:N`.
    """
    match = _DEVICE.fullmatch(text.strip().lower())
    if match is None:
        raise UsageError(f"{text!r} is not a device", remedy="write cpu, cuda:0 or auto")
    return None if match[0] == "cpu" else int(match[1] or 0)


def choose_device(text: str, *, needs_gpu: bool = False) -> Chosen:
    """The device asked for; `auto` is the first GPU and, where there is none and the CPU can do it too, the CPU.

    MissingError when this machine has no such GPU.
    """
    index = parse_device(text)
    if index is None:
        return Chosen(gpu=None)
    auto = text.strip().lower() == AUTO
    if auto and (held := _settled.get(needs_gpu)):
        return held
    inventory = list_devices()
    for gpu in inventory.gpus:
        if gpu.index == index:
            return Chosen(gpu=gpu)
    if auto and not needs_gpu:
        return Chosen(gpu=None, why=f"device auto took the CPU, as there is no GPU: {inventory.reason}")
    shown = f"; {VISIBLE} is {os.environ[VISIBLE]!r}" if VISIBLE in os.environ else ""
    why = inventory.reason or f"this machine shows {len(inventory.gpus)}{shown}"
    raise MissingError(
        f"there is no GPU{'' if auto else f' {index}'}: {why}", where=text, remedy=f"use {', '.join(inventory.names)}"
    )


def settle_device(text: str, *, needs_gpu: bool = False) -> Chosen:
    """As `choose_device`, and `auto` means the same as long as this process lives: what a job runs on is what it holds.

    For workers, which do one job.
    """
    chosen = choose_device(text, needs_gpu=needs_gpu)
    if text.strip().lower() == AUTO:
        _settled[needs_gpu] = chosen
    return chosen


_settled: dict[bool, Chosen] = {}
"""What `auto` was settled to in this process, by whether it had to be a GPU."""


def list_devices() -> Inventory:
    """All GPUs in the order CUDA numbers them here, with CUDA_DEVICE_ORDER=PCI_BUS_ID."""
    nvml = open_nvml()
    if isinstance(nvml, Unavailable):
        return Inventory(gpus=(), reason=nvml.reason)
    try:
        found = _driver_order(nvml)
    finally:
        nvml.close()
    if isinstance(found, Unavailable):
        return Inventory(gpus=(), reason=found.reason)
    visible = visible_gpus(found, os.environ.get(VISIBLE))
    gpus = tuple(Gpu(index=number, lease=gpu.lease, name=gpu.name) for number, gpu in enumerate(visible))
    hidden = f"{VISIBLE} hides all {len(found)} GPUs" if found else "the driver shows no GPU to this process"
    return Inventory(gpus=gpus, reason="" if gpus else hidden)


def _driver_order(nvml: Nvml) -> list[Gpu] | Unavailable:
    count = nvml.count()
    if isinstance(count, Unavailable):
        return count
    gpus = []
    for index in range(count):
        handle = nvml.read("nvmlDeviceGetHandleByIndex", index)
        uuid: str | Unavailable = handle if isinstance(handle, Unavailable) else nvml.text("nvmlDeviceGetUUID", handle)
        name: str | Unavailable = handle if isinstance(handle, Unavailable) else nvml.text("nvmlDeviceGetName", handle)
        lease = f"gpu-{index}" if isinstance(uuid, Unavailable) else uuid
        gpus.append(Gpu(index=index, lease=lease, name=name.reason if isinstance(name, Unavailable) else name))
    return gpus


def visible_gpus(gpus: Sequence[Gpu], setting: str | None) -> list[Gpu]:
    """The GPUs CUDA keeps: numbers or UUID prefixes, and nothing after the first entry that names none."""
    if setting is None:
        return list(gpus)
    kept: list[Gpu] = []
    for entry in (part.strip() for part in setting.split(",")):
        gpu = _named(gpus, entry)
        if gpu is None:
            break
        kept.append(gpu)
    return kept


def _named(gpus: Sequence[Gpu], entry: str) -> Gpu | None:
    if entry.isdecimal():
        return gpus[int(entry)] if int(entry) < len(gpus) else None
    if entry.startswith("MIG-"):
        return Gpu(index=0, lease=entry, name=f"MIG instance {entry}")  # a slice is leased by its own UUID
    matching = [gpu for gpu in gpus if entry.startswith("GPU-") and gpu.lease.startswith(entry)]
    return matching[0] if len(matching) == 1 else None
