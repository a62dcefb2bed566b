"""Rules about TensorRT and TensorRT-LLM."""

from __future__ import annotations

from hfbench.engines.compatibility.rule import Case, Row, mismatch, ok, rule, unknown
from hfbench.engines.versions import numbers, older, same

TRTLLM = ("trtllm",)
SUCCESSORS = {8: 10, 10: 11}
"""Major versions of TensorRT, and the one that reads its version-compatible plans; there is no 9 for servers."""

LAST_WITH_PLANS = (1, 2)
"""TensorRT-LLM removed plans, `trtllm-build` and the `tensorrt` dependency in 1.3."""


@rule(
    "tensorrt",
    "built_on.tensorrt",
    "a plan loads in the exact version of TensorRT that wrote it; a version-compatible one in newer versions of the "
    "same or the next major, 8 to 10 and 10 to 11, never in older ones",
    builders=TRTLLM,
)
def tensorrt(case: Case) -> Row:
    """TensorRT reads the plan."""
    built, here = case.built.tensorrt, case.here.versions.tensorrt
    if not here:
        return _absent("TensorRT", built)
    if not built:
        return unknown("not told", here, "the manifest does not tell the builder's TensorRT", "try it with --load")
    if same(built, here, 3):
        return ok(built, here)
    plainly = f"the plan was built with TensorRT {built}, here is {here}"
    if not case.manifest.compat.version_compatible:
        return mismatch(built, here, f"{plainly}: its version tag will not match", _rebuild(built))
    if older(here, built):
        return mismatch(
            built, here, f"{plainly}: version-compatible plans never load in older versions", _rebuild(built)
        )
    was, now = numbers(built)[0], numbers(here)[0]
    if now in (was, SUCCESSORS.get(was)):
        return ok(f"{built}, version-compatible", here)
    return mismatch(built, here, f"{plainly}: a plan is carried over to one major version at most", _rebuild(built))


@rule(
    "tensorrt-llm",
    "built_on.tensorrt_llm",
    "plans hold fields of TensorRT-LLM's plug-ins, which promise nothing across versions; from 1.3 on it runs no plans",
    builders=TRTLLM,
)
def tensorrt_llm(case: Case) -> Row:
    """TensorRT-LLM is the one that built the plan."""
    built, here = case.built.tensorrt_llm, case.here.versions.tensorrt_llm
    if not here:
        return _absent("TensorRT-LLM", built)
    if numbers(here)[:2] > LAST_WITH_PLANS:
        found = f"TensorRT-LLM {here} runs no plans any more"
        instead = "use an environment with TensorRT-LLM 1.2.1, or trtllm-serve on the checkpoint itself"
        return mismatch(built, here, found, instead)
    if built and same(built, here, 3):
        return ok(built, here)
    found = f"it was built with TensorRT-LLM {built or 'of no known version'}, here is {here}; neither compares the two"
    return unknown(built or "not told", here, found, "try it with --load")


def _absent(name: str, built: str) -> Row:
    remedy = "name an --environment that has it; see hfbench environments"
    return mismatch(built, "not installed", f"{name} is not installed here", remedy)


def _rebuild(built: str) -> str:
    return f"use an environment with TensorRT {built}, or build it again"
