"""Bytes that caches take: by kind of layer, by stage, and for the next token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import ceil

from hfbench.estimate.caches import LayerCache, as_expanded
from hfbench.estimate.facts import CacheShare
from hfbench.estimate.placement import stage_layers
from hfbench.estimate.runtimes import SIZES, Runtime
from hfbench.estimate.workload import Model, Workload

TERMS = ("kv_cache", "index_keys", "cross_attention", "recurrent_state")


def kv_bytes_per_token(caches: Sequence[LayerCache], runtime: Runtime, size: float) -> int:
    """Keys and values that one token makes in all layers: 2 x kv_heads x head_dim each, or the latent vector.

    This is the figure of public tables: windows, sharing and layers that drop them are told by `cache_shares`.
    """
    return ceil(sum(_stored(cache, runtime).conventional for cache in caches) * size)


def kv_bytes_of_next_token(model: Model, work: Workload) -> int:
    """What one more token of context costs in all layers together, on all ranks: windows that are full cost nothing."""
    longer = replace(work, context=work.context + 1, batch=1, tp=1, pp=1, ep=1)
    now = replace(longer, context=work.context)
    return sum(sum(term) for term in cache_terms(model, longer).values()) - sum(
        sum(term) for term in cache_terms(model, now).values()
    )


def cache_shares(model: Model, work: Workload) -> tuple[CacheShare, ...]:
    """The cache by kind of layer, for one sequence."""
    shares = []
    for cache, layers in _stage_kinds(model, work.runtime, 1)[0]:
        size = SIZES[work.kv_dtype]
        kept = (cache.heads * cache.per_head + cache.shared) * size
        state = cache.state * SIZES[work.dtype] + cache.state32 * 4
        grown = cache.tokens(work.context) * (kept + cache.index * size)
        shares.append(
            CacheShare(
                kind=cache.kind,
                layers=layers,
                bytes_per_token=ceil(kept + cache.index * size) if cache.kept else 0,
                window=cache.window,
                every=cache.every,
                fixed_tokens=cache.fixed,
                state_bytes=ceil(state),
                total_bytes=ceil(layers * (grown + state)),
            )
        )
    return tuple(shares)


def cache_terms(model: Model, work: Workload) -> dict[str, list[int]]:
    """Bytes on one rank of each stage."""
    terms: dict[str, list[int]] = {name: [0] * work.pp for name in TERMS}
    size, state_size = SIZES[work.kv_dtype], SIZES[work.dtype]
    for stage, kinds in enumerate(_stage_kinds(model, work.runtime, work.pp)):
        sums = dict.fromkeys(terms, 0.0)
        for cache, layers in kinds:
            tokens = cache.tokens(work.context)
            kept = -(-cache.heads // work.tp) * cache.per_head + cache.shared
            sums["kv_cache" if cache.fixed is None else "cross_attention"] += layers * tokens * kept * size
            sums["index_keys"] += layers * tokens * cache.index * size
            state = cache.state * state_size + cache.state32 * 4
            sums["recurrent_state"] += layers * state / work.tp
        for name, value in sums.items():
            terms[name][stage] = ceil(work.sequences * value)
    return terms


@lru_cache(maxsize=64)
def _stage_kinds(model: Model, runtime: Runtime, stages: int) -> tuple[tuple[tuple[LayerCache, int], ...], ...]:
    """For each pipeline stage the different caches and how many layers have them."""
    caches = model.caches or ()
    return tuple(_kinds([caches[layer] for layer in held], runtime) for held in stage_layers(len(caches), stages))


def _kinds(caches: Sequence[LayerCache], runtime: Runtime) -> tuple[tuple[LayerCache, int], ...]:
    counts: dict[LayerCache, int] = {}
    for cache in caches:
        stored = _stored(cache, runtime)
        counts[stored] = counts.get(stored, 0) + 1
    return tuple(counts.items())


def _stored(cache: LayerCache, runtime: Runtime) -> LayerCache:
    return cache if runtime.latent else as_expanded(cache)
