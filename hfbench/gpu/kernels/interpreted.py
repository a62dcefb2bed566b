"""One case of a kernel in Triton's interpreter, between guard bands, beside its reference. For child processes only."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
import triton
import triton.language as tl

from hfbench.gpu.kernels.access import Astray, watched
from hfbench.gpu.kernels.compare import Difference, compare
from hfbench.gpu.kernels.declaration import Case, Config, Kernel, Tolerance
from hfbench.gpu.kernels.guards import Guarded
from hfbench.gpu.kernels.loading import place, told

UPCAST = "checked with the same values in fp32: the interpreter computes bf16 on its bit patterns"

Verdict = Literal["ok", "differs", "out-of-bounds", "error", "inapplicable"]


@dataclass(frozen=True, kw_only=True)
class Interpreted:
    """What a case came to."""

    verdict: Verdict
    reason: str = ""
    difference: Difference | None = None
    seconds: float = 0.0


class Faulty(Exception):
    """A part of the declaration gives something that cannot be used."""


def prepare(kernel: Kernel, path: Path) -> Callable[..., Interpreted]:
    """What runs a case; the process is warm afterwards."""
    warm_up()
    return partial(interpret, kernel, path)


def interpret(kernel: Kernel, path: Path, *, config: str, dtype: str, shape: Mapping[str, int]) -> Interpreted:
    """Run one case. bf16 is tried as it is and, where that differs, with the same values held in fp32."""
    began = time.perf_counter()
    found = _attempt(kernel, path, kernel.config(config), Case(shape=shape, dtype=dtype), upcast=False)
    if dtype == "bf16" and found.verdict in ("differs", "error"):
        wide = _attempt(kernel, path, kernel.config(config), Case(shape=shape, dtype=dtype), upcast=True)
        if wide.verdict == "ok":
            found = Interpreted(verdict="ok", reason=UPCAST, difference=wide.difference)
    return Interpreted(**{**vars(found), "seconds": time.perf_counter() - began})


def _touch(x: Any) -> None:
    tl.store(x, tl.load(x))


def warm_up() -> None:
    """Do once what torch and Triton import at first use: processes forked later need not."""
    torch.manual_seed(0)
    with _marked_memory():
        empty = torch.empty(2, 2, dtype=torch.float16)
    guarded = Guarded({"empty": empty}, ("empty",))
    guarded.trespasses()
    compare("empty", guarded.tensors["empty"], empty.double().softmax(dim=1) @ empty.double(), Tolerance(0))
    with watched(guarded.regions()):
        triton.jit(_touch)[(1,)](guarded.tensors["empty"])


def _attempt(kernel: Kernel, path: Path, config: Config, case: Case, *, upcast: bool) -> Interpreted:
    try:
        return _run(kernel, config, case, upcast)
    except Faulty as error:
        return Interpreted(verdict="error", reason=str(error))
    except (Exception, SystemExit) as error:  # anything may happen in a file that is not ours
        cause = _cause(error)
        where = place(cause, path).removeprefix(f"{path}:")
        at = f", at line {where}" if where.isdigit() else ""
        if isinstance(cause, Astray):
            return Interpreted(verdict="out-of-bounds", reason=f"{cause}{at}")
        return Interpreted(verdict="error", reason=f"{told(cause)}{at}")


def _run(kernel: Kernel, config: Config, case: Case, upcast: bool) -> Interpreted:
    torch.manual_seed(zlib.crc32(repr((sorted(case.shape.items()), case.dtype)).encode()))
    inputs = dict(kernel.inputs(case))
    originals = {name: value.clone() if torch.is_tensor(value) else value for name, value in inputs.items()}
    if upcast:
        inputs = {name: _upcast(value) for name, value in inputs.items()}
    with _marked_memory():
        given = dict(kernel.arguments(**inputs))
    _look(kernel, given)
    if not kernel.applies(given, config.constants):
        return Interpreted(verdict="inapplicable")
    expected = kernel.reference(**originals)
    expected = tuple(expected) if isinstance(expected, (tuple, list)) else (expected,)
    if len(expected) != len(kernel.outputs):
        raise Faulty(f"the reference gives {len(expected)} outputs, {len(kernel.outputs)} are declared")
    for name, each in zip(kernel.outputs, expected, strict=True):
        if not torch.is_tensor(each):
            raise Faulty(f"the reference gives a {type(each).__name__} for {name!r}, a tensor was expected")
    guarded = Guarded({name: value for name, value in given.items() if torch.is_tensor(value)}, kernel.outputs)
    before = {name: guarded.tensors[name].clone() for name in kernel.outputs}
    with watched(guarded.regions()) as watch:
        kernel.launch({**given, **guarded.tensors}, config)
    if astray := [*map(str, guarded.trespasses()), *watch.notes()]:
        return Interpreted(verdict="out-of-bounds", reason="; ".join(astray))
    differences = [
        compare(name, guarded.tensors[name], reference, kernel.tolerance[case.dtype])
        for name, reference in zip(kernel.outputs, expected, strict=True)
    ]
    worst = max(differences, key=lambda each: each.worst)
    if worst.worst <= 1:
        return Interpreted(verdict="ok", difference=worst)
    turn = kernel.outputs.index(worst.output)
    untouched = _untouched(before[worst.output], guarded.tensors[worst.output], expected[turn])
    unwritten = f"; {untouched:,} were never written" if untouched else ""
    return Interpreted(verdict="differs", reason=f"{worst}{unwritten}", difference=worst)


def _look(kernel: Kernel, given: Mapping[str, Any]) -> None:
    """Faulty when the arguments are not those of the signature."""
    for name, spelled in kernel.signature.items():
        if name not in given:
            raise Faulty(f"arguments gives no {name!r}, which the signature names")
        if spelled.startswith("*") != torch.is_tensor(given[name]):
            kind = "a tensor" if spelled.startswith("*") else "a number"
            raise Faulty(f"arguments gives a {type(given[name]).__name__} for {name!r}, the signature says {kind}")
    for name in given:
        if name not in kernel.signature:
            raise Faulty(f"arguments gives {name!r}, which the signature does not name")


def _upcast(value: Any) -> Any:
    return value.float() if torch.is_tensor(value) and value.dtype == torch.bfloat16 else value


def _untouched(before: Any, after: Any, expected: Any) -> int:
    """Elements that are as they were before and should not be."""
    if before.is_floating_point():
        return int((before.isnan() & after.isnan() & ~expected.isnan()).sum())
    return int(((before == after) & (after != expected)).sum())


@contextmanager
def _marked_memory() -> Any:
    """Let `torch.empty` give NaN, and whole numbers their largest value, so that what is never written is seen."""
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("warn")
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)


def _cause(error: BaseException) -> BaseException:
    """What the interpreter wrapped into an error of its own."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error
