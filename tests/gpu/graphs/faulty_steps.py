"""Decode steps that are wrong in one way each, as people write them."""

from __future__ import annotations

from typing import Any

import torch
from transformers import DynamicCache, StaticCache

from hfbench.gpu.graphs.step import DecodeStep


class StaleInput(DecodeStep):
    """Hands new tokens over in a new tensor, which the graph does not know."""

    def write(self, tokens: Any) -> None:
        self.tokens = tokens.clone()


class StaleCopy(DecodeStep):
    """Writes in place, but into tokens that were copied to Python and back when the step was made."""

    def __init__(self, *args: Any, **told: Any) -> None:
        super().__init__(*args, **told)
        self.held = torch.zeros_like(self.tokens)

    def write(self, tokens: Any) -> None:
        super().write(tokens)
        self.held = tokens.clone()

    def run(self) -> Any:
        return self._forward(self.held)


class GrowingCache(DecodeStep):
    """Appends to a cache that is made longer, and so elsewhere, by every token."""

    def __init__(self, model: Any, device: Any, *, batch: int, room: int) -> None:
        super().__init__(model, device, batch=batch, room=room)
        self.cache = DynamicCache(config=model.config)

    def prefill(self, prompt: Any) -> Any:
        self.cache = DynamicCache(config=self.model.config)
        return self._forward(prompt)


class BakedBranch(DecodeStep):
    """Takes another way from the sixth call on."""

    calls = 0

    def run(self) -> Any:
        self.calls += 1
        logits = super().run()
        return logits * 2 if self.calls > 5 else logits


class BakedScalar(DecodeStep):
    """Adds a number that Python counts."""

    calls = 0

    def run(self) -> Any:
        self.calls += 1
        return super().run() + float(self.calls)


class BakedTensor(DecodeStep):
    """Adds a tensor that Python makes of a number it counts."""

    calls = 0

    def run(self) -> Any:
        self.calls += 1
        return super().run() + torch.tensor(float(self.calls))


class NotReset(DecodeStep):
    """Leaves the cache where warm-up moved it."""

    def rewind(self) -> None:
        pass


class Synchronises(DecodeStep):
    """Looks at a value in the middle of the step; `how` says by which way."""

    def __init__(self, *args: Any, how: str = "item", **told: Any) -> None:
        super().__init__(*args, **told)
        self.how = how

    def run(self) -> Any:
        logits = super().run()
        if self.how == "bool" and logits.max() > 1e9:
            return logits * 0
        if self.how == "item":
            logits.sum().item()
        if self.how == "tolist":
            logits[0, :2].tolist()
        if self.how == "mask":
            logits[logits > 0].sum()
        if self.how == "nonzero":
            logits.nonzero()
        if self.how == "cpu":
            logits.cpu()
        return logits


class Uninitialised(DecodeStep):
    """Has a cache without memory, which comes into being by the first step."""

    def prefill(self, prompt: Any) -> Any:
        return None


class UninitialisedAtCapture(DecodeStep):
    """Resets by taking a new cache, whose memory comes into being inside the capture."""

    def rewind(self) -> None:
        self.cache = StaticCache(config=self.model.config, max_cache_len=self.cache.layers[0].max_cache_len)


class UnwrittenCache(DecodeStep):
    """Has memory beyond the prompt that was never written, here NaN."""

    def prefill(self, prompt: Any) -> Any:
        logits = super().prefill(prompt)
        for layer in self.cache.layers:
            layer.values[:, :, prompt.shape[1] :] = torch.nan
        return logits


class WrongPositions(DecodeStep):
    """Tells the model one position for all steps, with a graph and without one."""

    def run(self) -> Any:
        position = torch.full_like(self.tokens, 3)
        told = {"input_ids": self.tokens, "position_ids": position, self._cache_name: self.cache}
        return self.model(**told, use_cache=True).logits[:, -1]


class NotFinite(DecodeStep):
    """Divides by zero."""

    def run(self) -> Any:
        logits = super().run()
        return logits / torch.zeros_like(logits)
