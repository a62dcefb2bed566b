"""What this machine is, as far as engines depend on it: versions, processor and GPUs, with no library imported."""

from __future__ import annotations

import os
import platform
import re
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hfbench.engines.manifest import BuiltOn, GpuBuilt
from hfbench.engines.versions import numbers

if TYPE_CHECKING:
    from hfbench.environments import Probed
    from hfbench.gpu.nvml import Nvml

PATIENCE = 2.0
"""Seconds the driver may take to tell what cards there are."""

CPUINFO = Path("/proc/cpuinfo")

# What compilers use unasked with -march=native, which is how AOTInductor calls them, as /proc/cpuinfo spells it.
COMPILED_X86 = re.compile(
    "sse|sse2|pni|ssse3|sse4_1|sse4_2|sse4a|avx|avx2|avx512.*|avx_vnni.*|avx_ifma|avx_ne_convert|avx10.*|amx_.*"
    "|fma|fma4|xop|f16c|bmi1|bmi2|tbm|abm|popcnt|movbe|adx|cx16|lahf_lm"
)
COMPILED_ARM = re.compile(
    "asimd.*|fphp|atomics|uscat|crc32|jscvt|fcma|lrcpc|ilrcpc|sve.*|sme.*|bf16|i8mm|ebf16|flagm2?|frint|mops|cssc"
)

CORES_PER_SM = {"7.0": 64, "7.2": 64, "7.5": 64, "8.0": 64, "8.6": 128, "8.7": 128, "8.9": 128, "9.0": 128}
CORES_PER_SM |= {"10.0": 128, "10.3": 128, "11.0": 128, "12.0": 128, "12.1": 128}
"""CUDA cores of a multiprocessor by compute capability: NVML tells cores of a card, not multiprocessors."""

LEVELS = ("avx512f", "avx2", "sve", "asimd")
"""Widest vectors first."""

