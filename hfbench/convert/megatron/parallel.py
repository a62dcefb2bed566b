"""How a model is divided among ranks: which layers, heads, rows and experts each of them holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

from hfbench.convert.megatron.sizes import Sizes
from hfbench.errors import UsageError
from hfbench.models.problem import counted

MOST_OFFERED = 64
"""Degrees of tensor parallelism that a refusal looks through for those that would work."""


@dataclass(frozen=True, slots=True)
class Rank:
    """A place in the layout; each number counts from 0."""

    tp: int
    pp: int
    ep: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Parallel:
    """Degrees of tensor, pipeline and expert parallelism, and the layers of an uneven first or last stage."""

    tp: int = 1
    pp: int = 1
    ep: int = 1
    first_stage_layers: int | None = None
    last_stage_layers: int | None = None

    def ranks(self) -> Iterator[Rank]:
        """All ranks, those of the first stage first."""
        for pp in range(self.pp):
            for tp in range(self.tp):
                for ep in range(self.ep):
                    yield Rank(tp, pp, ep)

    def folder(self, rank: Rank) -> str:
        """The folder of a rank in Megatron's own spelling: `mp_rank_00`, `mp_rank_00_001`, `mp_rank_00_001_003`."""
        stage = f"_{rank.pp:03d}" if self.pp > 1 else ""
        experts = f"_{rank.ep:03d}" if self.ep > 1 else ""
        return f"mp_rank_{rank.tp:02d}{stage}{experts}"

    def process(self, rank: Rank) -> int:
        """The number of the process that would save a rank: TP counts first, then EP, then PP, as in Megatron."""
        return rank.tp + self.tp * (rank.ep + self.ep * rank.pp)

    def stages(self, layers: int) -> tuple[range, ...]:
        """The layers of each pipeline stage; UsageError names the option that would make them come out."""
        given = [each for each in (self.first_stage_layers, self.last_stage_layers) if each is not None]
        if given and self.pp == 1:
            option = "--first-stage-layers" if self.first_stage_layers is not None else "--last-stage-layers"
            raise UsageError(f"{option} needs more than one pipeline stage", remedy="leave it out or raise --pp")
        middle, left = self.pp - len(given), layers - sum(given)
        if left < middle or any(each < 1 for each in given):
            told = f" beside {' and '.join(map(str, given))} in the uneven ones" if given else ""
            remedy = "give the uneven stages fewer layers, or lower --pp" if given else "lower --pp"
            raise UsageError(f"{counted(layers, 'layer')} do not fill {self.pp} pipeline stages{told}", remedy=remedy)
        if (not middle and left) or (middle and left % middle):
            raise UsageError(_uneven(layers, left, middle, given), remedy=self._mended(layers))
        each = left // middle if middle else 0
        counts = [each] * middle
        if self.first_stage_layers is not None:
            counts.insert(0, self.first_stage_layers)
        if self.last_stage_layers is not None:
            counts.append(self.last_stage_layers)
        return tuple(range(begin, end) for begin, end in pairwise(accumulate(counts, initial=0)))

    def _mended(self, layers: int) -> str:
        """Stages of which one or two are uneven and that hold all layers: the nearest to even ones."""
        fits = [pp for pp in range(self.pp, 0, -1) if not layers % pp]
        if self.pp == 2:
            return (
                f"use --first-stage-layers {layers - layers // 2} --last-stage-layers {layers // 2}, or --pp {fits[0]}"
            )
        middle = self.pp - 2
        # The middle stages get as many as an even share has; what is over goes to the first and the last.
        share = max(1, min(round(layers / self.pp), (layers - 2) // middle))
        rest = layers - share * middle
        ends = f"--first-stage-layers {rest - rest // 2} --last-stage-layers {rest // 2}"
        return f"use {ends}, or --pp {fits[0]}"


def refuse_impossible(parallel: Parallel, sizes: Sizes) -> None:
    """UsageError for the first size that cannot be divided as asked, with degrees that would work."""
    parallel.stages(sizes.layers)
    tp, ep = parallel.tp, parallel.ep
    if reason := _undivided(sizes, tp):
        others = [str(each) for each in range(1, MOST_OFFERED + 1) if not _undivided(sizes, each)]
        raise UsageError(f"{reason} --tp {tp}", remedy=f"use --tp {' or '.join(others[-6:])}")
    if ep > 1 and not sizes.experts:
        raise UsageError("the model has no experts to divide by --ep", remedy="leave --ep out")
    if ep > 1 and sizes.experts % ep:
        others = [str(each) for each in range(1, sizes.experts + 1) if not sizes.experts % each]
        told = f"{counted(sizes.experts, 'expert')} do not divide by --ep {ep}"
        raise UsageError(told, remedy=f"use --ep {' or '.join(others[-6:])}")


def tensor_degrees(sizes: Sizes) -> tuple[int, ...]:
    """Degrees of tensor parallelism that the sizes allow, from 1 to 64."""
    return tuple(each for each in range(1, MOST_OFFERED + 1) if not _undivided(sizes, each))


def _undivided(sizes: Sizes, tp: int) -> str:
    """The size that stands against a degree, as the beginning of a sentence; empty when none does."""
    if sizes.heads % tp:
        return f"{counted(sizes.heads, 'attention head')} do not divide by"
    if not sizes.latent and sizes.groups % tp and tp % sizes.groups:
        return f"{counted(sizes.groups, 'key-value head')} neither divide by nor are divided by"
    if not sizes.latent and sizes.qkv_rows % tp:
        heads = counted(sizes.groups, "key-value head")
        return f"{heads}, {sizes.qkv_rows:,} rows together with their queries, are not to be shared by"
    widths = {
        "the feed-forward width": 0 if len(sizes.moe_layers) == sizes.layers else sizes.ffn,
        "the width of an expert": sizes.expert_ffn if sizes.experts else 0,
        "the width of the shared expert": sizes.shared_ffn,
    }
    for name, width in widths.items():
        if width % tp:
            return f"{name}, {width:,}, does not divide by"
    return ""


def _uneven(layers: int, left: int, middle: int, given: list[int]) -> str:
    if not given:
        return f"{counted(layers, 'layer')} do not divide among --pp {middle}"
    if not middle:
        return f"the stages hold {layers - left} of {layers} layers"
    return f"{counted(left, 'layer')} beside the uneven stages do not divide among {counted(middle, 'stage')}"
