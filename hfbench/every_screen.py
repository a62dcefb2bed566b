"""All screens there are, by name: those behind digit keys, and the pages of one thing. What lists screens reads it."""

from __future__ import annotations

MAIN = {
    "models": "models:ModelsScreen",
    "jobs": "jobs:JobsScreen",
    "gpus": "gpus:GpusScreen",
    "kernels": "kernels:KernelsScreen",
    "engines": "engines:EnginesScreen",
    "doctor": "doctor:DoctorScreen",
    "cache": "cache:CacheScreen",
    "registry": "registry:RegistryScreen",
    "sweeps": "sweeps:SweepsScreen",
}
"""Modules and classes of the screens behind the digits, in the order of these."""

PAGES = {
    "model": "model:ModelScreen",
    "launch": "launch:LaunchScreen",
    "job": "job:JobScreen",
    "diff": "diff:DiffScreen",
    "convert": "convert:ConvertScreen",
    "sweep": "sweep:SweepScreen",
    "compare": "compare:CompareScreen",
    "engine": "engines_page:EngineScreen",
    "repository": "cache_page:CacheRepoScreen",
    "memory": "gpu_memory:GpuMemoryScreen",
}
"""Modules and classes of the pages that are opened from these; `screens/reopen.py` opens each by what it is about."""
