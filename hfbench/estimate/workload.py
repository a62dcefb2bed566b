"""What is fitted: a model reduced to the figures that count, and the work asked of it."""

from __future__ import annotations

from dataclasses import dataclass

from hfbench.errors import UsageError
from hfbench.estimate.caches import LayerCache
from hfbench.estimate.runtimes import Runtime
from hfbench.estimate.weights import Weights
from hfbench.models.problem import counted


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Widths that passes need memory for; 0 where they are not known."""

    hidden: int = 0
    heads: int = 0
    kv_heads: int = 0
    head_dim: int = 0
    width: int = 0
    """Inner width that one token passes: the dense one, or that of its experts together."""
    vocab: int = 0
    experts: int = 0


@dataclass(frozen=True, eq=False)
class Model:
    """What is needed of a model to fit it, compared by identity. `caches` is None when its cache is not known."""

    name: str
    weights: Weights
    caches: tuple[LayerCache, ...] | None
    shape: Shape
    limit: int | None
    """The longest context that the runtime allows by default."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What is asked of the model. Types are full names: `dtype` is computed in, weights may take another."""

    runtime: Runtime
    dtype: str
    weight_dtype: str
    kv_dtype: str
    context: int
    batch: int = 1
    tp: int = 1
    pp: int = 1
    ep: int = 1

    @property
    def sequences(self) -> int:
        """Sequences on one rank: copies of the attention share the batch."""
        return -(-self.batch // max(1, self.ep // self.tp))

    @property
    def gpus(self) -> int:
        """GPUs that one copy takes: expert ranks beyond `tp` are further copies of the attention."""
        return self.pp * max(self.tp, self.ep)


def check_layout(model: Model, work: Workload) -> None:
    """UsageError for ranks that the shape of the model does not allow, with those that it does."""
    heads, kv, layers = model.shape.heads, model.shape.kv_heads, model.weights.layers
    if heads and heads % work.tp:
        raise _not_divisible(model, f"{heads} heads do not divide by tp={work.tp}", "tp", heads)
    if kv and work.tp > 1 and kv % work.tp and work.tp % kv:
        raise _not_divisible(model, f"{kv} KV heads do not divide by tp={work.tp}", "tp", heads)
    if layers and work.pp > layers:
        raise UsageError(
            f"{counted(layers, 'layer')} cannot be {work.pp} stages", where=model.name, remedy=f"use pp up to {layers}"
        )
    if work.ep > 1 and not model.shape.experts:
        raise UsageError(f"ep={work.ep}, but the model has no experts", where=model.name, remedy="leave ep at 1")
    if work.ep > 1 and model.shape.experts % work.ep:
        found = f"{model.shape.experts} experts do not divide by ep={work.ep}"
        raise _not_divisible(model, found, "ep", model.shape.experts)
    if work.ep > 1 and work.ep % work.tp:
        raise UsageError(f"ep={work.ep} is no multiple of tp={work.tp}", where=model.name)


def _not_divisible(model: Model, found: str, name: str, number: int) -> UsageError:
    allowed = [str(each) for each in range(1, min(number, 64) + 1) if number % each == 0]
    return UsageError(found, where=model.name, remedy=f"use {name}={' or '.join(allowed[:6])}")
