"""The verdict on an engine without a manifest: the same rules, as far as its files tell what they are about."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hfbench.engines.compatibility.judge import Judgement, verdict_of
from hfbench.engines.compatibility.rule import RULES, Case, Row, mismatch, ok, unknown
from hfbench.engines.machine import Machine
from hfbench.engines.manifest import BuiltOn, Layout, Manifest, ShapeProfile, Source
from hfbench.engines.reading.found import Found
from hfbench.engines.versions import older
from hfbench.models.problem import counted, listed

APPLIES: dict[str, tuple[str, ...]] = {
    "aoti": ("platform", "machine", "cpu-isa", "torch", "gpu", "compute-capability"),
    "compile": ("torch",),
    "onnx": ("onnxruntime",),
    "openvino": ("openvino",),
    "trtllm": ("tensorrt", "tensorrt-llm", "world-size"),
    "plan": ("tensorrt",),
}
"""Rules that can be asked of each kind of engine."""

NOT_TOLD = "an engine without a manifest is never said to load before it was loaded"

SYSTEM = ("/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib", "/usr/local/cuda/lib64")


def judge_found(found: Found, here: Machine, *, card: int = 0) -> Judgement:
    """What can be said before loading; an engine that tells too little is never said to load."""
    rows = tuple(_rows(found, here, card))
    return Judgement(verdict=verdict_of(rows), rows=rows)


def _rows(found: Found, here: Machine, card: int) -> Iterator[Row]:
    whole = replace(ok("", "whole"), id="contents", rule="the files are whole and belong together")
    for fault in found.faults:
        wrong = mismatch("", "damaged", fault, "copy it here again, or build it again")
        yield replace(wrong, id=whole.id, rule=whole.rule)
    if not found.faults:
        yield whole
    case = Case(manifest=_stand_in(found), here=here, card=card)
    for rule in (RULES[name] for name in APPLIES[found.kind]):
        row = rule.judge(case)
        if row is not None:
            yield replace(row, id=rule.id, field=rule.field, rule=rule.says)
    if found.glibc and not here.environment:
        yield _glibc(found.glibc)
    if found.needs and not here.environment:
        yield _libraries(found.needs)
    told = f"its files do not tell {'; nor '.join(found.silent)}"
    yield replace(unknown("not told", "", told, "try it with --load"), id="not-told", rule=NOT_TOLD)


def _stand_in(found: Found) -> Manifest:
    """What the files tell, where the rules look for it."""
    return Manifest(
        builder="trtllm" if found.kind == "plan" else found.kind,
        created="1970-01-01T00:00:00Z",
        hfbench="",
        files=(),
        built_on=found.built_on or BuiltOn(python=""),
        layout=Layout(world_size=found.world_size),
        dtype="",
        shapes=ShapeProfile(batch=1, min_prompt=1, max_prompt=1, context=1),
        source=Source(given=""),
    )


def _glibc(wanted: str) -> Row:
    rule = "code asks for versions of C library symbols, which older systems lack"
    told = _told_glibc()
    if not told:
        row = unknown(f"glibc {wanted}", "not told", "this system does not tell its C library", "try it with --load")
    elif older(told, wanted, 2):
        found = f"it needs glibc {wanted}, this system has {told}"
        row = mismatch(f"glibc {wanted}", f"glibc {told}", found, "build it on this system, or on an older one")
    else:
        row = ok(f"glibc {wanted}", f"glibc {told}")
    return replace(row, id="glibc", rule=rule)


def _told_glibc() -> str:
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (ValueError, OSError):
        return ""
    return version if name == "glibc" else ""


def _libraries(needs: tuple[str, ...]) -> Row:
    """Shared libraries by where they usually lie; the loader's own search is wider."""
    folders = list(_library_folders())
    absent = [name for name in needs if not any(os.path.exists(os.path.join(each, name)) for each in folders)]
    built = counted(len(needs), "library").replace("librarys", "libraries")
    if absent:
        found = f"not found where libraries usually lie: {listed(absent)}"
        row = unknown(built, "some are missing", found, "try it with --load, which searches as the loader does")
    else:
        row = ok(built, "all found")
    return replace(row, id="libraries", rule="every shared library its code names is found when it is loaded")


def _library_folders() -> Iterator[str]:
    yield from filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep))
    yield from SYSTEM
    multiarch = f"{os.uname().machine}-linux-gnu"
    yield from (f"/lib/{multiarch}", f"/usr/lib/{multiarch}")
    for folder in sys.path:
        if os.path.isdir(torch := os.path.join(folder, "torch", "lib")):
            yield torch
        nvidia = Path(folder, "nvidia")
        if nvidia.is_dir():
            yield from (str(each / "lib") for each in nvidia.iterdir())
