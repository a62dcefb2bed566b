"""Steps of engines that take a KV cache and return another one: two caches that change places after each call."""

from __future__ import annotations

from typing import Any, Protocol

from hfbench.engines.programs import CacheForm


class Side:
    """One of the two caches, as torch sees it."""

    def __init__(self, form: CacheForm, device: Any) -> None:
        self.keys, self.values = form.zeros(device)

    def named(self, prefix: str = "") -> dict[str, Any]:
        """Its tensors by the names of the graph: `keys.0`, or `new_keys.0`."""
        kinds = (("keys", self.keys), ("values", self.values))
        return {f"{prefix}{kind}.{index}": each for kind, held in kinds for index, each in enumerate(held)}

    def empty(self) -> None:
        """Forget all tokens."""
        for each in (*self.keys, *self.values):
            each.zero_()


class Runs(Protocol):
    """A runtime with a graph loaded and both directions bound."""

    def __call__(self, ids: Any, turn: int) -> None:
        """Run the graph from side `turn` into the other one, logits into their place."""


class ExchangingSteps:
    """An engine whose graph changes nothing it is given. `position` and `logits` are where the runtime looks."""

    def __init__(self, form: CacheForm, batch: int) -> None:
        import torch

        self.form = form
        self.sides = (Side(form, torch.device("cpu")), Side(form, torch.device("cpu")))
        self.position = torch.zeros((), dtype=torch.long)
        self.logits = torch.zeros(batch, form.vocabulary, dtype=getattr(torch, form.dtype))
        self.run: Runs | None = None
        self._turn = 0

    def prefill(self, ids: Any) -> Any:
        """Empty the cache and read prompts."""
        self._turn = 0
        self.sides[0].empty()
        return self.step(ids, 0)

    def step(self, tokens: Any, position: int) -> Any:
        """Logits after more tokens, in memory that the next step writes over."""
        assert self.run is not None
        self.position.fill_(position)
        self.run(tokens, self._turn)
        self._turn = 1 - self._turn
        return self.logits
