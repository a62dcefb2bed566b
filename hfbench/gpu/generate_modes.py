"""Ways to execute the decode step beside eager: a static cache, torch.compile, a captured CUDA graph, an engine."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from hfbench.errors import HfbenchError, MissingError, UsageError
from hfbench.gpu.decoding import Decoder, Generates, Iteration, clock
from hfbench.gpu.generate_model import Loaded, first_line
from hfbench.gpu.generate_result import Compiled, EngineUsed, Verified
from hfbench.gpu.graphs.recording import recorder_for, room_for
from hfbench.gpu.graphs.step import DecodeStep
from hfbench.gpu.graphs.tolerance import tolerance_of
from hfbench.gpu.reading import Unavailable

MODES = ("eager", "static-cache", "compile", "cudagraph")
ENGINE = "engine:"
"""Begins a mode that names the folder of an engine."""
VERIFIED_STEPS = 8
"""Most steps compared with eager before a mode is timed."""
GRAPH_STEPS = 4
"""Steps of a captured graph that are checked against both references of graph.verify."""
REPLAYING = ("reduce-overhead", "max-autotune")
"""Modes of torch.compile that use CUDA graphs of their own, and want to be told when a step begins."""


@dataclass(frozen=True)
class Prepared:
    """A decoder that was verified, and what is to be said of it."""

    decoder: Generates
    verified: Verified | None = None
    compiled: Compiled | None = None
    engine: EngineUsed | None = None


class Engines(Protocol):
    """Engines as modes. They know this room, so that whoever performs an action hands them in."""

    def dtype(self, mode: str, *, batch: int, prompt: int | None, new_tokens: int) -> str:
        """The dtype of an engine, from its manifest; UsageError when it was built for other shapes.

        `prompt` is None when its length is not known yet.
        """

    def open(self, mode: str, loaded: Loaded, *, threads: int) -> tuple[Any, EngineUsed]:
        """A decoder that drives the engine by `prefill`, `step` and `generate`, and what is to be said of it."""


class StaticDecoder:
    """Greedy decoding over a cache of fixed size; `advance` takes the tokens written last to their logits.

    Emptying the cache is part of the time to the first token.
    """

    def __init__(self, step: DecodeStep, device: Any, advance: Callable[[], Any]) -> None:
        self.step, self.advance, self.now = step, advance, clock(device)

    def generate(self, prompt: Any, new_tokens: int) -> Iteration:
        """Prefill `prompt` (batch x length) and take the likeliest token `new_tokens` times, past any end token."""
        import torch

        with torch.inference_mode():
            marks = [self.now()]
            logits = self.step.prefill(prompt)
            tokens = [logits.argmax(-1, keepdim=True)]
            marks.append(self.now())
            for _ in range(new_tokens - 1):
                self.step.write(tokens[-1])
                logits = self.advance()
                tokens.append(logits.argmax(-1, keepdim=True))
                marks.append(self.now())
            finite = bool(torch.isfinite(logits).all())
            output_ids: list[list[int]] = torch.cat(tokens, dim=1).tolist()
        return Iteration(marks=tuple(marks), output_ids=output_ids, finite=finite)


def refuse_mode(mode: str, *, on_gpu: bool) -> None:
    """MissingError for a mode this device cannot run, before anything is loaded."""
    if mode == "cudagraph" and not on_gpu:
        raise MissingError(
            "mode cudagraph needs a GPU with CUDA, and the run is on the CPU",
            where="bench.generate",
            remedy="use mode static-cache here, or hfbench graph verify, which checks the capture without timing it",
        )


def prepare(
    mode: str, model: Any, device: Any, *, dtype: str, prompt: Any, new_tokens: int, compile_mode: str
) -> Prepared:
    """A decoder of a mode, verified against eager; HfbenchError when it gives other logits than eager does.

    MissingError when torch.compile finds no compiler.
    """
    import torch

    eager = Decoder(model, device)
    if mode == "eager":
        return Prepared(eager)
    room = max(prompt.shape[1] + new_tokens, room_for(prompt.shape[1], GRAPH_STEPS) if mode == "cudagraph" else 0)
    step = DecodeStep(model, device, batch=prompt.shape[0], room=room)
    advance, compiled, graph = step.run, None, ""
    if mode == "compile":
        with torch.inference_mode():
            step.prefill(prompt)
            advance, compiled = _compile(step, compile_mode, device)
    elif mode == "cudagraph":
        advance, graph = _capture(step, prompt, device, dtype)

    def after(tokens: Any) -> Any:
        step.write(tokens)
        return advance()

    steps = min(VERIFIED_STEPS, new_tokens)
    verified = _verify(step.prefill, after, eager, prompt, steps, mode=mode, dtype=dtype, graph=graph)
    return Prepared(StaticDecoder(step, device, advance), verified, compiled)


def prepare_engine(
    engines: Engines, mode: str, loaded: Loaded, *, prompt: Any, new_tokens: int, threads: int
) -> Prepared:
    """An engine as a decoder, verified against eager as the other modes are.

    UsageError when it was built for another dtype than the model was loaded in.
    """
    decoder, used = engines.open(mode, loaded, threads=threads)
    if used.dtype != loaded.dtype:
        found = f"the engine is in {used.dtype} and the model was loaded as {loaded.dtype}"
        raise UsageError(found, where=used.folder, remedy=f"give --dtype {used.dtype}")
    decoder.refuse_shape(tuple(prompt.shape), new_tokens)
    verified = _verify(
        decoder.prefill,
        decoder.step,
        Decoder(loaded.model, loaded.device),
        prompt,
        min(VERIFIED_STEPS, new_tokens),
        mode=mode,
        dtype=loaded.dtype,
    )
    return Prepared(decoder, verified, engine=used)


def _compile(step: DecodeStep, mode: str, device: Any) -> tuple[Callable[[], Any], Compiled]:
    """Compile the step twice: as the cache of compiled code on this machine is, then from that cache alone."""
    import torch
    from torch._dynamo.utils import counters

    def begin() -> None:
        if device.type == "cuda" and mode in REPLAYING:
            torch.compiler.cudagraph_mark_step_begin()

    def first_call() -> tuple[Callable[[], Any], float]:
        torch._dynamo.reset()
        forward = torch.compile(step.run, mode=mode, dynamic=False)
        now = clock(device)
        began = now()
        begin()
        forward()
        return forward, now() - began

    counters.clear()
    step.write(torch.zeros_like(step.tokens))
    began = time.perf_counter()
    try:
        forward, first = first_call()
        hits, misses = (counters["inductor"][f"fxgraph_cache_{each}"] for each in ("hit", "miss"))
        graphs, breaks = counters["stats"]["unique_graphs"], sum(counters["graph_break"].values())
        forward, second = first_call()
    except HfbenchError:
        raise  # a cancel that arrived here
    except Exception as error:
        raise _not_compiled(error) from error

    def advance() -> Any:
        begin()
        return forward()

    from_cache = hits > 0 and not misses
    return advance, Compiled(
        mode=mode,
        cold_seconds=Unavailable("the code was compiled by an earlier run and was in torch's cache")
        if from_cache
        else first,
        warm_seconds=first if from_cache else second,
        graphs=graphs,
        graph_breaks=breaks,
        seconds=time.perf_counter() - began,
    )


def _not_compiled(error: Exception) -> HfbenchError:
    """Whatever torch.compile raises, as one sentence; a missing compiler is the machine's."""
    if "InvalidCxxCompiler" in f"{type(error).__name__} {error}":
        return MissingError(
            "torch.compile finds no C++ compiler", where="mode compile", remedy="install g++, or name one in CXX"
        )
    return HfbenchError(
        f"torch.compile failed: {first_line(error)}", where="mode compile", remedy="use mode static-cache"
    )


