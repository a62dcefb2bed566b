"""Recording a step so that it can be replayed: a CUDA graph where there is CUDA, else a tape on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from hfbench.text import clip

WARM_UP = 3
"""Runs before a capture, which let libraries allocate and choose (the guide of torch.cuda.CUDAGraph asks for 3)."""
NOT_PERMITTED = (
    "not permitted when stream is capturing",
    "cudaErrorStreamCapture",
    "during CUDA graph capture",
    "unpinned",
)
"""What CUDA and torch say of an operation for which the host would wait."""


class CaptureFailed(Exception):
    """The step could not be recorded; the text is a clause that says why."""


class SyncDuringCapture(CaptureFailed):
    """The step waits for the device, which a capturing stream refuses."""


class Recording(Protocol):
    """A recorded step: `output` is written anew, in place, by each replay."""

    output: Any

    def replay(self) -> None:
        """Do what was recorded once more."""


class Recorder(Protocol):
    """One way to record steps. `kind` says which; the largest batch is to be recorded first."""

    kind: str

    def warm_up(self, run: Callable[[], Any]) -> None:
        """Run the step as often as a capture needs before it."""

    def record(self, run: Callable[[], Any]) -> Recording:
        """Record the step without computing it; CaptureFailed when that is refused."""


def room_for(prompt: int, steps: int) -> int:
    """Tokens a cache of fixed size must hold, so that one that was not reset after the warm-up stays inside as well.

    A write beyond it would end a CUDA process instead of being told.
    """
    return prompt + WARM_UP + 1 + steps


def recorder_for(device: Any) -> Recorder:
    """CUDA graphs with one private pool for a CUDA device, a tape for the CPU."""
    return CudaGraphs(device) if device.type == "cuda" else Tapes()


class Tapes:
    """Records tapes on the CPU."""

    kind = "tape on the CPU (obeys the rules of CUDA graphs, is none)"

    def warm_up(self, run: Callable[[], Any]) -> None:
        """Run the step as often as CUDA would need it, so that both do the same."""
        for _ in range(WARM_UP):
            run()

    def record(self, run: Callable[[], Any]) -> Recording:
        """Record a tape; SyncDuringCapture when the step reads a value."""
        from hfbench.gpu.graphs.tape import Tape

        tape = Tape()
        tape.record(run)
        return tape


class CudaGraphs:
    """Records CUDA graphs that share one private pool: a smaller graph reuses memory of a larger one before it."""

    kind = "CUDA graph"

    def __init__(self, device: Any) -> None:
        import torch

        self._device = device
        self._pool = torch.cuda.graph_pool_handle()

    def warm_up(self, run: Callable[[], Any]) -> None:
        """Run the step on a stream of its own, as a capture does."""
        import torch

        side, current = torch.cuda.Stream(self._device), torch.cuda.current_stream(self._device)
        side.wait_stream(current)
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                run()
        current.wait_stream(side)

    def record(self, run: Callable[[], Any]) -> Recording:
        """Capture a graph; other threads may go on using CUDA meanwhile."""
        import torch

        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
                output = run()
        except RuntimeError as error:
            told = clip(next(iter(str(error).splitlines()), type(error).__name__), 200)
            refused = any(words in str(error) for words in NOT_PERMITTED)
            raise (SyncDuringCapture if refused else CaptureFailed)(told) from error
        return _CudaRecording(graph, output)


class _CudaRecording:
    def __init__(self, graph: Any, output: Any) -> None:
        self.output = output
        self._graph = graph

    def replay(self) -> None:
        self._graph.replay()
