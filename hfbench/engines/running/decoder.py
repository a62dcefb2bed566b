"""The decoder of an engine: greedy decoding that lets no shape through which the engine was not built for."""

from __future__ import annotations

from typing import Any, Protocol

from hfbench.engines.manifest import ShapeProfile
from hfbench.errors import HfbenchError, UsageError
from hfbench.gpu.decoding import Iteration, clock
from hfbench.models.problem import counted


class Steps(Protocol):
    """An engine as its runtime drives it; shapes were checked by who calls."""

    def prefill(self, ids: Any) -> Any:
        """Empty the cache and read prompts (batch x length); logits of the last position (batch x vocabulary)."""

    def step(self, tokens: Any, position: int) -> Any:
        """Logits after one more token for each sequence (batch x 1), the cache holding `position` tokens before."""


class EngineDecoder:
    """Drives an engine. `device` is where its tokens are to be, `shapes` what it was built for, `notes` what its
    runtime has to say."""

    def __init__(
        self, steps: Steps, shapes: ShapeProfile, device: Any, name: str, *, notes: tuple[str, ...] = ()
    ) -> None:
        self.shapes, self.device, self.name, self.notes = shapes, device, name, notes
        self.now = clock(device)
        self._steps, self._position, self._batch = steps, 0, 0

    def prefill(self, ids: Any) -> Any:
        """Empty the cache and read prompts (batch x length); logits of the last position (batch x vocabulary).

        UsageError naming both shapes when the engine was built for another one.
        """
        self.refuse_shape(tuple(ids.shape))
        logits = self._steps.prefill(ids)
        self._batch, self._position = int(ids.shape[0]), int(ids.shape[1])
        return logits

    def step(self, tokens: Any) -> Any:
        """Logits after one more token for each sequence (batch x 1); UsageError when the cache is full."""
        if not self._position:
            raise HfbenchError("a step was asked for before a prompt", where=self.name)
        if tuple(tokens.shape) != (self._batch, 1):
            raise _other_shape(f"a step of shape {list(tokens.shape)}", f"steps of shape {[self._batch, 1]}", self.name)
        if self._position >= self.shapes.context:
            raise _other_shape(f"token {self._position + 1}", f"a context of {self.shapes.context}", self.name)
        logits = self._steps.step(tokens, self._position)
        self._position += 1
        return logits

    def generate(self, prompt: Any, new_tokens: int) -> Iteration:
        """Prefill `prompt` (batch x length) and take the likeliest token `new_tokens` times, past any end token."""
        import torch

        self.refuse_shape(tuple(prompt.shape), new_tokens)
        with torch.inference_mode():
            marks = [self.now()]
            logits = self.prefill(prompt)
            tokens = [logits.argmax(-1, keepdim=True)]
            marks.append(self.now())
            for _ in range(new_tokens - 1):
                logits = self.step(tokens[-1])
                tokens.append(logits.argmax(-1, keepdim=True))
                marks.append(self.now())
            finite = bool(torch.isfinite(logits).all())
            output_ids: list[list[int]] = torch.cat(tokens, dim=1).tolist()
        return Iteration(marks=tuple(marks), output_ids=output_ids, finite=finite)

    def refuse_shape(self, shape: tuple[int, ...], new_tokens: int = 1) -> None:
        """UsageError naming both shapes when such prompts, or so many tokens after them, are not what was built for."""
        refuse_shape(self.shapes, shape, new_tokens, self.name)


def refuse_shape(built: ShapeProfile, shape: tuple[int, ...], new_tokens: int, name: str) -> None:
    """UsageError naming both shapes when an engine was not built for such prompts, or so many tokens after them."""
    fits = len(shape) == 2 and shape[0] == built.batch and built.min_prompt <= shape[1] <= built.max_prompt
    if not fits:
        raise _other_shape(f"a prompt of shape {list(shape)}", prompts_of(built), name)
    if shape[1] + new_tokens - 1 > built.context:
        asked = f"a prompt of {counted(shape[1], 'token')} with {new_tokens} new ones"
        raise _other_shape(asked, f"a context of {built.context}", name)


def prompts_of(built: ShapeProfile) -> str:
    """The shapes of prompts an engine reads, in words."""
    if built.min_prompt == built.max_prompt:
        return f"prompts of shape {[built.batch, built.max_prompt]}"
    return f"prompts of shape [{built.batch}, {built.min_prompt} to {built.max_prompt}]"


def _other_shape(given: str, built: str, name: str) -> UsageError:
    return UsageError(
        f"{given} was given, the engine was built for {built}",
        where=name,
        remedy="give that shape, or build an engine for this one",
    )
