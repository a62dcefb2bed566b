"""A Hugging Face folder run by transformers in float32, the judge of a conversion. Runs in a child process: torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hfbench.convert.walls.memory import free_memory
from hfbench.errors import HfbenchError
from hfbench.text import clip

SMALL_PART = 4
"""Widening a whole model for good is quicker; of the free memory it may take the fourth part."""


class Reference:
    """Logits and states of a model. Weights stay as wide as `dtype`, each layer being widened while it computes, unless
    all of it in float32 takes a small part of the memory.

    What float16 or bfloat16 holds, float32 holds too, so that this is the model in float32 at the memory of its files.
    `rounded`: also the weights that transformers keeps in float32 are rounded, as a conversion with a cast does.
    """

    def __init__(self, folder: Path, dtype: str, *, rounded: bool = False) -> None:
        from transformers import AutoModelForCausalLM
        from transformers.utils import logging

        logging.disable_progress_bar()
        logging.set_verbosity_error()
        with translated(folder):
            self.model, told = AutoModelForCausalLM.from_pretrained(
                folder,
                dtype=getattr(torch, dtype),
                attn_implementation="eager",
                local_files_only=True,
                trust_remote_code=False,
                output_loading_info=True,
            )
        if lacking := sorted(told.get("missing_keys", ())):
            found = f"transformers finds no {', '.join(map(str, lacking[:3]))} in it"
            raise HfbenchError(found, where=folder, remedy="fetch the checkpoint again")
        self.model.eval()
        self.layers: nn.ModuleList = layers_of(self.model)
        self.vocab = int(self.model.config.get_text_config().vocab_size)
        if rounded:
            for each in self.model.parameters():
                each.data = each.data.to(getattr(torch, dtype)).to(each.dtype)
        wide = 4 * sum(each.numel() for each in self.model.parameters())
        if wide * SMALL_PART < (free_memory() or 0):
            self.model.float()
        elif dtype != "float32":
            self._widen_as_needed()

    @property
    def context(self) -> int:
        """Positions the model was made for, or 2048 where its configuration names no limit."""
        limit = getattr(self.model.config.get_text_config(), "max_position_embeddings", None)
        return limit if isinstance(limit, int) and limit > 0 else 2048

    def logits(
        self, sequences: Sequence[torch.Tensor], each: Callable[[int, int], None] = lambda done, total: None
    ) -> Iterator[torch.Tensor]:
        """The logits of each sequence, [tokens, vocabulary]; `each` is told how many are done."""
        for done, sequence in enumerate(sequences, 1):
            with torch.no_grad(), translated("the model"):
                found = self.model(sequence[None], use_cache=False).logits[0].float()
            each(done, len(sequences))
            yield found

    def greedy(self, prompt: torch.Tensor, count: int) -> torch.Tensor:
        """The prompt and the `count` tokens of highest logit behind it, each from all before it."""
        with torch.no_grad(), translated("the model"):
            told = self.model(prompt[None], use_cache=True)
            tokens = [*prompt.tolist(), int(told.logits[0, -1].argmax())]
            while len(tokens) < len(prompt) + count:
                told = self.model(torch.tensor([[tokens[-1]]]), past_key_values=told.past_key_values, use_cache=True)
                tokens.append(int(told.logits[0, -1].argmax()))
        return torch.tensor(tokens)

    def states(self, sequence: torch.Tensor) -> tuple[list[torch.Tensor], torch.Tensor]:
        """[tokens, hidden] before each layer and behind the last, and the logits."""
        states: list[torch.Tensor] = []

        def before(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
            states.append((given[0] if given else named["hidden_states"])[0].clone())

        def behind(module: nn.Module, given: Any, out: Any) -> None:
            states.append(first_of(out)[0].clone())

        hooks = [each.register_forward_pre_hook(before, with_kwargs=True) for each in self.layers]
        hooks.append(self.layers[-1].register_forward_hook(behind))
        logits = self._hooked(sequence, hooks)
        return states, logits

    def inside(self, layer: int, sequence: torch.Tensor) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
        """What goes into and comes out of each module of a layer, by the module's name in it."""
        seen: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}

        def hook(name: str) -> Callable[[nn.Module, Any, Any], None]:
            def told(module: nn.Module, given: Any, out: Any) -> None:
                into = given[0].clone() if given and isinstance(given[0], torch.Tensor) else torch.empty(0)
                if isinstance(first_of(out), torch.Tensor):
                    seen[name] = (into, first_of(out).clone())

            return told

        named = self.layers[layer].named_modules()
        self._hooked(sequence, [each.register_forward_hook(hook(name)) for name, each in named if name])
        return seen

    def _hooked(self, sequence: torch.Tensor, hooks: list[Any]) -> torch.Tensor:
        try:
            return next(self.logits([sequence]))
        finally:
            for each in hooks:
                each.remove()

    def _widen_as_needed(self) -> None:
        """Everything outside of the layers is widened for good, a layer before it computes, and narrowed after."""
        inside = {id(each) for layer in self.layers for each in (*layer.parameters(), *layer.buffers())}
        for each in (*self.model.parameters(), *self.model.buffers()):
            if id(each) not in inside and each.is_floating_point():
                each.data = each.data.float()
        for layer in self.layers:
            kept: list[tuple[torch.Tensor, torch.Tensor]] = []

            def widen(module: nn.Module, given: Any, kept: list[Any] = kept) -> None:
                for each in (*module.parameters(), *module.buffers()):
                    if each.is_floating_point():
                        kept.append((each, each.data))
                        each.data = each.data.float()

            def narrow(module: nn.Module, given: Any, out: Any, kept: list[Any] = kept) -> None:
                for each, data in kept:
                    each.data = data
                kept.clear()

            layer.register_forward_pre_hook(widen)
            layer.register_forward_hook(narrow)


def layers_of(model: nn.Module) -> nn.ModuleList:
    """The stack of layers: the outermost list of modules."""
    for each in model.modules():
        if isinstance(each, nn.ModuleList):
            return each
    raise HfbenchError(f"{type(model).__name__} has no list of layers")


def first_of(out: Any) -> Any:
    """The tensor a module gives, or the first of several things."""
    return out[0] if isinstance(out, (tuple, list)) else out


@contextmanager
def translated(where: object) -> Iterator[None]:
    """Whatever transformers or torch raises for a model it cannot run, in one sentence."""
    try:
        yield
    except HfbenchError:
        raise
    except Exception as error:
        first = next((line for line in str(error).splitlines() if line.strip()), "")
        found = clip(f"transformers cannot run it: {type(error).__name__}: {first}", 300)
        raise HfbenchError(found, where=where) from error
