"""What torch.compile, AOTInductor and Triton need to build code, and what hides a module from an import."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from hfbench.doctor.check import Outcome, check, error, ok, saw, some, warning
from hfbench.doctor.system import System

LIBRARIES = frozenset(
    {"torch", "transformers", "tokenizers", "safetensors", "numpy", "triton", "accelerate", "datasets", "peft"}
    | {"huggingface_hub", "vllm", "sglang", "tensorrt", "onnx", "openvino", "yaml", "regex", "tqdm", "packaging"}
)
"""Beside the standard library's own, names whose loss is noticed far from its cause."""
CXX, CC = ("g++", "c++", "clang++"), ("gcc", "cc", "clang")


@check("compilers.shadow", "files that hide modules")
def shadow(system: System) -> Outcome:
    """A torch.py in the current folder is imported in place of torch."""
    hidden = LIBRARIES | sys.stdlib_module_names
    folders = [system.cwd, *(Path(part) for part in system.variable("PYTHONPATH").split(":") if part.startswith("/"))]
    found = [
        Path(folder) / name
        for folder in dict.fromkeys(folders)
        for name in system.names(folder)
        if name.removesuffix(".py") in hidden
        and (name.endswith(".py") or system.exists(Path(folder) / name / "__init__.py"))
    ]
    if found:
        return error(
            f"{some(file.name for file in found)} hides the module of that name",
            *(saw("is there", file) for file in found),
            remedy="rename it, or start Python with -P or from another folder",
        )
    return ok("none", *(saw("nothing of such a name", folder) for folder in folders))


@check("compilers.cxx", "C++ compiler", limit=90.0)
def cxx(system: System) -> Outcome:
    """torch.compile on the CPU and AOTInductor build C++; without a compiler they stop at the first graph."""
    return _compiler(system, "CXX", CXX, "C++", "apt-get install g++, or set CXX")


@check("compilers.cc", "C compiler", limit=90.0)
def cc(system: System) -> Outcome:
    """Triton builds a small launcher in C for each kernel."""
    return _compiler(system, "CC", CC, "C", "apt-get install gcc, or set CC")


@check("compilers.headers", "Python headers", limit=90.0)
def headers(system: System) -> Outcome:
    """Triton's launchers and C++ wrappers include Python.h."""
    file = system.include / "Python.h"
    if system.exists(file):
        return ok("are there", saw("is there", file))
    here = system.pythons[0].told.versions if system.pythons else {}
    if "triton" not in here and "torch" not in here:
        return ok("absent, and nothing here builds code", saw("absent", file))
    return warning(
        "Python.h is not there",
        saw("absent", file),
        remedy="apt-get install python3-dev of the same version, or use a Python that brings its headers",
    )


@check("compilers.caches", "caches of compiled kernels")
def caches(system: System) -> Outcome:
    """A cache that machines with different cards share has been seen to give wrong numbers."""
    user = system.variable("USER") or str(system.user)
    folders = {
        "TRITON_CACHE_DIR": Path(system.variable("TRITON_CACHE_DIR") or system.home / ".triton" / "cache"),
        "TORCHINDUCTOR_CACHE_DIR": Path(
            system.variable("TORCHINDUCTOR_CACHE_DIR") or system.temporary / f"torchinductor_{user}"
        ),
    }
    mounts = {name: system.mount(folder) for name, folder in folders.items()}
    seen = [saw(f"{mount.kind} at {mount.point}", folders[name]) for name, mount in mounts.items() if mount]
    shared = [name for name, mount in mounts.items() if mount and mount.network]
    if shared:
        return warning(
            f"{' and '.join(shared)} on a network disk",
            *seen,
            remedy="give each kind of card a folder of its own: a disk of this machine, or one named by the card",
        )
    return ok("on this machine", *seen)


def _compiler(system: System, variable: str, usual: tuple[str, ...], language: str, install: str) -> Outcome:
    told = _words(system.variable(variable))
    if told:
        if _found(system, told[0]):
            return ok(told[0], saw(" ".join(told), variable))
        return error(
            f"{variable} names {told[0]}, which is not there",
            saw(" ".join(told), variable),
            remedy=f"unset {variable}, or name one that is",
        )
    found = next(filter(None, map(system.which, usual)), None)
    if found:
        return ok(found, saw(found, "PATH"))
    absent = saw(f"none of {', '.join(usual)}", "PATH")
    if not any("torch" in each.told.versions for each in system.pythons):
        return ok("absent, and no torch needs it", absent)
    return warning(f"there is no {language} compiler", absent, remedy=install)


def _words(value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError:
        return value.split()


def _found(system: System, program: str) -> bool:
    return system.exists(program) if program.startswith("/") else system.which(program) is not None
