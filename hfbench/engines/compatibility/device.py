"""Rules about the GPU: compute capability, multiprocessors, memory, slices, and number formats."""

from __future__ import annotations

import re

from hfbench.engines.compatibility.rule import Case, Row, mismatch, noted, ok, rule, unknown
from hfbench.engines.manifest import GpuBuilt
from hfbench.engines.versions import numbers
from hfbench.units import show_bytes

AMPERE = (8, 0)
LEAST_CAPABILITY: dict[str, tuple[int, int]] = {
    "bf16": (8, 0),
    "bfloat16": (8, 0),
    "fp8": (8, 9),
    "int8": (6, 1),
    "nvfp4": (10, 0),
    "mxfp4": (10, 0),
}
"""First compute capability whose cores calculate in a format."""


@rule(
    "gpu",
    "built_on.gpu",
    "an engine of a GPU runs on a GPU that this process sees",
)
def gpu(case: Case) -> Row | None:
    """There is a GPU."""
    wanted = case.built.gpu
    if wanted is None:
        return None
    if case.here.elsewhere:
        return unknown(wanted.name, "not told", "the environment may see other GPUs", "check it there")
    if (card := _card(case)) is not None:
        return ok(wanted.name, card.name)
    if case.here.gpus_known:
        return mismatch(wanted.name, "none", f"there is no GPU: {case.here.gpu_reason}", "run it on a GPU box")
    return unknown(wanted.name, "not told", case.here.gpu_reason, "look at hfbench gpus")


@rule(
    "compute-capability",
    "built_on.gpu.compute_capability",
    "compiled code is for one compute capability: the same major version is not enough. A plan built for ampere_plus "
    "runs on 8.0 and later",
)
def compute_capability(case: Case) -> Row | None:
    """The compute capability is the one it was built for, or its level allows it."""
    both = _both(case)
    if both is None:
        return None
    built, here = (each.compute_capability for each in both)
    level = case.manifest.compat.hardware_level
    if level == "ampere_plus":
        allowed = f"{built}, ampere_plus"
        if numbers(here) >= AMPERE:
            return ok(allowed, here)
        found = f"it was built for Ampere and later, this GPU has compute capability {here}"
        return mismatch(allowed, here, found, "run it on a GPU of compute capability 8.0 or later")
    if built == here:
        return ok(built, here)
    close = ": the same major version is not enough" if numbers(built)[0] == numbers(here)[0] else ""
    found = f"it was built for compute capability {built}, this GPU has {here}{close}"
    level_too = " with the level ampere_plus" if case.manifest.builder == "trtllm" else ""
    return mismatch(built, here, found, f"build it on this GPU{level_too and ', or'}{level_too}")


@rule("gpu-model", "built_on.gpu.name", "a plan is tuned for one model of GPU; a compile cache is keyed by its name")
def gpu_model(case: Case) -> Row | None:
    """It is the model it was tuned for."""
    both = _both(case)
    if both is None:
        return None
    built, here = (each.name for each in both)
    if built == here:
        return ok(built, here)
    if case.manifest.builder == "compile":
        found = f"the cache is keyed by {built}, here is {here}: none of it would be found"
        return mismatch(built, here, found, "build it on this GPU")
    return noted(built, here, "it was tuned for another model of GPU: its speed is not that of the build")


@rule("sm-count", "built_on.gpu.sm_count", "code is tuned for a number of multiprocessors, and runs on another too")
def sm_count(case: Case) -> Row | None:
    """The number of multiprocessors is the one it was tuned for."""
    both = _both(case)
    if both is None or not both[0].sm_count or not both[1].sm_count:
        return None
    built, here = (each.sm_count for each in both)
    if built == here:
        return ok(built, here)
    return noted(built, here, f"it was tuned for {built} multiprocessors, this GPU has {here}")


@rule("gpu-memory", "built_on.gpu.memory", "the engine's files, which hold its weights, must fit into the GPU's memory")
def gpu_memory(case: Case) -> Row | None:
    """The engine fits into the memory."""
    both = _both(case)
    if both is None or not both[1].memory:
        return None
    ranks = case.manifest.layout.world_size
    needed, here = sum(each.size for each in case.manifest.files) // ranks, both[1].memory
    shown = f"at least {show_bytes(needed)}"
    if needed >= here:
        found = f"its files alone take {show_bytes(needed)} a rank, this GPU has {show_bytes(here)}"
        return mismatch(shown, show_bytes(here), found, "use a larger GPU, or more of them")
    if both[0].memory and here < both[0].memory:
        found = f"it was built with {show_bytes(both[0].memory)}, this GPU has {show_bytes(here)}: weights fit, "
        return noted(shown, show_bytes(here), f"{found}cache and workspace may not", "see hfbench fit")
    return ok(shown, show_bytes(here))


@rule("mig", "built_on.gpu.mig", "a slice has fewer multiprocessors and less memory than its card, and the same code")
def mig(case: Case) -> Row | None:
    """The slice is the one it was built on."""
    both = _both(case)
    if both is None:
        return None
    built, here = (each.mig or "a whole card" for each in both)
    if built == here:
        return ok(built, here)
    return noted(built, here, f"it was built on {built}, this is {here}: what was chosen by timing may be slow here")


@rule(
    "dtype",
    "dtype",
    "on another compute capability an engine needs the cores of its number format: bf16 8.0, fp8 8.9, nvfp4 10.0",
)
def dtype(case: Case) -> Row | None:
    """The GPU calculates in the engine's number format."""
    both = _both(case)
    if both is None:
        return None
    built, here = (each.compute_capability for each in both)
    words = f"{case.manifest.dtype} {case.manifest.quantisation}".strip()
    for name, least in LEAST_CAPABILITY.items():
        if built != here and name in re.split(r"[\s_-]+", words.lower()) and numbers(here) < least:
            wanted = ".".join(map(str, least))
            found = f"{name} needs compute capability {wanted}, this GPU has {here}"
            return mismatch(words, here, found, "build it in another number format")
    return ok(words, here)


def _card(case: Case) -> GpuBuilt | None:
    return case.here.gpus[case.card] if case.card < len(case.here.gpus) else None


def _both(case: Case) -> tuple[GpuBuilt, GpuBuilt] | None:
    """The builder's GPU and the one here; None where either is not there, which is told by the rule of the GPU."""
    built, card = case.built.gpu, _card(case)
    return (built, card) if built and card and not case.here.elsewhere else None
