"""Kernel files for tests: one that copies, changed line by line, and one whose configurations are faults."""

from __future__ import annotations

from pathlib import Path

COPY = '''"""Copies x to y."""

import triton
import triton.language as tl

from hfbench.gpu.kernels.declaration import Config, Kernel, Tolerance


@triton.jit
def copy_kernel(x, y, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + place, mask=place < n)
    tl.store(y + place, values, mask=place < n)


def inputs(case):
    return {"x": case.normal(case["N"])}


def arguments(x):
    return {"x": x, "y": x.new_empty(x.shape), "n": x.numel()}


KERNEL = Kernel(
    name="copy",
    fn=copy_kernel,
    inputs=inputs,
    arguments=arguments,
    outputs=("y",),
    reference=lambda x: x,
    grid=lambda given, constants: (triton.cdiv(given["n"], constants["BLOCK"]),),
    signature={"x": "*T:16", "y": "*T:16", "n": "i32"},
    configs=(Config(constants={"BLOCK": 64}), Config(constants={"BLOCK": 128}, num_warps=8)),
    shapes=({"N": 1}, {"N": 100}),
    dtypes=("fp32", "fp16"),
    tolerance={"fp32": Tolerance(0), "fp16": Tolerance(0)},
    bytes_moved=lambda case: 2 * case["N"] * case.itemsize,
    flops=lambda case: 0,
)
'''

ZOO = '''"""A kernel that goes wrong in the way its configuration names."""

import ctypes
import os
import sys

import triton
import triton.language as tl

from hfbench.gpu.kernels.declaration import Config, Kernel, Tolerance

FAULTS = (
    "none", "past", "before", "wild", "rows", "input", "load", "far", "atomic", "differs", "unwritten", "nan",
    "raises", "segfault", "heap", "exit", "exits", "prints", "loop",
)
print("this is no JSON {", flush=True)
os.write(1, b"neither is this\\n")


def native(fault):
    """What no kernel may do, and a file can all the same."""
    if fault == "segfault":
        ctypes.string_at(0)
    if fault == "heap":
        libc = ctypes.CDLL(None)
        libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
        block = libc.malloc(24)
        ctypes.memset(block - 16, 0x41, 64)
        libc.free(block)
    if fault == "exit":
        os._exit(5)
    if fault == "exits":
        sys.exit(3)
    if fault == "prints":
        print("{}\\n" * 1000, flush=True)


@triton.jit
def zoo_kernel(x, y, n, stride, FAULT: tl.constexpr):
    place = tl.arange(0, 64)
    inside = place < n
    values = tl.load(x + place, mask=inside)
    native(FAULT)
    if FAULT == "past":
        tl.store(y + place, values, mask=place < n + 3)
    if FAULT == "before":
        tl.store(y + place - 5, values, mask=inside)
    if FAULT == "wild":
        tl.store(y + place + 100000000, values, mask=inside)
    if FAULT == "rows":
        tl.store(y + stride - 1, 0.5)
    if FAULT == "input":
        tl.store(x + place, values + 1, mask=inside)
    if FAULT == "load":
        values = tl.load(x + place)
    if FAULT == "far":
        values = tl.load(x + place + 100000000)
    if FAULT == "atomic":
        tl.atomic_add(y + place + 2, values, mask=inside)
    if FAULT == "differs":
        values = values * 1.5
    if FAULT == "unwritten":
        inside = place < n - 2
    if FAULT == "nan":
        values = values / 0 * 0
    if FAULT == "raises":
        values = values + nothing_of_this_name
    while FAULT == "loop":
        values = values + 1
    tl.store(y + place, values, mask=inside)


def arguments(x):
    """y is the left part of two rows, so that there are bytes between them."""
    y = x.new_empty(2, x.numel() + 4)[:, : x.numel()]
    return {"x": x, "y": y, "n": x.numel(), "stride": y.stride(0)}


def reference(x):
    import torch

    return torch.stack([x, torch.full_like(x, float("nan"))])


KERNEL = Kernel(
    name="zoo",
    fn=zoo_kernel,
    inputs=lambda case: {"x": case.normal(case["N"])},
    arguments=arguments,
    outputs=("y",),
    reference=reference,
    grid=lambda given, constants: (1,),
    signature={"x": "*T:16", "y": "*T:16", "n": "i32", "stride": "i32"},
    configs=tuple(Config(constants={"FAULT": fault}, name=fault) for fault in FAULTS),
    shapes=({"N": 50},),
    dtypes=("fp32",),
    tolerance={"fp32": Tolerance(1e-6)},
    bytes_moved=lambda case: 2 * case["N"] * case.itemsize,
    flops=lambda case: 0,
)
'''


def write(folder: Path, text: str = COPY, *changes: tuple[str, str], name: str = "mine.py") -> Path:
    """A kernel file in which each first text, which must be there, gives way to the second."""
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


def line_of(path: Path, text: str) -> int:
    """The number of the first line that holds the text."""
    return next(number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line)
