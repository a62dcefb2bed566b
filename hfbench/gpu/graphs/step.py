"""One decode step as a graph needs it: inputs and cache at fixed addresses, nothing read by the host."""

from __future__ import annotations

from typing import Any

from hfbench.gpu.generate_model import accepts
from hfbench.gpu.graphs.cache_state import Kept


class DecodeStep:
    """A step of a causal model over a StaticCache of `room` tokens for each of `batch` sequences.

    Call `prefill` first; then, for each token, `write` and `run`, or `write` and the replay of a recorded `run`.
    Positions are the cache's own lengths, which are tensors that advance in place.
    """

    def __init__(self, model: Any, device: Any, *, batch: int, room: int) -> None:
        import torch
        from transformers import StaticCache

        self.model = model
        self.cache: Any = StaticCache(config=model.config.get_text_config(), max_cache_len=room)
        self.tokens = torch.zeros(batch, 1, dtype=torch.long, device=device)
        self._cache_name = "cache" if accepts(model, "cache") else "past_key_values"
        self._last_only = {"logits_to_keep": 1} if accepts(model, "logits_to_keep") else {}
        self._kept: Kept | None = None

    @property
    def inputs(self) -> dict[str, Any]:
        """The tensors that new values are written into before a replay, by name."""
        return {"tokens": self.tokens}

    def prefill(self, prompt: Any) -> Any:
        """Empty the cache and read a prompt (batch x length); the logits of its last position (batch x vocabulary)."""
        self.cache.reset()
        return self._forward(prompt)

    def keep(self) -> None:
        """Remember the cache as it is, for `rewind`."""
        self._kept = Kept(self.cache)

    def rewind(self) -> None:
        """Put the cache back to where `keep` saw it: warm-up and capture have moved it on."""
        if self._kept is not None:
            self._kept.restore()

    def forget(self) -> None:
        """Let go of what `keep` remembered, which is as large as the cache."""
        self._kept = None

    def write(self, tokens: Any) -> None:
        """Put the next tokens (batch x 1) into the static input."""
        self.tokens.copy_(tokens)

    def run(self) -> Any:
        """Logits after the tokens written last (batch x vocabulary); the cache grows by them, in place."""
        return self._forward(self.tokens)

    def _forward(self, ids: Any) -> Any:
        told = {self._cache_name: self.cache}
        return self.model(input_ids=ids, use_cache=True, **told, **self._last_only).logits[:, -1]
