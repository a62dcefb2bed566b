"""Sentences by which a library says that device memory ran out, read back into numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from hfbench.gpu.explain.picture import MemoryPicture, OtherProcess

UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
"""What `format_size` of c10/cuda/CUDACachingAllocator.cpp writes, with two digits after the point."""
UNKNOWN = 2**60
"""More than any device has: torch prints 17179869184.00 GiB where the driver told no number."""
LONGEST = 2**20
"""Characters looked at, from the end: a log may be long, and the last failure is the one that counts."""

_SIZE = r"(\d+(?:\.\d+)?) ?(bytes|KiB|MiB|GiB)"
_REQUEST = re.compile(rf"Tried to allocate {_SIZE}")
_NEW = {
    "total": rf"has a total capac(?:i)?ty of {_SIZE}",  # 2.1 spelled it without the i
    "free": rf"of which {_SIZE} is free",
    "process_used": rf"this process has {_SIZE} memory in use",
    "cap": rf"{_SIZE} allowed",
    "held": rf"Of the allocated memory {_SIZE} is allocated by PyTorch",
    "private_cached": rf"with {_SIZE} allocated in private pools",
    "cached": rf"and {_SIZE} is reserved by PyTorch but unallocated",
}
_OLD = {
    "total": rf"{_SIZE} total capacity",
    "free": rf"{_SIZE} free",
    "cap": rf"{_SIZE} allowed",
    "held": rf"{_SIZE} already allocated",
    "reserved": rf"{_SIZE} reserved in total by PyTorch",
}
_ASYNC = {
    "held": rf"Currently allocated\s*: {_SIZE}",
    "request": rf"Requested\s*: {_SIZE}",
    "total": rf"Device limit\s*: {_SIZE}",
    "free": rf"Free \(according to CUDA\)\s*: {_SIZE}",
    "cap": rf"PyTorch limit \(set by user-supplied memory fraction\)\s*: {_SIZE}",
}
_GPU = re.compile(r"\bGPU (\d+)")
_OTHER = re.compile(rf"Process (\d+) has {_SIZE} memory in use")
_OUTSIDE = (
    (re.compile(r"CUBLAS_STATUS_ALLOC_FAILED"), "cuBLAS"),
    (re.compile(r"CUDNN_STATUS_ALLOC_FAILED"), "cuDNN"),
    (re.compile(r"NCCL[^\n]{0,200}out of memory|Cuda failure (?:2 )?'out of memory'"), "NCCL"),
    (re.compile(r"(?:CUDA|HIP)(?: driver)? error: out of memory|CUDA_ERROR_OUT_OF_MEMORY"), "CUDA"),
)
_STARTS = re.compile(
    r"(?:CUDA|HIP) out of memory\. Tried to allocate|Allocation on device\b[^.\n]{0,40}would exceed allowed memory"
)


@dataclass(frozen=True, kw_only=True)
class OomSentence:
    """What a sentence says, in bytes within half of its last digit; None where it says nothing."""

    wording: str
    """`torch 2.1`, `torch 2.0`, `cudaMallocAsync` or `outside`."""
    outside: str = ""
    device: int | None = None
    request: int | None = None
    total: int | None = None
    free: int | None = None
    cap: int | None = None
    allocated: int | None = None
    reserved: int | None = None
    private_cached: int | None = None
    process_used: int | None = None
    others: tuple[tuple[int, int | None], ...] = field(default=())

    def picture(self) -> MemoryPicture:
        """The sentence as a picture of a failure."""
        return MemoryPicture(
            device="" if self.device is None else f"cuda:{self.device}",
            failed=True,
            outside=self.outside,
            request=self.request,
            total=self.total,
            free=self.free,
            cap=self.cap,
            allocated=self.allocated,
            reserved=self.reserved,
            private_cached=self.private_cached,
            process_used=self.process_used,
            others=tuple(OtherProcess(pid=pid, bytes=held) for pid, held in self.others),
        )


def parse_oom(text: str) -> OomSentence | None:
    """The last sentence of a text that says memory ran out; None when there is none.

    Wordings: torch up to 2.0, torch from 2.1 on, its cudaMallocAsync backend, and cuBLAS, cuDNN, NCCL and CUDA alone.
    """
    tail = text[-LONGEST:]
    if (begun := _last(_STARTS.finditer(tail))) is None:
        outside = [(at, name) for pattern, name in _OUTSIDE for at in [_last(pattern.finditer(tail))] if at is not None]
        return OomSentence(wording="outside", outside=max(outside)[1]) if outside else None
    said = re.sub(r"(?:\s|(?<=\n)[>#*])+", " ", tail[begun : begun + 4000])
    if following := [found.start() for found in _STARTS.finditer(said, 1)]:
        said = said[: following[0]]
    if said.startswith("Allocation"):
        told = _sizes(_ASYNC, said)
        return OomSentence(
            wording="cudaMallocAsync",
            request=told["request"],
            total=told["total"],
            free=told["free"],
            cap=told["cap"],
            allocated=told["held"],
        )
    request = _REQUEST.search(said)
    gpu = _GPU.search(said)
    old = "already allocated" in said
    told = _sizes(_OLD if old else _NEW, said)
    private, held = told.get("private_cached"), told["held"]
    # the sentence adds the free blocks of private pools to what is allocated, and calls them allocated there
    allocated = held - private if held is not None and private is not None else held
    reserved = told.get("reserved")
    if not old and held is not None and told["cached"] is not None:
        reserved = held + told["cached"]
    return OomSentence(
        wording="torch 2.0" if old else "torch 2.1",
        device=int(gpu[1]) if gpu else None,
        request=_bytes(request[1], request[2]) if request else None,
        total=told["total"],
        free=told["free"],
        cap=told["cap"],
        allocated=allocated if allocated is None else max(0, allocated),
        reserved=reserved,
        private_cached=private,
        process_used=told.get("process_used"),
        others=tuple((int(pid), _bytes(number, unit)) for pid, number, unit in _OTHER.findall(said)),
    )


def _sizes(patterns: dict[str, str], said: str) -> dict[str, int | None]:
    found = {name: re.search(pattern, said) for name, pattern in patterns.items()}
    return {name: _bytes(match[1], match[2]) if match else None for name, match in found.items()}


def _bytes(number: str, unit: str) -> int | None:
    count = round(float(number) * UNITS[unit])
    return count if count < UNKNOWN else None


def _last(matches: Iterable[re.Match[str]]) -> int | None:
    at = None
    for match in matches:
        at = match.start()
    return at
