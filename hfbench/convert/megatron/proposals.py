"""Layouts worth considering for a model, with the weights that a rank would hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from hfbench.convert.megatron.parallel import Parallel, refuse_impossible
from hfbench.convert.megatron.placing import Geometry, Item
from hfbench.convert.megatron.sizes import Sizes
from hfbench.convert.megatron.slots import EMBEDDING, OUTPUT
from hfbench.convert.plan_table import Proposal
from hfbench.errors import UsageError
from hfbench.models.dtypes import BITS

NODE = 8
"""GPUs with a fast link between them on most machines: tensor parallelism stays inside."""

LARGEST = 512
ENOUGH = 4 << 30
"""Bytes of weights on a rank below which no further rank is proposed: 10 GiB and more of optimizer come with them."""


def proposals(items: Sequence[Item], sizes: Sizes) -> tuple[Proposal, ...]:
    """For 1, 2, 4, ... ranks the layout with the least weights on a rank, until they are few."""
    weights = Weights(items, sizes)
    found: list[Proposal] = []
    ranks = 1
    while ranks <= LARGEST:
        fits = [(weights.of(each), each.pp, each.tp, each) for each in _layouts(ranks, sizes)]
        if fits:
            size, _, _, best = min(fits, key=lambda fit: fit[:3])
            if not found or size < found[-1].rank_bytes:
                found.append(Proposal(tp=best.tp, pp=best.pp, ep=best.ep, rank_bytes=size, reason=_reason(best, sizes)))
            if size <= ENOUGH:
                break
        ranks *= 2
    return tuple(found)


class Weights:
    """Bytes of a layer and of what stands around them, by how they are divided."""

    def __init__(self, items: Sequence[Item], sizes: Sizes) -> None:
        geometry = Geometry(sizes, 1)
        self.layers: dict[int, list[int]] = {}
        self.first, self.last = [0, 0, 0], [0, 0, 0]
        self.repeated = 0
        """Of the embedding, which the last stage has again: as a tied head, or to predict further tokens."""
        again = not any(item.slot.target == OUTPUT for item in items) or any(item.slot.further for item in items)
        for item in items:
            size = prod(geometry.whole(item.row)) * BITS[item.dtype] // 8
            slot = item.slot
            kind = 2 if slot.expert is not None else int(item.row.split != "whole")
            if slot.layer is not None and not slot.further:
                self.layers.setdefault(slot.layer, [0, 0, 0])[kind] += size
            elif slot.target.startswith("embedding."):
                self.first[kind] += size
                self.repeated += size if again and slot.target == EMBEDDING else 0
            else:
                self.last[kind] += size

    def of(self, parallel: Parallel) -> int:
        """Bytes of weights on the fullest rank."""
        return max(self.by_stage(parallel))

    def by_stage(self, parallel: Parallel) -> list[int]:
        """Bytes of weights on each rank of a stage: they are the same for all."""
        stages = parallel.stages(len(self.layers))
        found = []
        for stage, layers in enumerate(stages):
            sums = [sum(self.layers[layer][kind] for layer in layers) for kind in range(3)]
            for place, ends in ((0, self.first), (len(stages) - 1, self.last)):
                if stage == place:
                    sums = [one + other for one, other in zip(sums, ends, strict=True)]
            if stage and stage == len(stages) - 1 and self.repeated:
                sums[1] += self.repeated
            whole, split, experts = sums
            found.append(whole + split // parallel.tp + experts // (parallel.tp * parallel.ep))
        return found


def rank_bytes(items: Sequence[Item], sizes: Sizes, parallel: Parallel) -> dict[str, int]:
    """Bytes of weights on each rank, by the name of its folder; what it would load from torch_dist too."""
    stages = Weights(items, sizes).by_stage(parallel)
    return {parallel.folder(rank): stages[rank.pp] for rank in parallel.ranks()}


def _layouts(ranks: int, sizes: Sizes) -> Iterator[Parallel]:
    for tp in range(1, min(ranks, NODE) + 1):
        for ep in range(1, ranks // tp + 1) if not ranks % tp else ():
            if (ranks // tp) % ep:
                continue
            parallel = Parallel(tp=tp, pp=ranks // tp // ep, ep=ep)
            try:
                refuse_impossible(parallel, sizes)
            except UsageError:
                continue
            yield parallel


def _reason(parallel: Parallel, sizes: Sizes) -> str:
    told = []
    if parallel.tp > 1:
        told.append(f"{sizes.heads // parallel.tp} heads a rank, inside one machine")
    if parallel.ep > 1:
        told.append(f"{sizes.experts // parallel.ep} experts a rank")
    if parallel.pp > 1:
        told.append(f"{sizes.layers // parallel.pp} layers a stage")
    return ", ".join(told) or "everything on one rank"
