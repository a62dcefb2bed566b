"""The CPU and a GPU as streams that work is timed on. For child processes only."""

from __future__ import annotations

import re
import time
from pathlib import Path

import torch

from hfbench.gpu.kernels.timing import NoGraph, Stream, Work

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
USUAL_CACHE = 2**25
"""Bytes flushed where the kernel does not say how large the caches are."""
LARGEST_FLUSH = 2**28
"""A cache that a whole socket or a hypervisor's host shares may be larger than is any use to flush."""

LEAST_FLUSH = 2**28
"""Bytes, as `triton.testing.do_bench` writes: on a fast card writing less ends before the next launch arrives."""
EVENT_RESOLUTION = 5e-7
"""Seconds; CUDA's cudaEventElapsedTime gives "around 0.5 microseconds"."""
CAPTURE_WARM_UP = 3


class CpuStream:
    """Calls on this thread, timed with perf_counter."""

    name = "cpu"

    def __init__(self, caches: Path = CACHES) -> None:
        self.resolution = max(time.get_clock_info("perf_counter").resolution, 1e-7)  # a call to it takes as long
        self.flush_bytes = last_cache(caches)
        self._flush = torch.zeros(self.flush_bytes, dtype=torch.uint8)

    def times(self, work: Work, *, count: int, calls: int, cold: bool) -> list[float]:
        """Seconds of a call, `count` times."""
        taken = []
        for _ in range(count):
            if cold:
                self._flush.add_(1)
            begin = time.perf_counter()
            for _ in range(calls):
                work()
            taken.append((time.perf_counter() - begin) / calls)
        return taken

    def captured(self, work: Work, calls: int) -> Work:
        """NoGraph: there are none on a CPU."""
        raise NoGraph("the CPU has no graphs")


class CudaStream:
    """The current stream of a GPU, timed with events."""

    name = "cuda"
    resolution = EVENT_RESOLUTION

    def __init__(self, device: str) -> None:
        torch.cuda.init()  # says in words what is wrong with this torch or its driver
        torch.cuda.set_device(device)
        cache = getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0)
        self.flush_bytes = max(2 * cache, LEAST_FLUSH)
        self._flush = torch.empty(self.flush_bytes // 4, dtype=torch.int32, device=device)

    def times(self, work: Work, *, count: int, calls: int, cold: bool) -> list[float]:
        """Seconds of a call, `count` times; the queue is waited for once, at the end."""
        marks = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(count)]
        if not cold:
            work()  # keeps the GPU busy while the first sample is being queued
        for begin, end in marks:
            if cold:
                self._flush.zero_()
            begin.record()
            for _ in range(calls):
                work()
            end.record()
        torch.cuda.synchronize()
        return [begin.elapsed_time(end) / 1e3 / calls for begin, end in marks]

    def captured(self, work: Work, calls: int) -> Work:
        """Capture after a warm-up on a side stream, as CUDA graphs want it."""
        try:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(CAPTURE_WARM_UP):
                    work()
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                for _ in range(calls):
                    work()
        except RuntimeError as error:
            first = (str(error).strip() or "no message").splitlines()[0]
            raise NoGraph(f"cannot be captured in a graph: {first}") from None
        return graph.replay  # type: ignore[no-any-return]


def stream_for(device: str) -> Stream:
    """The stream of `cpu` or `cuda:N`."""
    return CpuStream() if device == "cpu" else CudaStream(device)


def last_cache(caches: Path = CACHES) -> int:
    """Bytes to write so that the largest cache of a CPU holds nothing else, as sysfs gives its size."""
    said = [re.fullmatch(r"(\d+)([KM]?)", file.read_text("ascii").strip()) for file in caches.glob("index*/size")]
    sizes = [int(each[1]) * {"": 1, "K": 2**10, "M": 2**20}[each[2]] for each in said if each]
    return min(max(sizes, default=USUAL_CACHE), LARGEST_FLUSH)
