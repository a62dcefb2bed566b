"""One configuration, reference or ceiling timed on one device. For child processes only; CUDA is touched in forks."""

from __future__ import annotations

import math
import platform
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import triton

from hfbench.gpu.kernels.compare import compare
from hfbench.gpu.kernels.declaration import Case, Config, Kernel, Tolerance
from hfbench.gpu.kernels.loading import place, told
from hfbench.gpu.kernels.timing import NoGraph, Stream, Work, measure
from hfbench.gpu.kernels.timing_results import Answer, Device, Timed
from hfbench.gpu.kernels.timing_streams import stream_for
from hfbench.gpu.timing.stopping import MedianInterval

LEAST_SAMPLES = 20
MOST_SAMPLES = 2000
COPY_BYTES = {"cuda": 2**30, "cpu": 2**26}
"""Each of the two buffers of a copy: far beyond any cache of the device."""
MATMUL = {"cuda": 8192, "cpu": 512}
"""Rows, columns and depth of the product that stands for what the device can calculate."""
MATMUL_DTYPE = {"cuda": torch.bfloat16, "cpu": torch.float32}


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Inputs of one case on a device, and how long to measure."""

    case: Case
    inputs: Mapping[str, Any]
    stream: Stream
    rule: MedianInterval


def prepare(kernel: Kernel, path: Path) -> Callable[..., Any]:
    """What does a task. A GPU is first touched in the process that is forked for it, for CUDA survives no fork."""
    return partial(perform, kernel, path)


def perform(
    kernel: Kernel,
    path: Path,
    *,
    what: str,
    device: str,
    config: str = "",
    dtype: str = "",
    shape: Mapping[str, int] | None = None,
    width: float = 0.01,
    budget: float = 0.5,
) -> Any:
    """Time `what`: `triton`, `eager`, `compile`, `launch` (the eager reference in place of a launch), `copy`, `matmul`;
    or say with `device` where that would be."""
    try:
        stream = stream_for(device)
        if what == "device":
            return _device(device, stream)
        rule = MedianInterval(width=width, budget=budget, most=MOST_SAMPLES, least=LEAST_SAMPLES)
        if what in CEILINGS:
            return CEILINGS[what](stream, device, rule)
        torch.manual_seed(zlib.crc32(repr((sorted((shape or {}).items()), dtype)).encode()))
        case = Case(shape=shape or {}, dtype=dtype, device=device)
        problem = Problem(case=case, inputs=dict(kernel.inputs(case)), stream=stream, rule=rule)
        return _TASKS[what](kernel, config, problem)
    except (Exception, SystemExit) as error:  # anything may happen in a file that is not ours
        where = place(error, path).removeprefix(f"{path}:")
        return Answer(verdict="failed", reason=f"{told(error)}{f', at line {where}' if where.isdigit() else ''}")


def _device(device: str, stream: Stream) -> Device:
    on_gpu = device != "cpu"
    capability = torch.cuda.get_device_capability(device) if on_gpu else ()
    return Device(
        device=device,
        name=torch.cuda.get_device_name(device) if on_gpu else platform.machine(),
        capability=".".join(map(str, capability)) or "cpu",
        torch=torch.__version__,
        triton=triton.__version__,
        flush_bytes=stream.flush_bytes,
        threads=torch.get_num_threads(),
    )


def run_once(kernel: Kernel, config: Config, case: Case, inputs: Mapping[str, Any]) -> tuple[Answer, dict[str, Any]]:
    """Launch the kernel once on the case's device and compare it with its reference; the arguments it was given.

    The answer's verdict is `ok`, `differs` or `inapplicable`.
    """
    originals = {key: value.clone() if torch.is_tensor(value) else value for key, value in inputs.items()}
    given = dict(kernel.arguments(**inputs))
    if not kernel.applies(given, config.constants):
        return Answer(verdict="inapplicable", reason="the configuration cannot serve this size"), given
    kernel.launch(given, config)
    if case.device != "cpu":  # on the CPU Triton's interpreter has run it
        torch.cuda.synchronize()
    worst, reason = _apart(kernel, given, originals, case.dtype)
    return Answer(verdict="differs" if reason else "ok", reason=reason, worst=worst), given


def _triton(kernel: Kernel, label: str, problem: Problem) -> Answer:
    """The kernel itself: compared with its reference once, then timed."""
    config = kernel.config(label)
    once, given = run_once(kernel, config, problem.case, problem.inputs)
    if once.verdict != "ok":
        return once
    return _answer(kernel, problem, lambda: kernel.launch(given, config), once.worst)


def _launch(kernel: Kernel, label: str, problem: Problem) -> Answer:
    """All of a launch but the launch: arguments, whether the configuration applies, its grid; eager is timed."""
    config: Config = kernel.config(label)
    given = dict(kernel.arguments(**problem.inputs))
    if not kernel.applies(given, config.constants):
        return Answer(verdict="inapplicable", reason="the configuration cannot serve this size")
    kernel.grid(given, config.constants)
    return _eager(kernel, label, problem)


def _eager(kernel: Kernel, label: str, problem: Problem) -> Answer:
    called, inputs = kernel.eager or kernel.reference, problem.inputs
    return _answer(kernel, problem, lambda: called(**inputs))


def _compiled(kernel: Kernel, label: str, problem: Problem) -> Answer:
    called, inputs = torch.compile(kernel.eager or kernel.reference, dynamic=False), problem.inputs
    called(**inputs)
    return _answer(kernel, problem, lambda: called(**inputs))


def _answer(kernel: Kernel, problem: Problem, work: Work, worst: float | None = None) -> Answer:
    return Answer(
        verdict="ok",
        timed=_timed(problem.stream, work, problem.rule),
        bytes_moved=int(kernel.bytes_moved(problem.case)),
        flops=int(kernel.flops(problem.case)),
        worst=worst,
    )


def _timed(stream: Stream, work: Work, rule: MedianInterval) -> list[Timed]:
    """Cold and warm, without and with a graph where the device has them."""
    found = []
    for graph in (False, True) if stream.name == "cuda" else (False,):
        for cold in (True, False):
            cache: Any = "cold" if cold else "warm"
            try:
                timing = measure(stream, work, cold=cold, graph=graph, rule=rule)
            except NoGraph as error:
                found.append(Timed(cache=cache, graph=graph, verdict="failed", reason=str(error)))
                continue
            found.append(
                Timed(
                    cache=cache,
                    graph=graph,
                    verdict="ok",
                    calls=timing.calls,
                    stop=timing.stop,
                    time=timing.time,
                    verdicts=timing.verdicts,
                )
            )
    return found


def _apart(kernel: Kernel, given: Mapping[str, Any], originals: Mapping[str, Any], dtype: str) -> tuple[float, str]:
    """How far the outputs are from the reference, and a sentence when that is too far."""
    expected = kernel.reference(**originals)
    expected = tuple(expected) if isinstance(expected, (tuple, list)) else (expected,)
    tolerance, worst = kernel.tolerance[dtype], 0.0
    for name, reference in zip(kernel.outputs, expected, strict=True):
        share = _worst(given[name], reference, tolerance)
        if share > 1:  # only what is wrong is brought to the CPU, to be told in full
            return share, str(compare(name, given[name], reference, tolerance))
        worst = max(worst, share)
    return worst, ""


def _worst(found: Any, expected: Any, tolerance: Tolerance) -> float:
    """The largest |found - expected| as a share of what is allowed, worked out where the tensors are."""
    if found.shape != expected.shape or not found.numel():
        return math.inf if found.shape != expected.shape else 0.0
    out, ref = found.detach().double(), expected.detach().double()
    same = (out == ref) | (out.isnan() & ref.isnan())
    allowed = (tolerance.absolute + tolerance.relative * ref.abs()).nan_to_num(nan=0.0, posinf=0.0)
    share = ((out - ref).abs() / allowed).masked_fill(same, 0.0)
    return float(share.nan_to_num(nan=math.inf).max())


def _copy(stream: Stream, device: str, rule: MedianInterval) -> Answer:
    size = COPY_BYTES[stream.name]
    source = torch.ones(size // 4, dtype=torch.int32, device=device)
    target = torch.empty_like(source)
    timing = _timed(stream, lambda: target.copy_(source), rule)
    return Answer(verdict="ok", timed=timing, bytes_moved=2 * size)


def _matmul(stream: Stream, device: str, rule: MedianInterval) -> Answer:
    size, kind = MATMUL[stream.name], MATMUL_DTYPE[stream.name]
    left, right = (torch.randn(size, size, device=device).to(kind) for _ in range(2))
    out = torch.empty_like(left)
    timing = _timed(stream, lambda: torch.mm(left, right, out=out), rule)
    return Answer(verdict="ok", timed=timing, bytes_moved=3 * size**2 * left.itemsize, flops=2 * size**3)


CEILINGS: dict[str, Callable[[Stream, str, MedianInterval], Answer]] = {"copy": _copy, "matmul": _matmul}
_TASKS: dict[str, Callable[[Kernel, str, Problem], Answer]] = {
    "triton": _triton,
    "launch": _launch,
    "eager": _eager,
    "compile": _compiled,
}
