"""The plan of a conversion to Megatron: every tensor of every rank, and the elements it is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from hfbench.convert.boxes import Shape, TensorSpec
from hfbench.convert.families.registry import family_of
from hfbench.convert.families.table import Family, Row
from hfbench.convert.megatron.arguments import arguments_of
from hfbench.convert.megatron.destination import Destination
from hfbench.convert.megatron.launch_flags import launch_flags
from hfbench.convert.megatron.parallel import refuse_impossible
from hfbench.convert.megatron.placing import Geometry, Item, Placed, in_rank_files, in_stacks
from hfbench.convert.megatron.quantized import refuse_quantized
from hfbench.convert.megatron.rope import unsaid_yarn
from hfbench.convert.megatron.sizes import Sizes, sizes_of
from hfbench.convert.megatron.slots import Slot, slots_of
from hfbench.convert.megatron.source_names import SourceNames, source_names
from hfbench.convert.plan import Dropped, Plan
from hfbench.errors import HfbenchError, UsageError
from hfbench.estimate.settings import MOST_LAYERS
from hfbench.models.problem import counted, listed, quoted

FLOATS = ("BF16", "F16", "F32")


def plan_megatron(
    config: Mapping[str, Any],
    sources: Mapping[str, TensorSpec],
    destination: Destination,
) -> Plan:
    """What a Megatron checkpoint of this model will hold; no weight is read.

    UsageError for what cannot be expressed or divided as asked, HfbenchError for tensors that are missing, of another
    shape, or have no place.
    """
    return plan_of(model_of(config, sources, destination), destination)


@dataclass(frozen=True, kw_only=True)
class Model:
    """A checkpoint understood: every tensor of Megatron's with its sources, before it is divided among ranks."""

    family: Family
    config: Mapping[str, Any]
    args: Mapping[str, Any]
    sizes: Sizes
    items: list[Item]
    dropped: tuple[Dropped, ...]
    twins: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def model_of(
    config: Mapping[str, Any],
    sources: Mapping[str, TensorSpec],
    destination: Destination,
) -> Model:
    """What a model is in Megatron's terms, whether the layout suits it or not; errors as of `plan_megatron`."""
    family = family_of(config)
    refuse_quantized(config, sources)
    named = source_names(sources, family)
    args = arguments_of(family, config, destination, dtype=destination.dtype or _most(sources.values()))
    args["hf_model_type"] = config["model_type"]
    notes = [*named.notes, *family.notes]
    _count_further(args, config, named, notes)
    sizes = sizes_of(args)
    items = _Items(sources, named, Geometry(sizes, 1), destination.dtype).of(slots_of(family, sizes, args))
    used = {source for item in items for source in item.sources}
    dropped, twins = _dropped(sources, named, family, used, sizes)
    return Model(
        family=family,
        config=config,
        args=args,
        sizes=sizes,
        items=items,
        dropped=dropped,
        twins=twins,
        notes=tuple(notes),
    )


def plan_of(model: Model, destination: Destination) -> Plan:
    """A model divided among ranks; it was read for the same destination."""
    refuse_impossible(destination.parallel, model.sizes)
    args = model.args
    tied = not args["untie_embeddings_and_output_weights"]
    placed = list(placed_in(model.items, model.sizes, destination, tied=tied))
    recompute = bool(model.config.get("gradient_checkpointing"))
    return Plan(
        family=model.family.name,
        targets=tuple(each.target for each in placed),
        dropped=model.dropped,
        notes=(*model.notes, *_notes(model.config, args, model.sizes, destination)),
        args=args,
        launch_flags=(*launch_flags(args, recompute=recompute), *model.family.flags),
        twins=model.twins,
        stacked={each.target.spec.name: each.stacked for each in placed if each.stacked},
    )


def placed_in(
    items: list[Item], sizes: Sizes, destination: Destination, *, tied: bool, per_layer: bool | None = None
) -> Iterable[Placed]:
    """The targets of all items in one of the two formats."""
    if destination.format == "torch":
        return in_rank_files(items, destination.parallel, sizes, names=destination.names, tied=tied)
    mixed = bool(sizes.moe_layers) and len(sizes.moe_layers) != sizes.layers
    return in_stacks(items, sizes, names=destination.names, per_layer=mixed if per_layer is None else per_layer)


