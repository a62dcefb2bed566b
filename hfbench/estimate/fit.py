"""Whether a model fits a GPU: every term of the memory by itself, in microseconds once the model is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil

from hfbench.estimate.cache_bytes import TERMS, cache_terms
from hfbench.estimate.facts import LONGEST, MOST_SEQUENCES, FitCell
from hfbench.estimate.runtimes import SIZES
from hfbench.estimate.weights import Layout, padded
from hfbench.estimate.workload import Model, Shape, Workload

GROWING = (*TERMS, "logits", "activations")
"""Terms that context and batch drive."""

FORMULAS: dict[str, str] = {
    "weights": "bytes of the tensors on the fullest rank",
    "kv_cache": "batch x tokens kept x elements a token / ranks x bytes an element, summed over the layers of the rank",
    "index_keys": "batch x tokens x index_head_dim x bytes an element, in layers that choose their tokens",
    "cross_attention": "batch x tokens of the image or encoder x 2 x kv_heads x head_dim / ranks x bytes an element",
    "recurrent_state": "batch x (32-bit state + 16-bit inputs of the convolution) / ranks, whatever the context",
    "activations": "tokens of one pass x (4 x hidden + (q + 2 x kv) / tp + 2 x inner width / tp) x bytes an element",
    "logits": "batch x vocabulary / tp x 4 bytes",
    "cuda_context": "a constant of the driver, one process a GPU",
    "graph_pools": "a constant of the runtime for captured graphs",
    "nccl": "a constant for the buffers between ranks, when there is more than one",
}
GUESSED = {
    "activations": "activations: a bound by formula, not measured",
    "cuda_context": "CUDA context: a constant of 0.5 GiB",
    "graph_pools": "graph pools: a constant of 0.75 GiB, measured between 24 MiB and 1.3 GiB",
    "nccl": "NCCL: a constant of 0.5 GiB a rank",
}


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes on the fullest GPU, term by term; the sum is the total."""

    terms: Mapping[str, int]
    stage: int

    @property
    def total(self) -> int:
        """Bytes of all terms."""
        return sum(self.terms.values())

    def limiting(self, memory: int) -> str | None:
        """The term that does not fit: the first, from what cannot shrink to what can, that passes the memory."""
        taken = 0
        for name in sorted(self.terms, key=_rigidity):
            taken += self.terms[name]
            if taken > memory:
                return name
        return None


def estimate(model: Model, work: Workload) -> Estimate:
    """Bytes of every term on the fullest GPU; units are bytes throughout.

    total = weights + caches + activations + logits + context + graphs + NCCL, where each follows FORMULAS.
    """
    layout = Layout(work.tp, work.pp, work.ep, model.shape.kv_heads, work.runtime.vocab_multiple)
    weights = _weights(model, layout, SIZES[work.weight_dtype])
    caches = cache_terms(model, work)
    stage = max(range(work.pp), key=lambda each: weights[each] + sum(term[each] for term in caches.values()))
    terms = {"weights": weights[stage]}
    terms |= {name: term[stage] for name, term in caches.items() if name == "kv_cache" or any(term)}
    terms["activations"] = activation_bytes(model.shape, work)
    terms["logits"] = ceil(work.sequences * padded(model.shape.vocab, work.runtime.vocab_multiple) / work.tp) * 4
    terms["cuda_context"] = work.runtime.context_bytes
    if work.runtime.graph_bytes:
        terms["graph_pools"] = work.runtime.graph_bytes
    if work.gpus > 1:
        terms["nccl"] = work.runtime.nccl_bytes
    return Estimate(terms, stage)


def activation_bytes(shape: Shape, work: Workload) -> int:
    """The peak of one pass over a prefill: residual, norms, queries, keys, values, and the feed-forward's inside.

    Attention is taken to be fused (no context x context matrix). vLLM passes `prefill_tokens` at most at a time.
    """
    tokens = work.context * work.sequences
    tokens = min(tokens, work.runtime.prefill_tokens) if work.runtime.prefill_tokens else tokens
    attention = (shape.heads + 2 * shape.kv_heads) * shape.head_dim / work.tp
    return ceil(tokens * (4 * shape.hidden + attention + 2 * shape.width / work.tp) * SIZES[work.dtype])


def grid(
    model: Model, work: Workload, memory: int, contexts: Sequence[int], batches: Sequence[int]
) -> tuple[tuple[FitCell, ...], ...]:
    """One row a context, one cell a batch: the total on a GPU of `memory` usable bytes, and what limits it."""
    return tuple(
        tuple(_cell(model, replace(work, context=context, batch=batch), memory) for batch in batches)
        for context in contexts
    )


def largest_context(model: Model, work: Workload, memory: int) -> int | None:
    """The most tokens of context at this batch, up to the model's limit; 0 when none fit, None without a cache."""
    if model.caches is None:
        return None
    return _largest(model.limit or LONGEST, lambda n: estimate(model, replace(work, context=n)).total <= memory)


def largest_batch(model: Model, work: Workload, memory: int) -> int | None:
    """The most sequences at this context; 0 when none fit, None without a cache."""
    if model.caches is None:
        return None
    return _largest(MOST_SEQUENCES, lambda n: estimate(model, replace(work, batch=n)).total <= memory)


def _rigidity(term: str) -> int:
    """Terms that nothing shrinks come first; of the others, the KV cache last."""
    return len(GROWING) - GROWING.index(term) if term in GROWING else 0


def _cell(model: Model, work: Workload, memory: int) -> FitCell:
    found = estimate(model, work)
    return FitCell(
        context=work.context,
        batch=work.batch,
        total_bytes=found.total,
        fits=found.total <= memory,
        limiting=found.limiting(memory),
    )


def _largest(most: int, holds: Callable[[int], bool]) -> int:
    """The largest number up to `most` that holds, where smaller ones hold as well."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


@lru_cache(maxsize=256)
def _weights(model: Model, layout: Layout, size: float) -> tuple[int, ...]:
    return model.weights.on_stages(layout, size)
