"""Greedy decoding with a KV cache, with a time for every token: one path for CPU and CUDA."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

from hfbench.errors import HfbenchError
from hfbench.gpu.generate_model import accepts


@dataclass(frozen=True, kw_only=True)
class Iteration:
    """One generation. `marks[0]` is the start and `marks[k]` the moment token k was known, in seconds of one clock."""

    marks: tuple[float, ...]
    output_ids: list[list[int]]
    finite: bool
    """Whether the last logits were all finite; half precision can overflow silently."""

    @property
    def ttft(self) -> float:
        """Seconds to the first token."""
        return self.marks[1] - self.marks[0]

    @property
    def e2e(self) -> float:
        """Seconds to the last token."""
        return self.marks[-1] - self.marks[0]

    @property
    def gaps(self) -> list[float]:
        """Seconds between one token and the next, the first token not counted."""
        return [later - earlier for earlier, later in pairwise(self.marks[1:])]

    @property
    def tpot(self) -> float:
        """Mean seconds per token after the first; ZeroDivisionError for a single token, which callers refuse."""
        return (self.e2e - self.ttft) / (len(self.marks) - 2)


class Generates(Protocol):
    """Whatever can be timed: one generation after another, by whichever way of executing the model."""

    def generate(self, prompt: Any, new_tokens: int) -> Iteration:
        """Prefill `prompt` (batch x length) and take the likeliest token `new_tokens` times, past any end token."""


class Decoder:
    """A model and the names its forward gives to the cache and to the logits wanted."""

    def __init__(self, model: Any, device: Any) -> None:
        self.model = model
        self.now = clock(device)
        self._cache_name = "cache" if accepts(model, "cache") else "past_key_values"
        self._last_only = {"logits_to_keep": 1} if accepts(model, "logits_to_keep") else {}

    def generate(self, prompt: Any, new_tokens: int) -> Iteration:
        """Prefill `prompt` (batch x length) and take the likeliest token `new_tokens` times, past any end token."""
        import torch

        with torch.inference_mode():
            marks = [self.now()]
            logits, cache = self.forward(prompt, None)
            tokens = [logits.argmax(-1, keepdim=True)]
            marks.append(self.now())
            for _ in range(new_tokens - 1):
                logits, cache = self.forward(tokens[-1], cache)
                tokens.append(logits.argmax(-1, keepdim=True))
                marks.append(self.now())
            finite = bool(torch.isfinite(logits).all())
            output_ids: list[list[int]] = torch.cat(tokens, dim=1).tolist()
        return Iteration(marks=tuple(marks), output_ids=output_ids, finite=finite)

    def forward(self, ids: Any, cache: Any) -> tuple[Any, Any]:
        """Logits of the last position (batch x vocabulary) and the cache that now holds `ids` as well."""
        told = {} if cache is None else {self._cache_name: cache}
        output = self.model(input_ids=ids, use_cache=True, **told, **self._last_only)
        cache = getattr(output, self._cache_name, None)
        if cache is None:
            raise HfbenchError(f"{type(self.model).__name__} returns no KV cache, so its decoding cannot be timed")
        return output.logits[:, -1], cache


def clock(device: Any) -> Callable[[], float]:
    """A clock that waits for the device first: work handed to a GPU is not work done."""
    if device.type != "cuda":
        return time.perf_counter
    import torch

    def after_the_device() -> float:
        torch.cuda.synchronize(device)
        return time.perf_counter()

    return after_the_device