def _capture(step: DecodeStep, prompt: Any, device: Any, dtype: str) -> tuple[Callable[[], Any], str]:
    """Capture the step and check the graph as graph.verify does; HfbenchError with the fault it finds."""
    import torch

    from hfbench.gpu.graphs.verify import capture, check

    steps = GRAPH_STEPS
    with torch.inference_mode():
        fresh = prompt.repeat(1, steps + 1)[:, : steps + 1]  # the tokens of the prompt again, in their order
        taken = capture(step, torch.cat([prompt, fresh], dim=1), steps=steps, recorder=recorder_for(device))
        checked = check(taken, batch=prompt.shape[0], tolerance=tolerance_of(dtype))
    step.forget()
    recording = taken.recording
    if checked.verdict != "pass" or recording is None:
        raise HfbenchError(
            f"the captured decode step is wrong ({checked.fault}): {checked.evidence}",
            where="mode cudagraph",
            remedy="hfbench graph verify tells all, and mode static-cache runs without a graph",
        )

    def advance() -> Any:
        recording.replay()
        return recording.output

    return advance, f"the graph passed {steps} steps against the step run eagerly and a forward without a cache"


def _verify(
    prefill: Callable[[Any], Any],
    after: Callable[[Any], Any],
    eager: Decoder,
    prompt: Any,
    steps: int,
    *,
    mode: str,
    dtype: str,
    graph: str = "",
) -> Verified:
    """Give both eager's tokens and compare the logits of every step; `after` takes tokens to the logits after them."""
    import torch

    tolerance = tolerance_of(dtype).no_cache
    worst, alike = 0.0, 0
    with torch.inference_mode():
        logits, cache = eager.forward(prompt, None)
        ours = prefill(prompt)
        for number in range(steps):
            if number:
                tokens = logits.argmax(-1, keepdim=True)
                logits, cache = eager.forward(tokens, cache)
                ours = after(tokens)
            scale = logits.float().abs().max().item()
            apart = (ours.float() - logits.float()).abs().max().item()
            worst = max(worst, apart / scale if scale else apart) if apart == apart else float("inf")
            alike += int((ours.argmax(-1) == logits.argmax(-1)).sum())
    if worst > tolerance and bool(logits.isfinite().all()):
        raise HfbenchError(
            f"mode {mode} gives other logits than eager: off by {worst:.1e} of the largest, allowed {tolerance:.1e}",
            where="bench.generate",
            remedy="try dtype fp32 to tell a fault from rounding, or use mode eager",
        )
    return Verified(
        against="eager: the same tokens, logits of every step",
        steps=steps,
        largest_error=worst if worst < float("inf") else Unavailable("eager's own logits are not finite"),
        allowed=tolerance,
        same_tokens=alike,
        of_tokens=steps * prompt.shape[0],
        graph=graph,
    )
