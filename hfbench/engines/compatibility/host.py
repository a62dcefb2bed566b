"""Rules about the machine that is not a GPU: operating system, architecture, instruction set, number of processes."""

from __future__ import annotations

from hfbench.engines.compatibility.rule import Case, Row, mismatch, noted, ok, rule, unknown
from hfbench.models.problem import counted, listed

COMPILED = ("aoti", "compile", "trtllm")
"""Builders whose files hold machine code."""

LEVELS: dict[str, tuple[str, ...]] = {
    "avx2": ("avx2", "fma"),
    "avx512": ("avx512f", "avx512dq", "avx512vl", "avx512bw", "fma"),
    "avx512_vnni": ("avx512_vnni",),
    "amx_tile": ("amx_tile",),
    "asimd": ("asimd",),
    "neon": ("asimd",),
    "sve": ("sve",),
}
"""Features behind what AOTInductor calls an instruction set; several are written side by side."""


@rule("platform", "built_on.platform", "machine code is for one operating system", builders=COMPILED)
def platform(case: Case) -> Row:
    """The operating system is the same."""
    built, here = case.built.platform, case.here.versions.platform
    if not built:
        return unknown("not told", here, "nothing tells the operating system it was built for", "try --load")
    if built == here:
        return ok(built, here)
    return mismatch(built, here, f"it was built for {built}, this is {here}", "build it on this machine")


@rule("machine", "built_on.machine", "machine code is for one architecture", builders=COMPILED)
def machine(case: Case) -> Row:
    """The architecture is the same."""
    built, here = case.built.machine, case.here.versions.machine
    if not built:
        return unknown("not told", here, "the manifest does not tell the architecture", "build it again")
    if built == here:
        return ok(built, here)
    return mismatch(built, here, f"it was built for {built}, this machine is {here}", "build it on this machine")


@rule(
    "cpu-isa",
    "built_on.isa",
    "a processor with all features of the builder's runs its code, one that lacks any may die of an illegal "
    "instruction: AOTInductor compiles with -march=native, and a compile cache holds C++ for the builder's vectors",
    builders=("aoti", "compile"),
)
def cpu_isa(case: Case) -> Row:
    """The instruction set here is a superset of the builder's."""
    needed, there = needed_features(case), set(case.here.versions.isa)
    built = case.built.isa_level or counted(len(needed), "feature")
    here = case.here.versions.isa_level or counted(len(there), "feature")
    if case.here.elsewhere:
        return unknown(built, "not told", "the environment may run on another machine", "check it there")
    if not needed:
        return unknown("not told", here, "the manifest does not tell the builder's instruction set", "try --load")
    if not there:
        return unknown(built, "not told", "/proc/cpuinfo does not tell the instruction set", "try --load")
    if lacking := sorted(needed - there):
        found = f"this processor lacks {listed(lacking, 6)}, for which the code was made"
        return mismatch(built, here, found, "build it on this machine, or on one with the least of your processors")
    if not case.built.isa:
        found = f"only {built} is told; compiled with -march=native it may use other features of its processor as well"
        return noted(built, here, found, "try --load")
    return ok(built, here)


def needed_features(case: Case) -> set[str]:
    """Features the code may use: all of the builder's, or where they are not told those behind the level's name."""
    if case.built.isa:
        return set(case.built.isa)
    return {feature for word in case.built.isa_level.lower().split() for feature in LEVELS.get(word, (word,))}


@rule("world-size", "layout.world_size", "an engine of several ranks needs as many GPUs that one process each can have")
def world_size(case: Case) -> Row | None:
    """There are enough GPUs."""
    wanted = case.manifest.layout.world_size
    if wanted == 1 or not case.on_gpu:
        return None
    if not case.here.gpus_known:
        return unknown(wanted, "not told", case.here.gpu_reason, "look at hfbench gpus")
    here = len(case.here.gpus)
    if here >= wanted:
        return ok(wanted, here)
    found = f"it is spread over {wanted} GPUs, this machine shows {here}"
    layout = case.manifest.layout
    return mismatch(wanted, here, found, f"build it with tp {max(1, here)} instead of tp {layout.tp}, pp {layout.pp}")


@rule("processor", "built_on.cpu", "compiled code is tuned for the processor it was built on, and runs on others too")
def processor(case: Case) -> Row | None:
    """It is the processor it was tuned for."""
    built, here = case.built.cpu, case.here.versions.cpu
    if case.on_gpu or not built or case.manifest.builder not in ("aoti", "compile"):
        return None
    if built == here:
        return ok(built, here)
    return noted(built, here, "it was tuned for another processor: its speed is not that of the build")
