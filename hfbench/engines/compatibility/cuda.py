"""Rules about the CUDA runtime, the driver and NCCL."""

from __future__ import annotations

from hfbench.engines.compatibility.rule import Case, Row, mismatch, noted, ok, rule, unknown
from hfbench.engines.versions import numbers, older, same

LEAST_DRIVER = {11: "450.80.02", 12: "525.60.13", 13: "580.65.06"}
"""The oldest driver for Linux by major version of CUDA, which all its minor versions accept (CUDA's release notes)."""


@rule(
    "cuda",
    "built_on.cuda",
    "code is linked to the CUDA runtime of one major version; a newer minor version has all that an older one has",
    builders=("aoti", "compile", "trtllm"),
)
def cuda(case: Case) -> Row | None:
    """The CUDA runtime is of the same major version and not older."""
    built, here = case.built.cuda, case.here.versions.cuda
    if not case.on_gpu or not built or (case.manifest.builder == "trtllm" and not here):
        return None
    if not here:
        found = f"it needs the CUDA {numbers(built)[0]} runtime, the torch here is built without CUDA"
        return mismatch(built, "none", found, f"install a torch for CUDA {built}, or name an --environment")
    if case.manifest.builder == "compile" and built != here:
        return mismatch(built, here, f"the cache is keyed by CUDA {built}, here is {here}", "build it again")
    if not same(built, here, 1):
        found = f"it is linked to the CUDA {numbers(built)[0]} runtime, here is CUDA {here}"
        return mismatch(built, here, found, f"install a torch for CUDA {built}, or build it again")
    if older(here, built, 2):
        found = f"it was built with CUDA {built} and may call what the runtime of {here} lacks"
        return unknown(built, here, found, "try it with --load")
    return ok(built, here)


@rule(
    "driver",
    "built_on.driver",
    "a driver must be as new as the oldest that the CUDA of the engine accepts, not merely of the same major version",
)
def driver(case: Case) -> Row | None:
    """The driver runs the CUDA of the engine."""
    if not case.on_gpu or not case.built.cuda:
        return None
    here, built = case.here.versions.driver, case.built.driver
    major = numbers(case.built.cuda)[0]
    least = LEAST_DRIVER.get(major, "")
    if not here:
        if case.here.gpus_known:
            return mismatch(built, "none", f"there is no driver: {case.here.gpu_reason}", "install the NVIDIA driver")
        return unknown(built, "not told", case.here.gpu_reason, "look at hfbench gpus")
    if not least:
        found = f"the oldest driver for CUDA {major} is not known to this hfbench; it was built under {built}"
        return ok(built, here) if not older(here, built) else unknown(built, here, found, "try it with --load")
    if older(here, least):
        found = f"CUDA {case.built.cuda} needs driver {least} or newer, here is {here}"
        return mismatch(built, here, found, f"install driver {least} or newer, or build it with an older CUDA")
    if case.here.cuda_driver and older(case.here.cuda_driver, case.built.cuda, 2):
        found = f"the driver is for CUDA {case.here.cuda_driver}, the engine for {case.built.cuda}: code that is "
        found += "compiled when it is loaded will be refused"
        return noted(built, here, found, "install a newer driver if it is refused")
    return ok(f"CUDA {case.built.cuda}, driver {least} or newer", here)


@rule("nccl", "built_on.nccl", "ranks talk by NCCL, whose major version is the interface and which must not be older")
def nccl(case: Case) -> Row | None:
    """NCCL is there for an engine of several ranks."""
    if case.manifest.layout.world_size == 1 or not case.on_gpu:
        return None
    built, here = case.built.nccl, case.here.versions.nccl
    if not here:
        found = "no NCCL is installed as a package; it may come with the system"
        return unknown(built or "not told", "not told", found, "try it with --load")
    if not built:
        return unknown("not told", here, "the manifest does not tell the builder's NCCL", "try it with --load")
    if not same(built, here, 1):
        found = f"it was built with NCCL {built}, here is {here}"
        return mismatch(built, here, found, f"install NCCL {built} or build it again")
    if older(here, built, 3):
        found = f"it was built with NCCL {built} and may call what {here} lacks"
        return unknown(built, here, found, "try it with --load")
    return ok(built, here)
