"""What a device copies and multiplies at best, measured in the run whose figures are held against it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hfbench.gpu.decoding import clock
from hfbench.gpu.generate_model import DTYPES, first_line
from hfbench.gpu.memory import available_memory
from hfbench.gpu.reading import Unavailable, Value
from hfbench.gpu.roofline import Ceilings
from hfbench.units import GIB, MIB

BUFFERS = {"cuda": 2**30, "cpu": 256 * MIB}
"""Bytes of one of the two buffers: far more than caches hold, so that memory is what is measured."""
SPARED = 3
"""The copy is left out when less memory than this many buffers is free."""
ROUNDS = 5
INSIDE = {"cuda": 10, "cpu": 1}
"""Repetitions between two looks at the clock: on a GPU waiting for the device would count otherwise."""
SIDES = {"cuda": 8192, "cpu": 2048}
LONG_ENOUGH = 0.02
"""Seconds a matmul must take, unless its matrices are the largest."""


def measure_ceilings(device: Any, dtype: str) -> Ceilings:
    """The best of several copies (bytes read plus written a second) and matmuls in `dtype` (2 n^3 FLOP a second)."""
    import torch

    with torch.inference_mode():
        size, copy = BUFFERS[device.type], _guarded(lambda: _copy(device))
        side, matmul = _matmul(device, getattr(torch, DTYPES.get(dtype, dtype)))
    return Ceilings(copy=copy, matmul=matmul, matmul_dtype=dtype, copy_bytes=size, matmul_size=side)


def _copy(device: Any) -> Value:
    import torch

    size = BUFFERS[device.type]
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else available_memory()
    if free is not None and free < SPARED * size:
        return Unavailable(f"too little memory was free for two buffers of {size / GIB:.2g} GiB")
    source = torch.ones(size, dtype=torch.uint8, device=device)
    target = torch.zeros_like(source)
    return 2 * size / _best(lambda: target.copy_(source), device)


def _matmul(device: Any, dtype: Any) -> tuple[int, Value]:
    """The side of the matrices and the rate: matrices grow until one product takes long enough."""
    import torch

    side, rate = 256 if device.type == "cpu" else SIDES["cuda"], Unavailable("not measured")
    told: Value = rate
    while True:

        def once(side: int = side) -> tuple[Value, float]:
            one = torch.ones(side, side, dtype=dtype, device=device)
            out = torch.empty_like(one)
            seconds = _best(lambda: torch.mm(one, one, out=out), device)
            return 2 * side**3 / seconds, seconds

        try:
            told, seconds = once()
        except RuntimeError as error:
            return side, Unavailable(first_line(error))
        if seconds >= LONG_ENOUGH or side >= SIDES[device.type]:
            return side, told
        side *= 2


def _best(once: Callable[[], Any], device: Any) -> float:
    """Seconds of the quickest repetition, after one that does not count."""
    now, inside = clock(device), INSIDE[device.type]
    once()
    took = []
    for _ in range(ROUNDS):
        began = now()
        for _ in range(inside):
            once()
        took.append((now() - began) / inside)
    return min(took)


def _guarded(measure: Callable[[], Value]) -> Value:
    try:
        return measure()
    except (RuntimeError, MemoryError) as error:  # what torch raises when memory is short after all
        return Unavailable(first_line(error))
