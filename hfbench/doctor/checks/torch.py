"""The torch of every Python: built for these cards, and not in the way of itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hfbench.doctor.check import Outcome, check, error, ok, saw, some, unknown, warning
from hfbench.doctor.checks.driver import kernel_driver
from hfbench.doctor.pythons import Interpreter, installed
from hfbench.doctor.system import System
from hfbench.environments.probed import Torch
from hfbench.gpu.reading import known

LIMIT = 90.0
"""Seconds: each Python imports its torch once, and its answer is remembered."""
DEBUGGING = {
    "TRITON_INTERPRET": "kernels run in Python, on the CPU",
    "CUDA_LAUNCH_BLOCKING": "every kernel is waited for",
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "every tensor asks the driver for memory",
    "TORCHDYNAMO_DISABLE": "torch.compile does nothing",
    "TORCH_COMPILE_DISABLE": "torch.compile does nothing",
    "NVIDIA_TF32_OVERRIDE": "the precision of matrix products is not what programs ask for",
}
"""Variables and what they do."""

_RUNTIME = re.compile(r"nvidia-cuda-runtime(?:-cu(\d+))?")
_ARCH = re.compile(r"(sm|compute)_(\d+?)(\d)([af]?)")


@check("torch.cpu_only", "torch built for the cards", limit=LIMIT)
def cpu_only(system: System) -> Outcome:
    """A torch without CUDA runs on the CPU of a GPU box and says nothing of it."""
    with_torch = list(_torches(system))
    if not with_torch:
        return ok("no Python has torch")
    seen = [saw(f"torch {torch.version}, CUDA {torch.cuda or 'none'}", python.name) for python, torch in with_torch]
    if not system.gpus.devices and not kernel_driver(system):
        return ok("there is no card: any build will do", *seen)
    without = [python.name for python, torch in with_torch if not torch.cuda]
    if without and with_torch[0][0].name in without:
        return error(
            f"torch of {some(without)} is built without CUDA and there are cards",
            *seen,
            remedy="install torch from the index of your CUDA version: https://pytorch.org/get-started/locally",
        )
    if without:
        remedy = "install a CUDA build of torch there, if it is to use the cards"
        return warning(f"torch of {some(without)} is built without CUDA", *seen, remedy=remedy)
    return ok("all builds have CUDA", *seen)


@check("torch.arches", "kernels for the cards", limit=LIMIT)
def arches(system: System) -> Outcome:
    """A torch without kernels for a card fails at the first of them: no kernel image is available."""
    cards = {known(each.compute_capability) or "": each.index for each in system.gpus.devices}
    capabilities = [each for each in cards if each]
    built = [(python, torch) for python, torch in _torches(system) if torch.cuda]
    if not capabilities or not built:
        return ok("no card, or no torch with CUDA, to compare")
    seen = [saw(" ".join(torch.arch_list) or "not told", f"torch of {python.name}") for python, torch in built]
    seen += [saw(f"compute capability {each}", f"card {cards[each]}") for each in capabilities]
    if untold := [python.name for python, torch in built if not torch.arch_list]:
        return unknown(f"torch of {some(untold)} does not tell what it was compiled for", *seen)
    missing, compiled = [], []
    for python, torch in built:
        for capability in capabilities:
            how = serves(torch.arch_list, capability)
            if how == "no":
                missing.append(f"{python.name} for {capability}")
            elif how == "compiles":
                compiled.append(f"{python.name} for {capability}")
    if missing:
        return error(
            f"torch has no kernels: {some(missing)}",
            *seen,
            remedy="install a torch whose architecture list has the card",
        )
    if compiled:
        remedy = "the first run of each kernel takes long; install a torch whose architecture list has the card"
        return warning(f"kernels are compiled at load from PTX: {some(compiled)}", *seen, remedy=remedy)
    return ok("every card is served", *seen)


@check("torch.pynvml", "pynvml package", limit=LIMIT)
def pynvml(system: System) -> Outcome:
    """The package `pynvml` brings a module of the same name as nvidia-ml-py, older and of another behaviour."""
    both = {python.name: (old, python.told.versions.get("nvidia-ml-py", "")) for python, old in _with(system, "pynvml")}
    seen = [saw(f"pynvml {old}, nvidia-ml-py {new or 'absent'}", name) for name, (old, new) in both.items()]
    if both:
        return warning(
            f"the deprecated pynvml is installed in {some(both)}",
            *seen,
            remedy="pip uninstall pynvml && pip install --force-reinstall nvidia-ml-py",
        )
    return ok("is not installed anywhere")


@check("torch.runtimes", "CUDA runtimes side by side", limit=LIMIT)
def runtimes(system: System) -> Outcome:
    """Libraries of two CUDA versions in one Python load whichever is found first."""
    troubled, seen = [], []
    for python in system.pythons:
        packages = installed(system, python)
        majors: dict[str, str] = {}
        for name, version in packages.items():
            if _RUNTIME.fullmatch(name):
                majors[version.partition(".")[0]] = f"{name} {version}"
        wanted = python.told.torch.cuda.partition(".")[0] if python.told.torch else ""
        if majors:
            seen.append(saw(some(majors.values()), f"packages of {python.name}"))
        if len(majors) > 1 or (majors and wanted and wanted not in majors):
            troubled.append(f"{python.name} ({', '.join(f'CUDA {each}' for each in sorted(majors))})")
    if troubled:
        remedy = "keep the one that torch was built for, uninstall the others, and install torch again"
        return warning(f"CUDA runtimes do not fit together in {some(troubled)}", *seen, remedy=remedy)
    return ok("one a Python, or none", *seen)


@check("torch.variables", "variables for debugging")
def variables(system: System) -> Outcome:
    """A variable that was set to find a fault stays set, and everything after it is slow or runs elsewhere."""
    left = {
        name: what
        for name, what in DEBUGGING.items()
        if system.variable(name).strip().lower() not in ("", "0", "false", "off")
    }
    seen = [saw(system.variable(name), name) for name in left]
    if left:
        told = some(f"{name}: {what}" for name, what in left.items())
        return warning(told, *seen, remedy=f"unset {' '.join(left)}, unless you are looking for a fault")
    return ok("none is set", saw("not set", ", ".join(DEBUGGING)))


def serves(arch_list: tuple[str, ...], capability: str) -> str:
    """How kernels of these architectures reach a card: `yes`, `compiles` from PTX, or `no`.

    Binary code runs on the same major capability with an equal or higher minor; PTX on any that is not lower; code
    with a letter behind its number (sm_90a) on that capability alone, or on its family (sm_100f).
    """
    major, _, minor = capability.partition(".")
    here = (int(major), int(minor or 0))
    found = "no"
    for match in filter(None, map(_ARCH.fullmatch, arch_list)):
        kind, built, special = match[1], (int(match[2]), int(match[3])), match[4]
        if special == "a" and built != here:
            continue
        family = built[0] == here[0] and built[1] <= here[1]
        if kind == "sm" and family:
            return "yes"
        if kind == "compute" and (family if special else built <= here):
            found = "compiles"
    return found


def _torches(system: System) -> Iterator[tuple[Interpreter, Torch]]:
    for python in system.pythons:
        if python.told.torch is not None:
            yield python, python.told.torch


def _with(system: System, package: str) -> Iterator[tuple[Interpreter, str]]:
    for python in system.pythons:
        version = python.told.versions.get(package) or installed(system, python).get(package)
        if version:
            yield python, version
