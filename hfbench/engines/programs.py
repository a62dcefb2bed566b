"""A causal model as a function of tokens, position and cache: what builders export, and what an engine is asked."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hfbench.codec import decode, encode
from hfbench.errors import HfbenchError, UsageError

if TYPE_CHECKING:
    from hfbench.engines.builders.base import Asked
    from hfbench.gpu.generate_model import Loaded

FORM = "cache.json"


@dataclass(frozen=True, kw_only=True)
class CacheForm:
    """The KV cache of an engine: a shape for the keys and one for the values of each layer, and the vocabulary."""

    dtype: str
    """As torch names it: `float32`."""
    keys: tuple[tuple[int, ...], ...]
    values: tuple[tuple[int, ...], ...]
    vocabulary: int
    """Logits of one position."""

    def zeros(self, device: Any) -> tuple[list[Any], list[Any]]:
        """An empty cache: the keys of every layer and the values of every layer."""
        import torch

        dtype = getattr(torch, self.dtype)
        keys = [torch.zeros(shape, dtype=dtype, device=device) for shape in self.keys]
        return keys, [torch.zeros(shape, dtype=dtype, device=device) for shape in self.values]


@dataclass(frozen=True)
class Program:
    """A module `(ids, position, keys, values) -> logits of the last position`, with arguments to trace it by.

    `ids` are batch x length, `position` is the tokens that the cache holds already, as a scalar tensor.
    """

    name: str
    module: Any
    arguments: tuple[Any, ...]
    dynamic: Any
    """Which dimensions may vary, as torch.export wants it; None when none may."""


def write_form(folder: Path, form: CacheForm) -> None:
    """Put the form beside the engine's files."""
    (folder / FORM).write_text(json.dumps(encode(form)) + "\n", encoding="utf-8")


def read_form(folder: Path) -> CacheForm:
    """The form in an engine's folder; HfbenchError when it is missing or damaged."""
    path = folder / FORM
    try:
        return decode(CacheForm, json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise HfbenchError(f"cannot be read: {error}", where=path, remedy="build the engine again") from None


def cache_form(loaded: Loaded, asked: Asked) -> CacheForm:
    """What the cache of a model looks like at the asked batch and context, found by running one token through it.

    UsageError when a layer looks back fewer tokens than the context; HfbenchError for a cache that is not made of
    keys and values alone.
    """
    import torch

    cache = _static_cache(loaded.model, asked.context)
    ids = torch.zeros(asked.batch, 1, dtype=torch.long, device=loaded.device)
    with torch.no_grad():
        logits = _call(loaded.model, ids, cache)
    return CacheForm(
        dtype=str(cache.layers[0].keys.dtype).removeprefix("torch."),
        keys=tuple(tuple(layer.keys.shape) for layer in cache.layers),
        values=tuple(tuple(layer.values.shape) for layer in cache.layers),
        vocabulary=int(logits.shape[-1]),
    )


def in_place(loaded: Loaded, asked: Asked, form: CacheForm) -> list[Program]:
    """`prefill` and `decode`, which write into the keys and values they are given; their shapes are those asked for.

    A prompt of one token is a decode step, and a profile with a single length of prompt has no dynamic dimension.
    """
    module = _forward(loaded.model, asked.context, functional=False)
    least = max(2, asked.min_prompt)
    programs = [_program("decode", module, loaded, form, batch=asked.batch, length=1)]
    if asked.max_prompt >= 2:
        varies = (least, asked.max_prompt) if least < asked.max_prompt else None
        programs.append(
            _program("prefill", module, loaded, form, batch=asked.batch, length=asked.max_prompt, varies=varies)
        )
    return programs


def functional(loaded: Loaded, asked: Asked, form: CacheForm) -> Program:
    """One program for prompts and steps, which returns logits, then new keys and new values, and changes nothing."""
    module = _forward(loaded.model, asked.context, functional=True)
    length = max(2, asked.max_prompt)
    return _program("forward", module, loaded, form, batch=asked.batch, length=length, varies=(1, length))


def _program(
    name: str,
    module: Any,
    loaded: Loaded,
    form: CacheForm,
    *,
    batch: int,
    length: int,
    varies: tuple[int, int] | None = None,
) -> Program:
    import torch

    ids = torch.zeros(batch, length, dtype=torch.long, device=loaded.device)
    position = torch.zeros((), dtype=torch.long, device=loaded.device)
    dynamic = None
    if varies:
        layers = [None] * len(form.keys)
        dynamic = ({1: torch.export.Dim("length", min=varies[0], max=varies[1])}, None, layers, layers)
    return Program(name, module, (ids, position, *form.zeros(loaded.device)), dynamic)


def _forward(model: Any, context: int, *, functional: bool) -> Any:
    import torch

    class Forward(torch.nn.Module):  # type: ignore[misc]  # torch is unknown to the type checker
        """The model with its cache given from outside."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: Any, position: Any, keys: list[Any], values: list[Any]) -> Any:
            if functional:
                keys, values = [each.clone() for each in keys], [each.clone() for each in values]
            cache = _static_cache(self.model, context)
            for layer, key, value in zip(cache.layers, keys, values, strict=True):
                _fill(layer, key, value, position)
            logits = _call(self.model, ids, cache)
            if functional:
                return (logits, *(layer.keys for layer in cache.layers), *(layer.values for layer in cache.layers))
            return logits

    return Forward().eval()


def _fill(layer: Any, keys: Any, values: Any, position: Any) -> None:
    """Make a layer of a static cache hold these tensors, as if it had filled them up to the position."""
    layer.keys, layer.values, layer.cumulative_length = keys, values, position.clone()
    layer.device, layer.dtype, layer.is_initialized = keys.device, keys.dtype, True
    layer.batch_size, layer.num_heads = keys.shape[:2]
    layer.k_head_dim, layer.v_head_dim = keys.shape[-1], values.shape[-1]


def _static_cache(model: Any, context: int) -> Any:
    """A StaticCache whose layers all hold the whole context."""
    from transformers import StaticCache
    from transformers.cache_utils import StaticLayer, StaticSlidingWindowLayer

    cache: Any = StaticCache(config=model.config.get_text_config(), max_cache_len=context)
    for index, layer in enumerate(cache.layers):
        if type(layer) is StaticSlidingWindowLayer:
            if layer.max_cache_len < context:
                raise UsageError(
                    f"some layers look back {layer.max_cache_len} tokens only, and the context is {context}",
                    where=type(model).__name__,
                    remedy=f"give --context {layer.max_cache_len} or less",
                )
            cache.layers[index] = StaticLayer(max_cache_len=context)  # a window as long as the context cuts nothing
        elif type(layer) is not StaticLayer:
            raise HfbenchError(
                f"its cache has layers of {type(layer).__name__}, which hold more than keys and values",
                where=type(model).__name__,
                remedy="engines are built of models whose layers all attend to keys and values",
            )
    return cache


def _call(model: Any, ids: Any, cache: Any) -> Any:
    """Logits of the last position, batch x vocabulary."""
    from hfbench.gpu.generate_model import accepts

    name = "cache" if accepts(model, "cache") else "past_key_values"
    last = {"logits_to_keep": 1} if accepts(model, "logits_to_keep") else {}
    return model(input_ids=ids, use_cache=True, **{name: cache}, **last).logits[:, -1]
