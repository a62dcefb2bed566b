"""Wall one: every tensor of a converted checkpoint compared with the source, bit by bit or by the cast's rounding."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import local

from hfbench.convert.boxes import Box, Copy, TensorSpec
from hfbench.convert.plan import Plan, Target
from hfbench.convert.stored import TensorSet
from hfbench.convert.stream.assemble import Assembly, Sources
from hfbench.convert.walls.results import Difference, WeightsWall
from hfbench.convert.walls.rounding import as_numbers, rounded
from hfbench.jobs.run import Run
from hfbench.models.dtypes import BITS
from hfbench.models.problem import quoted
from hfbench.models.values.decode import Array, load_numpy

BLOCK = 4 << 20
"""Bytes of a target compared at once: small enough for the cache, large enough for the disk."""
MOST_THREADS = 8
HARMLESS = ("_extra_state",)
"""What Transformer Engine stores beside weights."""


def weights_wall(
    plan: Plan, hf: TensorSet, converted: TensorSet, run: Run, *, threads: int | None = None
) -> WeightsWall:
    """Compare all targets of a plan with what a converted checkpoint holds; HfbenchError for files that end early.

    The copies on every rank count as targets of their own. Rows of padding may be zeros or the last row, repeated.
    """
    began = time.perf_counter()
    found = list(_names(plan.targets, converted))
    there = [each for each in plan.targets if each.spec.name in converted.tensors]
    pairs = []
    for target in there:
        wrong = _form(target.spec, converted.tensors[target.spec.name].spec)
        if wrong is None:
            pairs.append(target)
        else:
            found.append(wrong)
    total = sum(_bytes(each.spec) for each in pairs)
    done = 0
    with ThreadPoolExecutor(threads or min(MOST_THREADS, len(os.sched_getaffinity(0)))) as pool:
        comparing = Comparing(hf, converted)
        for target, wrong in zip(pairs, pool.map(comparing.compare, pairs), strict=True):
            done += _bytes(target.spec)
            run.progress("weights", done, total, "B")
            found += [wrong] if wrong else []
        found += [wrong for wrong in pool.map(comparing.twin, plan.twins) if wrong]
    casts = {(name, each.spec.dtype) for each in pairs for name in _source_dtypes(each, hf) if name != each.spec.dtype}
    return WeightsWall(
        verdict="differs" if found else "proven",
        tensors=len(plan.targets),
        bytes=total,
        seconds=time.perf_counter() - began,
        cast=", ".join(f"{name} to {other}" for name, other in sorted(casts)),
        differences=tuple(found),
    )


def same_names(hf: TensorSet, converted: TensorSet, tied: bool) -> Plan:
    """The plan by which a folder repeats another: each tensor is the one of the same name.

    A head that is tied to the embedding may be stored or not.
    """
    targets = []
    for name, stored in hf.tensors.items():
        spec, other = stored.spec, converted.tensors.get(name)
        if other is None and tied and name.endswith("lm_head.weight"):
            continue
        whole = Box(0, spec.rows, 0, spec.columns)
        targets.append(
            Target(
                replace(spec, dtype=other.spec.dtype if other else spec.dtype),
                "",
                (Copy(name, whole, name, whole),),
                "copy",
            )
        )
    return Plan(family="", targets=tuple(targets), args={})


class Comparing:
    """Compares one target at a time, on any thread; each thread has its own open files."""

    def __init__(self, hf: TensorSet, converted: TensorSet) -> None:
        self._hf, self._converted, self._own = hf, converted, local()

    def compare(self, target: Target) -> Difference | None:
        """None when a target is as planned. Padding is looked for in both ways it is usually filled."""
        wrong = self._values(target)
        if wrong is None or not target.fill:
            return wrong
        other = replace(target, fill="last row" if target.fill == "zeros" else "zeros")
        if self._values(other) is None:
            return None
        real = max((copy.target_box.row_end for copy in target.copies), default=0)
        if self._values(target, real) is None:
            kind = "rows of padding are neither zeros nor the last row repeated"
            return replace(wrong, kind="padding", found=f"{kind}: {wrong.found}")
        return wrong

    def twin(self, names: tuple[str, str]) -> Difference | None:
        """None when two tensors of the source hold the same."""
        dropped, kept = names
        spec, other = (self._hf.tensors[each].spec for each in names)
        if spec.shape == other.shape and spec.dtype == other.dtype:
            copies = (_whole(dropped, spec),)
            if self._rows(Target(spec, "", copies, ""), Target(spec, "", (_whole(kept, spec),), ""), self._hf) is None:
                return None
        return Difference(
            tensor=kept,
            kind="twin",
            found=f"{quoted(dropped)} of the source was left out as a copy and holds other values",
        )

    def _values(self, target: Target, rows: int | None = None) -> Difference | None:
        spec = target.spec
        stored = Target(spec, "", (_whole(spec.name, spec),), "")
        return self._rows(target, stored, self._converted, rows)

    def _rows(self, target: Target, stored: Target, of: TensorSet, rows: int | None = None) -> Difference | None:
        """The difference between what a target should be and a tensor of another set, block by block."""
        spec = target.spec
        dtypes = set(_source_dtypes(target, self._hf))
        exact = dtypes <= {spec.dtype}
        wanted = target if exact or len(dtypes) > 1 else replace(target, spec=replace(spec, dtype=dtypes.pop()))
        want, have = Assembly(wanted, self._hf.tensors), Assembly(stored, of.tensors)
        sources, others = self._files(of)
        step = max(1, BLOCK // max(1, want.row_bytes, have.row_bytes))
        total = spec.rows if rows is None else rows
        elements, first = 0, ""
        for row in range(0, total, step):
            end = min(total, row + step)
            left, right = bytearray((end - row) * want.row_bytes), bytearray((end - row) * have.row_bytes)
            want.fill(memoryview(left), row, end, sources)
            have.fill(memoryview(right), row, end, others)
            if wanted.spec.dtype == spec.dtype and left == right:
                continue
            expected = rounded(left, wanted.spec.dtype, spec.dtype)
            apart, told = _apart(expected, right, spec, row, cast=not exact)
            elements, first = elements + apart, first or told
        if not elements:
            return None
        return Difference(tensor=spec.name, kind="values", found=first, elements=elements)

    def _files(self, of: TensorSet) -> tuple[Sources, Sources]:
        own = self._own
        if not hasattr(own, "hf"):
            own.hf, own.converted = Sources(self._hf), Sources(self._converted)
        return own.hf, own.hf if of is self._hf else own.converted


def _apart(expected: Array, right: bytearray, spec: TensorSpec, row: int, *, cast: bool) -> tuple[int, str]:
    """Elements of a block whose bits differ and the first of them in words; after a cast any NaN is as good."""
    np = load_numpy()
    found = np.frombuffer(right, expected.dtype)
    differs = np.flatnonzero(expected != found)
    if cast and len(differs):
        nan = [np.isnan(as_numbers(each[differs], spec.dtype)) for each in (expected, found)]
        differs = differs[~(nan[0] & nan[1])]
    if not len(differs):
        return 0, ""
    place = int(differs[0])
    want, have = (float(as_numbers(each[place : place + 1], spec.dtype)[0]) for each in (expected, found))
    index = [int(each) for each in np.unravel_index(row * spec.columns + place, spec.shape)]
    bits = f"0x{int(expected[place]):x}", f"0x{int(found[place]):x}"
    return len(differs), f"element {index} is {have:g} ({bits[1]}) instead of {want:g} ({bits[0]})"


def _names(targets: Sequence[Target], converted: TensorSet) -> Iterator[Difference]:
    wanted = {each.spec.name for each in targets}
    for target in targets:
        if target.spec.name not in converted.tensors:
            made = ", ".join(target.sources[:3])
            yield Difference(tensor=target.spec.name, kind="missing", found=f"is missing; it is made of {made}")
    for name in converted.tensors:
        if name not in wanted and not name.endswith(HARMLESS) and "._extra_state/" not in name:
            yield Difference(tensor=name, kind="surplus", found="has no source")


def _form(wanted: TensorSpec, found: TensorSpec) -> Difference | None:
    if wanted.shape != found.shape:
        told = f"has shape {list(found.shape)} instead of {list(wanted.shape)}"
        return Difference(tensor=wanted.name, kind="shape", found=told)
    if wanted.dtype != found.dtype:
        told = f"is {found.dtype} instead of {wanted.dtype}"
        return Difference(tensor=wanted.name, kind="dtype", found=told)
    return None


def _source_dtypes(target: Target, hf: TensorSet) -> Iterable[str]:
    return dict.fromkeys(hf.tensors[name].spec.dtype for name in target.sources)


def _whole(name: str, spec: TensorSpec) -> Copy:
    box = Box(0, spec.rows, 0, spec.columns)
    return Copy(name, box, spec.name, box)


def _bytes(spec: TensorSpec) -> int:
    return spec.rows * spec.columns * BITS[spec.dtype] // 8