_CPU_NAME = re.compile(r"^(?:model name|Model)\s*:\s*(.+)$", re.MULTILINE)
_DIST = re.compile(r"(?P<name>[A-Za-z0-9_.]+?)-(?P<version>[0-9][^-]*)(?:-py\d[\d.]*)?\.(?:dist|egg)-info")
_TORCH_CUDA = re.compile(r"^cuda\b[^=]*= *'([\d.]+)'", re.MULTILINE)
_TORCH_VERSION = re.compile(r"^__version__\b[^=]*= *'([^']+)'", re.MULTILINE)
CXX11_SINCE = (2, 7)
"""Since this torch all builds for Linux use the newer C++ ABI; older ones only tell when they are imported."""
_MIG_PROFILE = re.compile(r"MIG (\S+)")


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The machine, and the Python whose libraries would load an engine."""

    versions: BuiltOn
    """In the terms of a manifest; `gpu` is None, as there may be several."""
    gpus: tuple[GpuBuilt, ...] = ()
    """In the order CUDA numbers them."""
    gpu_reason: str = ""
    """Why there are no GPUs, or why they are not known."""
    gpus_known: bool = True
    """False when the driver did not answer, or nobody asked it."""
    cuda_driver: str = ""
    """The newest CUDA the driver runs, such as `13.0`."""
    environment: str = ""
    """Name of the environment the versions are of; empty for this Python."""
    elsewhere: bool = False
    """Whether that environment may see another processor and other GPUs: it stands behind a command."""

    def built_on(self, index: int | None = None) -> BuiltOn:
        """What a manifest says of an engine built here, on a GPU or, without an index, for the CPU."""
        gpu = self.gpus[index] if index is not None and index < len(self.gpus) else None
        return replace(self.versions, gpu=gpu)


def read_machine(*, gpus: bool = True, environment: Probed | None = None, name: str = "") -> Machine:
    """The facts of this machine, with the versions of this Python or of an environment that was asked.

    Without `gpus` the driver is not asked: an engine of the CPU depends on none.
    """
    versions = _versions_of(environment) if environment else _versions_here()
    cpuinfo = _text(CPUINFO)
    isa = features_in(cpuinfo)
    cpu = _first(_CPU_NAME, cpuinfo) or platform.machine()
    host = replace(versions, platform=sys.platform, cpu=cpu, isa=isa, isa_level=level_of(isa))
    bare = Machine(versions=host, environment=name)
    if not gpus:
        return replace(bare, gpu_reason="the driver was not asked", gpus_known=False)
    return _with_gpus(bare)


def features_in(cpuinfo: str) -> tuple[str, ...]:
    """Features of the instruction set that compiled code may use, sorted, from the text of /proc/cpuinfo: those that
    all processors have."""
    found: set[str] | None = None
    for line in cpuinfo.splitlines():
        key, _, words = line.partition(":")
        kind = {"flags": COMPILED_X86, "Features": COMPILED_ARM}.get(key.strip())
        if kind:
            each = {word for word in words.split() if kind.fullmatch(word)}
            found = each if found is None else found & each
    return tuple(sorted(found or ()))


def level_of(isa: Iterable[str]) -> str:
    """The widest vectors among features: `avx512`, `avx2`, `sve`, `asimd`, or empty."""
    there = set(isa)
    return next((level.removesuffix("f") for level in LEVELS if level in there), "")


def distributions(folders: Iterable[str]) -> dict[str, str]:
    """Installed versions by distribution name in small letters with `-`: told by the names of folders alone.

    The first folder of a name counts, as it does for imports.
    """
    found: dict[str, str] = {}
    for folder in folders:
        try:
            entries = os.listdir(folder or ".")
        except OSError:
            continue
        for entry in entries:
            if entry.endswith("-info") and (match := _DIST.fullmatch(entry)):
                found.setdefault(re.sub(r"[-_.]+", "-", match["name"]).lower(), match["version"])
    return found


def _versions_here() -> BuiltOn:
    there = distributions(sys.path)
    torch = next((Path(folder) / "torch" for folder in sys.path if Path(folder, "torch", "version.py").is_file()), None)
    told = _text(torch / "version.py") if torch else ""
    version = _first(_TORCH_VERSION, told) or there.get("torch", "")
    return _from_distributions(
        there,
        python=platform.python_version(),
        torch=version,
        cuda=_first(_TORCH_CUDA, told),
        abi="cxx11" if numbers(version)[:2] >= CXX11_SINCE else "",
        machine=platform.machine(),
    )


def _versions_of(told: Probed) -> BuiltOn:
    torch = told.torch
    abi = {True: "cxx11", False: "pre-cxx11"}.get(torch.cxx11_abi, "") if torch and torch.cxx11_abi is not None else ""
    return _from_distributions(
        told.versions,
        python=told.python,
        torch=torch.version if torch else told.versions.get("torch", ""),
        cuda=torch.cuda if torch else "",
        abi=abi,
        machine=told.machine or platform.machine(),
    )


def _from_distributions(
    there: dict[str, str], *, python: str, torch: str, cuda: str, abi: str, machine: str
) -> BuiltOn:
    def of(*names: str) -> str:
        return next((there[name] for name in names if name in there), "")

    return BuiltOn(
        tensorrt=of("tensorrt", "tensorrt-cu13", "tensorrt-cu12"),
        tensorrt_llm=of("tensorrt-llm"),
        nccl=of("nvidia-nccl-cu13", "nvidia-nccl-cu12"),
        triton=of("triton", "pytorch-triton"),
        transformers=of("transformers"),
        onnxruntime=of("onnxruntime", "onnxruntime-gpu"),
        openvino=of("openvino"),
        python=python,
        torch=torch,
        cuda=cuda,
        abi=abi,
        machine=machine,
    )


def _with_gpus(bare: Machine) -> Machine:
    """The machine with what its driver tells; a driver that hangs is a reason, and is not waited for."""
    found: list[Machine] = []
    # A daemon of its own, as a call of the driver may never return; the sampler's patience costs 20 ms to import.
    asking = threading.Thread(target=lambda: found.append(_asked(bare)), daemon=True, name="hfbench-engines")
    asking.start()
    asking.join(PATIENCE)
    if found:
        return found[0]
    return replace(bare, gpu_reason=f"the driver has not answered for {PATIENCE:.0f} s", gpus_known=False)


def _asked(bare: Machine) -> Machine:
    from hfbench.gpu.devices import list_devices
    from hfbench.gpu.nvml import open_nvml
    from hfbench.gpu.reading import Unavailable, known

    nvml = open_nvml()
    if isinstance(nvml, Unavailable):
        return replace(bare, gpu_reason=nvml.reason)
    from hfbench.gpu.telemetry.decode import cuda_version

    try:
        inventory = list_devices()
        driver = known(nvml.text("nvmlSystemGetDriverVersion")) or ""
        number = nvml.read("nvmlSystemGetCudaDriverVersion_v2")
        cuda = "" if isinstance(number, Unavailable) else str(known(cuda_version(number)) or "")
        cards = [_card(nvml, gpu.index, gpu.lease, gpu.name) for gpu in inventory.gpus]
    finally:
        nvml.close()
    unread = [card for card in cards if card is None]
    return replace(
        bare,
        versions=replace(bare.versions, driver=driver),
        gpus=tuple(card for card in cards if card is not None),
        gpus_known=not unread,
        gpu_reason="a card does not tell its compute capability" if unread else inventory.reason,
        cuda_driver=cuda,
    )


def _card(nvml: Nvml, index: int, uuid: str, name: str) -> GpuBuilt | None:
    """A card or a slice of one; None when it does not tell its compute capability, on which all depends."""
    from hfbench.gpu.reading import Unavailable, known
    from hfbench.gpu.telemetry.fields import read_memory

    handle: Any = nvml.read("nvmlDeviceGetHandleByUUID", uuid)
    if isinstance(handle, Unavailable):
        handle = nvml.read("nvmlDeviceGetHandleByIndex", index)
    own_name = known(nvml.text("nvmlDeviceGetName", handle)) or name
    mig = _first(_MIG_PROFILE, own_name) if uuid.startswith("MIG-") else ""
    whole = nvml.read("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", handle) if uuid.startswith("MIG-") else handle
    pair = nvml.read("nvmlDeviceGetCudaComputeCapability", whole)
    if isinstance(pair, Unavailable):
        return None
    capability = f"{pair[0]}.{pair[1]}"
    total = known(read_memory(nvml, handle).total)
    return GpuBuilt(
        name=own_name,
        compute_capability=capability,
        sm_count=_multiprocessors(nvml, handle, capability, sliced=bool(mig)),
        memory=int(total or 0),
        mig=mig,
    )


def _multiprocessors(nvml: Nvml, handle: Any, capability: str, *, sliced: bool) -> int:
    """Multiprocessors of a slice as the driver tells them, of a card from its cores; 0 when unknown."""
    from hfbench.gpu.reading import Unavailable

    if sliced:
        attributes = nvml.read("nvmlDeviceGetAttributes_v2", handle)
        return 0 if isinstance(attributes, Unavailable) else int(attributes.multiprocessorCount)
    cores = nvml.read("nvmlDeviceGetNumGpuCores", handle)
    return 0 if isinstance(cores, Unavailable) else int(cores) // CORES_PER_SM.get(capability, int(cores) + 1)


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[1] if match else ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