@dataclass
class _Items:
    """Finds the sources of slots, all of them before anything is refused."""

    sources: Mapping[str, TensorSpec]
    named: SourceNames
    geometry: Geometry
    dtype: str | None
    missing: list[str] = field(default_factory=list)
    shapes: dict[int, tuple[Shape, ...]] = field(default_factory=dict)

    def of(self, slots: Iterable[Slot]) -> list[Item]:
        """One item a slot; HfbenchError lists what is missing."""
        items = [item for slot in slots if (item := self._item(slot)) is not None]
        if self.missing:
            told = f"{counted(len(self.missing), 'tensor')} missing: {listed(self.missing)}"
            heads = all("lm_head" in name for name in self.missing)
            tie = 'if head and embedding are one tensor, set "tie_word_embeddings": true in config.json'
            raise HfbenchError(told, remedy=tie if heads else "fetch the missing shards or mend the index")
        return items

    def _item(self, slot: Slot) -> Item | None:
        actual = self.named.actual
        for row in slot.rows:
            wanted = slot.sources(row)
            if all(name in actual for name in wanted):
                found = tuple(actual[name] for name in wanted)
                return Item(slot, row, found, self._checked(row, found))
        self.missing += [name for name in slot.sources(slot.rows[0]) if name not in actual]
        return None

    def _checked(self, row: Row, found: tuple[str, ...]) -> str:
        if id(row) not in self.shapes:
            self.shapes[id(row)] = self.geometry.source_shapes(row)
        specs = [self.sources[name] for name in found]
        for spec, shape in zip(specs, self.shapes[id(row)], strict=True):
            if spec.shape != shape:
                told = f"{quoted(spec.name)} has shape {list(spec.shape)}, the configuration asks for {list(shape)}"
                raise HfbenchError(told, remedy="mend config.json or fetch the model again")
        dtypes = {spec.dtype for spec in specs}
        if odd := dtypes - set(FLOATS):
            raise HfbenchError(f"{quoted(found[0])} is {min(odd)}, not a float of 16 or 32 bits")
        if self.dtype:
            return "F32" if row.precise else self.dtype
        if len(dtypes) > 1:
            told = f"{listed(found)} become one tensor and differ in dtype: {', '.join(sorted(dtypes))}"
            raise UsageError(told, remedy="choose one with --dtype")
        return specs[0].dtype


def _most(specs: Iterable[TensorSpec]) -> str:
    """The dtype of most elements."""
    elements: Counter[str] = Counter()
    for spec in specs:
        elements[spec.dtype] += prod(spec.shape)
    return elements.most_common(1)[0][0] if elements else "F32"


def _count_further(args: dict[str, Any], config: Mapping[str, Any], named: SourceNames, notes: list[str]) -> None:
    """Layers that predict further tokens: those the configuration tells and the checkpoint has."""
    told, layers = config.get("num_nextn_predict_layers") or 0, args["num_layers"]
    if type(told) is not int or not 0 <= told <= MOST_LAYERS:
        raise UsageError(
            f"num_nextn_predict_layers is {quoted(told)}, a number of layers is needed", where="config.json"
        )
    has = [each for each in range(told) if f"model.layers.{layers + each}.enorm.weight" in named.actual]
    if told and not has:
        notes.append(f"{counted(told, 'layer')} predicting further tokens are told in config.json and not stored")
    elif len(has) != told:
        raise HfbenchError(f"only {len(has)} of {told} layers predicting further tokens are stored")
    args["mtp_num_layers"] = len(has) or None
    if has:
        args["mtp_loss_scaling_factor"] = 0.1
        notes.append("layers that predict further tokens are named as in megatron-core 0.16; no logits were compared")


def _dropped(
    sources: Mapping[str, TensorSpec], named: SourceNames, family: Family, used: set[str], sizes: Sizes
) -> tuple[tuple[Dropped, ...], tuple[tuple[str, str], ...]]:
    """Unused tensors with their reasons, and those of them that must repeat a used one."""
    dropped, twins, left = [], [], []
    rules = [(rule, rule.expression) for rule in family.drops]
    for plain, name in named.actual.items():
        if name in used:
            continue
        rule = next((rule for rule, expression in rules if expression.match(plain)), None)
        if rule is None:
            left.append(name)
            continue
        dropped.append(Dropped(name, rule.why))
        if (same := named.actual.get(rule.same_as)) is not None:
            twins.append((name, same))
    if left:
        raise HfbenchError(
            f"{counted(len(left), 'tensor')} without a place in a {family.name} model of "
            f"{counted(sizes.layers, 'layer')}: {listed(left)}",
            remedy="remove what does not belong to the model, or mend config.json",
        )
    return tuple(dropped), tuple(twins)


def _notes(config: Mapping[str, Any], args: Mapping[str, Any], sizes: Sizes, destination: Destination) -> Iterable[str]:
    parallel = destination.parallel
    if sizes.padded_vocab != sizes.vocab:
        step = args["make_vocab_size_divisible_by"]
        yield (
            f"the vocabulary of {sizes.vocab:,} is padded to {sizes.padded_vocab:,}, a multiple of {step} x TP "
            f"{parallel.tp}; the way back cuts it"
        )
    if not args["untie_embeddings_and_output_weights"]:
        more = ", which the last stage has a copy of" if parallel.pp > 1 and destination.format == "torch" else ""
        yield f"output_layer.weight is tied to the embedding{more}"
    if args["seq_length"] != args["max_position_embeddings"]:
        yield f"seq_length is set to {args['seq_length']:,} of {args['max_position_embeddings']:,} positions"
    if args.get("window_size"):
        yield f"the sliding window of {args['window_size'][0] + 1:,} tokens is a launch flag"
    if not isinstance(args["rotary_base"], int):
        yield f"the rotary base {args['rotary_base']} is no integer: --rotary-base cannot say it, the checkpoint does"
    if unsaid := unsaid_yarn(args):
        yield f"{', '.join(unsaid)} of yarn stand in the arguments; Megatron-LM's command line has no words for them"
    if config.get("gradient_checkpointing"):
        yield "gradient checkpointing in config.json becomes full recomputation in the launch flags"
    if config.get("auto_map"):
        yield "code that came with the model is not used: its family is known"
    if parallel.tp > sizes.groups and not sizes.latent:
        yield f"TP {parallel.tp} is more than {sizes.groups} key-value heads: needs megatron-core 0.16 or later"
