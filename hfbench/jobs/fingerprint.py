"""What a job ran on: host, processor, memory, driver and GPUs, versions. Looked up without importing any of it."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

PACKAGES = (
    "hfbench",
    "torch",
    "transformers",
    "triton",
    "safetensors",
    "tokenizers",
    "huggingface_hub",
    "numpy",
    "tensorrt_llm",
    "tensorrt",
    "vllm",
    "megatron-core",
    "nvidia-ml-py",
)
VARIABLES = (
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "TORCH_LOGS",
    "TRITON_INTERPRET",
    "HF_HUB_OFFLINE",
    "SLURM_JOB_ID",
)

_TOLD_AS: dict[str, str | None] = {}
"""Variables that hfbench changed in this process, as they were before; None for what was not set."""


def set_variable(name: str, value: str) -> None:
    """Set a variable of this process, whose fingerprint goes on telling what the user had set."""
    _TOLD_AS.setdefault(name, os.environ.get(name))
    os.environ[name] = value


def fingerprint() -> dict[str, Any]:
    """The environment of this process as JSON data; what cannot be read is absent or says why."""
    return {
        "host": socket.gethostname(),
        "user": os.environ.get("USER") or str(os.getuid()),
        "system": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu": cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": memory_bytes(),
        "load_average": list(os.getloadavg()),
        "python": platform.python_version(),
        "executable": sys.executable,
        "versions": versions(),
        "variables": {
            name: value for name in VARIABLES if (value := _TOLD_AS.get(name, os.environ.get(name))) is not None
        },
        "git": git_revision(Path(__file__).parents[2]),
        "gpus": gpus(),
    }


def versions() -> dict[str, str]:
    """Installed versions of the packages that decide a result."""
    from importlib import metadata  # brings in email and zipfile; only the fingerprint of a job needs them

    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def cpu_name() -> str:
    """The processor's name as the kernel tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("model name", "Model")):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def memory_bytes() -> int:
    """Physical memory of the machine in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def git_revision(folder: Path) -> dict[str, Any] | None:
    """Commit and whether files differ from it, when hfbench runs from a checkout."""
    if not (folder / ".git").exists():
        return None
    try:
        ask = {"capture_output": True, "text": True, "timeout": 5, "check": True, "cwd": folder}
        commit = subprocess.run(["git", "rev-parse", "HEAD"], **ask).stdout.strip()  # type: ignore[call-overload]
        dirty = subprocess.run(["git", "status", "--porcelain", "-uno"], **ask).stdout  # type: ignore[call-overload]
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": commit, "dirty": bool(dirty.strip())}


def gpus() -> dict[str, Any]:
    """Driver version and GPUs by NVML, or the reason there are none."""
    try:
        import pynvml
    except ImportError:
        return {"reason": "nvidia-ml-py is not installed"}
    try:
        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        return {
            "driver": pynvml.nvmlSystemGetDriverVersion(),
            "devices": [{"name": pynvml.nvmlDeviceGetName(h), "uuid": pynvml.nvmlDeviceGetUUID(h)} for h in handles],
        }
    except pynvml.NVMLError as error:
        return {"reason": str(error)}
