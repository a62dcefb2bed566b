"""Sentences of running out, as torch and libraries wrote them, read back into bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from hfbench.gpu.explain.sentence import UNITS, OomSentence, parse_oom

GIB, MIB = 2**30, 2**20

TORCH_2_0 = (
    "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 23.69 GiB total capacity; 22.50 GiB already allocated; "
    "10.00 MiB free; 22.80 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting "
    "max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
)
TORCH_2_0_CAPPED = TORCH_2_0.replace("10.00 MiB free; ", "10.00 MiB free; 11.85 GiB allowed; ")
TORCH_2_1 = (
    "CUDA out of memory. Tried to allocate 224.00 MiB. GPU 0 has a total capacty of 44.34 GiB of which 160.81 MiB is "
    "free. Process 47694 has 44.17 GiB memory in use. Of the allocated memory 43.36 GiB is allocated by PyTorch, and "
    "396.27 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
    "max_split_size_mb to avoid fragmentation."
)
CURRENT = (
    "CUDA out of memory. Tried to allocate 25.96 GiB. GPU 4 has a total capacity of 79.18 GiB of which 23.04 GiB is "
    "free. Process 7478 has 4.08 GiB memory in use. Including non-PyTorch memory, this process has 52.02 GiB memory in "
    "use. 60.00 GiB allowed; Of the allocated memory 45.89 GiB is allocated by PyTorch, with 1.38 MiB allocated in "
    "private pools (e.g., CUDA Graphs), and 3.01 GiB is reserved by PyTorch but unallocated. If reserved but "
    "unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation. "
    " See documentation for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
)
ASYNC = """Allocation on device 0 would exceed allowed memory. (out of memory)
Currently allocated     : 6.96 GiB
Requested               : 58.00 MiB
Device limit            : 8.00 GiB
Free (according to CUDA): 0 bytes
PyTorch limit (set by user-supplied memory fraction)
                        : 17179869184.00 GiB"""


def size(number: float, unit: int) -> int:
    return round(number * unit)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            TORCH_2_0,
            OomSentence(
                wording="torch 2.0",
                device=1,
                request=20 * MIB,
                total=size(23.69, GIB),
                free=10 * MIB,
                allocated=size(22.5, GIB),
                reserved=size(22.8, GIB),
            ),
        ),
        (
            TORCH_2_1,
            OomSentence(
                wording="torch 2.1",
                device=0,
                request=224 * MIB,
                total=size(44.34, GIB),
                free=size(160.81, MIB),
                allocated=size(43.36, GIB),
                reserved=size(43.36, GIB) + size(396.27, MIB),
                others=((47694, size(44.17, GIB)),),
            ),
        ),
        (
            CURRENT,
            OomSentence(
                wording="torch 2.1",
                device=4,
                request=size(25.96, GIB),
                total=size(79.18, GIB),
                free=size(23.04, GIB),
                cap=60 * GIB,
                allocated=size(45.89, GIB) - size(1.38, MIB),
                reserved=size(45.89, GIB) + size(3.01, GIB),
                private_cached=size(1.38, MIB),
                process_used=size(52.02, GIB),
                others=((7478, size(4.08, GIB)),),
            ),
        ),
        (
            ASYNC,
            OomSentence(wording="cudaMallocAsync", request=58 * MIB, total=8 * GIB, free=0, allocated=size(6.96, GIB)),
        ),
    ],
    ids=["2.0", "2.1", "current", "async"],
)
def test_every_wording_is_read(text: str, said: OomSentence) -> None:
    assert parse_oom(text) == said


def test_a_cap_is_read_from_the_old_wording() -> None:
    said = parse_oom(TORCH_2_0_CAPPED)
    assert said is not None
    assert (said.cap, said.free) == (size(11.85, GIB), 10 * MIB)


@pytest.mark.parametrize(
    ("text", "who"),
    [
        ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "cuBLAS"),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", "cuDNN"),
        ("NCCL WARN Cuda failure 2 'out of memory'", "NCCL"),
        ("RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported", "CUDA"),
        ("RuntimeError: CUDA driver error: out of memory", "CUDA"),
    ],
)
def test_libraries_that_ask_the_driver_themselves_are_named(text: str, who: str) -> None:
    assert parse_oom(text) == OomSentence(wording="outside", outside=who)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate 67108864 bytes.",
        "the run may end with an out of memory error",
        "RuntimeError: NCCL error: unhandled system error",
    ],
)
def test_what_is_no_failure_of_device_memory_is_none(text: str) -> None:
    assert parse_oom(text) is None


def test_a_number_the_driver_did_not_tell_is_unknown_and_not_16_exbibytes() -> None:
    said = parse_oom(CURRENT.replace("this process has 52.02 GiB", "this process has 17179869184.00 GiB"))
    assert said is not None
    assert said.process_used is None


def test_a_sentence_folded_by_a_log_is_still_read() -> None:
    folded = CURRENT.replace(" GPU 4", "\n> GPU 4").replace(" Of the", "\n   Of the")
    assert parse_oom(folded) == parse_oom(CURRENT)


def test_the_last_failure_of_a_log_counts_and_borrows_nothing_from_the_one_before() -> None:
    assert parse_oom(f"{CURRENT}\nretrying\n{TORCH_2_0}\nbye") == parse_oom(TORCH_2_0)
    assert parse_oom(f"{TORCH_2_0}\n{CURRENT}") == parse_oom(CURRENT)


def spelled(count: int) -> str:
    """As format_size of c10/cuda/CUDACachingAllocator.cpp does."""
    for unit in ("GiB", "MiB", "KiB"):
        if count >= UNITS[unit]:
            return f"{count / UNITS[unit]:.2f} {unit}"
    return f"{count} bytes"


def digit(count: int) -> float:
    """Half of the last digit of what was spelled."""
    return next((UNITS[unit] for unit in ("GiB", "MiB", "KiB") if count >= UNITS[unit]), 1) * 0.005 + 0.5


held = some.integers(min_value=0, max_value=2**40)


@given(request=held, total=held, free=held, used=held, cap=held, told=held, idle=held, other=held)
def test_what_torch_spells_is_read_back_within_half_a_digit(
    request: int, total: int, free: int, used: int, cap: int, told: int, idle: int, other: int
) -> None:
    said = parse_oom(
        f"CUDA out of memory. Tried to allocate {spelled(request)}. GPU 0 has a total capacity of {spelled(total)} of "
        f"which {spelled(free)} is free. Process 9 has {spelled(other)} memory in use. Including non-PyTorch memory, "
        f"this process has {spelled(used)} memory in use. {spelled(cap)} allowed; Of the allocated memory "
        f"{spelled(told)} is allocated by PyTorch, and {spelled(idle)} is reserved by PyTorch but unallocated."
    )
    assert said is not None
    read = [said.request, said.total, said.free, said.process_used, said.cap, said.allocated, said.others[0][1]]
    for got, given_ in zip(read, [request, total, free, used, cap, told, other], strict=True):
        assert got is not None
        assert abs(got - given_) <= digit(given_)
    assert said.reserved is not None
    assert abs(said.reserved - told - idle) <= digit(told) + digit(idle)


@given(some.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    parse_oom(text)
    parse_oom("CUDA out of memory. Tried to allocate " + text)
