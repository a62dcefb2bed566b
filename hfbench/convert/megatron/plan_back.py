"""The plan of the way back: the same copies reversed, from what a Megatron checkpoint holds to Hugging Face tensors."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hfbench.convert.boxes import Copy, TensorSpec, uncovered
from hfbench.convert.megatron.arguments import config_of
from hfbench.convert.megatron.destination import Destination
from hfbench.convert.megatron.known import Known, known_of
from hfbench.convert.megatron.names import in_rank_file
from hfbench.convert.megatron.placing import Geometry, Item, Placed
from hfbench.convert.megatron.plan import placed_in
from hfbench.convert.megatron.slots import slots_of
from hfbench.convert.plan import Dropped, Plan, Target
from hfbench.errors import HfbenchError, UsageError
from hfbench.models.problem import counted, listed, quoted

FILE = "model.safetensors"

TRAINING = re.compile(r"(chained_\d+\.)?optimizer\.|rng_state\b|rerun_state_machine\b|opt_param_scheduler\b")
"""What torch_dist keeps beside the weights of a model in training."""


def plan_hf(
    args: Mapping[str, Any],
    sources: Mapping[str, TensorSpec],
    hf_config: Mapping[str, Any] | None = None,
    *,
    vocab: int | None = None,
    dtype: str | None = None,
) -> Plan:
    """What a Hugging Face folder made of a Megatron checkpoint will hold; no weight is read.

    `sources` are its tensors, `RANK:NAME` or those of torch_dist; `hf_config` is the configuration it was made from,
    where there is one, and `vocab` the true vocabulary, where nothing tells it. UsageError for layouts that are not
    known, HfbenchError for tensors that are missing, of another shape, or have no place.
    """
    known = known_of(args, sources, hf_config, vocab)
    items = _items(known)
    placed = placed_in(
        items,
        known.sizes,
        Destination(known.parallel, known.format, known.names),
        tied=known.tied,
        per_layer=known.per_layer,
    )
    copies, dropped, twins = _reversed(placed, sources, known)
    targets = _targets(items, copies, sources, known, dtype)
    config = _config(known, hf_config, targets, dtype)
    return Plan(
        family=known.family.name,
        targets=targets,
        dropped=dropped,
        notes=tuple(_notes(known, hf_config, twins)),
        args=config,
        twins=twins,
    )


def _items(known: Known) -> list[Item]:
    found = []
    for slot in slots_of(known.family, known.sizes, known.args):
        row = slot.rows[0]
        found.append(Item(slot, row, slot.sources(row), ""))
    return found


def _reversed(
    placed: Iterable[Placed], sources: Mapping[str, TensorSpec], known: Known
) -> tuple[dict[str, list[Copy]], tuple[Dropped, ...], tuple[tuple[str, str], ...]]:
    """Copies by Hugging Face tensor, the tensors of ranks that repeat others, and what each of them repeats."""
    copies: dict[str, list[Copy]] = defaultdict(list)
    dropped, twins, used, missing = [], [], set(), []
    spelled: dict[str, str] = {}
    for each in placed:
        spec = each.target.spec
        name = _found(spec.name, sources)
        spelled[spec.name] = name
        there = sources.get(name)
        if there is None:
            missing.append(spec.name)
            continue
        if there.shape != spec.shape:
            told = f"{quoted(name)} has shape {list(there.shape)}, the arguments ask for {list(spec.shape)}"
            raise HfbenchError(told, remedy="the arguments are not those of these weights")
        used.add(name)
        if each.repeats:
            first = spelled.get(each.repeats, each.repeats)
            dropped.append(Dropped(name, "the same on a rank before it"))
            twins.append((name, first))
            continue
        for copy in each.target.copies:
            back = copy.reversed()
            copies[back.target].append(back if name == spec.name else back.renamed(source=name))
    if missing:
        told = f"{counted(len(missing), 'tensor')} missing: {listed(missing)}"
        raise HfbenchError(told, remedy="the arguments are not those of these weights, or ranks are missing")
    dropped += [Dropped(name, "state of training, no weight") for name in sources if TRAINING.match(name)]
    used.update(each.source for each in dropped)
    left = [name for name in sources if name not in used and "_extra_state" not in name]
    if left:
        told = f"{counted(len(left), 'tensor')} without a place in a {known.family.name} model: {listed(left)}"
        raise HfbenchError(told)
    dropped += [Dropped(name, "state of Transformer Engine, no weight") for name in sources if "_extra_state" in name]
    return copies, tuple(dropped), tuple(twins)


def _found(name: str, sources: Mapping[str, TensorSpec]) -> str:
    """The name in the checkpoint: norms of multi-latent attention were written in both spellings by all tools."""
    return name if name in sources else in_rank_file(name, "local")


def _targets(
    items: list[Item],
    copies: Mapping[str, list[Copy]],
    sources: Mapping[str, TensorSpec],
    known: Known,
    dtype: str | None,
) -> tuple[Target, ...]:
    geometry = Geometry(known.sizes, 1)
    made: dict[str, Target] = {}
    for item in items:
        for name, shape in zip(item.sources, geometry.source_shapes(item.row), strict=True):
            found = copies[name]
            dtypes = {sources[copy.source].dtype for copy in found}
            if len(dtypes) > 1 and dtype is None:
                told = f"{listed(dict.fromkeys(copy.source for copy in found))} differ in dtype"
                raise UsageError(told, remedy="choose one with --dtype")
            kept = next(iter(dtypes)) if dtype is None else "F32" if item.row.precise else dtype
            spec = TensorSpec(name, kept, shape)
            if left := uncovered(spec, found):
                raise HfbenchError(f"{counted(left, 'element')} of {quoted(name)} have no source")
            made[name] = Target(spec, FILE, tuple(found), item.row.transform.back)
    return (*made.values(), *_restored(known, made))


def _restored(known: Known, made: Mapping[str, Target]) -> Iterable[Target]:
    """Copies that each layer predicting a further token had of the embedding and the head."""
    for drop in known.family.drops:
        first = made.get(drop.same_as) if drop.restored else None
        for place in range(known.sizes.mtp) if first else ():
            assert first
            name = drop.pattern.replace("{n}", str(known.sizes.layers + place))
            copies = tuple(copy.renamed(target=name) for copy in first.copies)
            yield Target(replace(first.spec, name=name), FILE, copies, f"copy of {drop.same_as}")


def _config(
    known: Known, hf_config: Mapping[str, Any] | None, targets: tuple[Target, ...], dtype: str | None
) -> dict[str, Any]:
    most = max(targets, key=lambda target: target.spec.rows * target.spec.columns).spec.dtype
    rebuilt = config_of(known.family, known.args, vocab=known.sizes.vocab, dtype=most)
    if hf_config is None:
        return rebuilt
    kept = {**hf_config, "vocab_size": known.sizes.vocab}
    if dtype is not None:
        kept.update({key: rebuilt["dtype"] for key in ("dtype", "torch_dtype") if key in kept})
    return kept


def _notes(known: Known, hf_config: Mapping[str, Any] | None, twins: tuple[tuple[str, str], ...]) -> Iterable[str]:
    yield from known.notes
    if known.sizes.padded_vocab != known.sizes.vocab:
        yield f"the vocabulary is cut from {known.sizes.padded_vocab:,} to {known.sizes.vocab:,} rows"
    if known.tied:
        yield "lm_head.weight is not written: it is tied to the embedding"
    if twins:
        yield f"{counted(len(twins), 'tensor')} repeat others and must equal them"
    if hf_config is None:
        yield "config.json is built from Megatron's arguments, which know no token ids"
