"""What is known of a Megatron checkpoint before its tensors are put back: family, sizes, layout and spelling."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from hfbench.convert.boxes import TensorSpec
from hfbench.convert.families.registry import families, family_of
from hfbench.convert.families.table import Family
from hfbench.convert.megatron.arguments import UNUSED, arguments_of
from hfbench.convert.megatron.destination import Destination, Format, Names
from hfbench.convert.megatron.names import GROUPED, LEGACY
from hfbench.convert.megatron.parallel import Parallel, refuse_impossible
from hfbench.convert.megatron.sizes import Sizes, sizes_of
from hfbench.convert.megatron.slots import EMBEDDING
from hfbench.errors import HfbenchError, UsageError
from hfbench.models.problem import counted, listed, quoted

RANK = re.compile(r"mp_rank_(\d+)(?:_(\d+))?(?:_(\d+))?\Z")
MOST_RANKS = 1 << 20
"""Ranks that are looked for."""

COMPARED = (
    "num_layers",
    "hidden_size",
    "ffn_hidden_size",
    "num_attention_heads",
    "kv_channels",
    "normalization",
    "swiglu",
    "position_embedding_type",
    "untie_embeddings_and_output_weights",
    "num_experts",
    "multi_latent_attention",
)
"""Arguments that a configuration given along must agree with."""

UNKNOWN_LAYOUTS = {
    "virtual_pipeline_model_parallel_size": "virtual pipeline stages",
    "num_layers_per_virtual_pipeline_stage": "virtual pipeline stages",
    "pipeline_model_parallel_layout": "a free layout of pipeline stages",
    "account_for_embedding_in_pipeline_split": "the embedding counted as a layer",
    "account_for_loss_in_pipeline_split": "the loss counted as a layer",
    "heterogeneous_layers_config_path": "layers of different kinds",
    "hybrid_override_pattern": "layers of state space models",
}
"""Arguments under which layers lie in another order, or are of other kinds, than is known here."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """Everything but the tensors themselves."""

    family: Family
    args: Mapping[str, Any]
    sizes: Sizes
    parallel: Parallel
    format: Format
    names: Names
    per_layer: bool | None
    notes: tuple[str, ...]

    @property
    def tied(self) -> bool:
        """Whether head and embedding are one tensor."""
        return not self.args.get("untie_embeddings_and_output_weights")


def known_of(
    args: Mapping[str, Any],
    sources: Mapping[str, TensorSpec],
    hf_config: Mapping[str, Any] | None,
    vocab: int | None,
) -> Known:
    """What arguments, names and a configuration tell together; UsageError where they do not suffice."""
    format: Format = "torch" if any(RANK.match(name.partition(":")[0]) for name in sources) else "torch_dist"
    plain = {name.partition(":")[2] if format == "torch" else name for name in sources}
    _refuse_layouts(args, plain)
    notes: list[str] = []
    parallel = _parallel(args, sources) if format == "torch" else Parallel()
    names = _spelling(plain)
    told = _told(args, hf_config, Destination(parallel, format, names))
    family = family_of(hf_config) if hf_config else _family(told, notes)
    embedding = _embedding_rows(sources, format)
    told["padded_vocab_size"] = embedding * (parallel.tp if format == "torch" else 1)
    told["vocab_size"] = _vocabulary(told["padded_vocab_size"], args, hf_config, vocab)
    told["mtp_num_layers"] = _further(plain) or None
    sizes = sizes_of(told)
    refuse_impossible(parallel, sizes)
    layered = any(re.match(r"decoder\.layers\.\d", name) for name in plain) if format == "torch_dist" else None
    if format == "torch_dist" and sizes.moe_layers:
        names = "te" if any("pre_mlp_layernorm" in name for name in plain) else "local"
    return Known(
        family=family,
        args=told,
        sizes=sizes,
        parallel=parallel,
        format=format,
        names=names,
        per_layer=layered,
        notes=tuple(notes),
    )


def _refuse_layouts(args: Mapping[str, Any], plain: set[str]) -> None:
    if legacy := next((name for name in sorted(plain) if LEGACY.search(name)), None):
        told = f"{quoted(legacy)} is of the legacy Megatron layout, before megatron-core, which is not supported"
        raise UsageError(told, remedy="load and save it with a Megatron-LM that has --use-mcore-models")
    if grouped := next((name for name in sorted(plain) if GROUPED.search(name)), None):
        told = f"{quoted(grouped)} holds experts as --moe-use-legacy-grouped-gemm writes them, which is not supported"
        raise UsageError(told, remedy="save it without that option")
    for name, what in UNKNOWN_LAYOUTS.items():
        if args.get(name) and not (name == "virtual_pipeline_model_parallel_size" and args[name] == 1):
            raise UsageError(f"the checkpoint has {what} ({name}), which is not supported")


def _parallel(args: Mapping[str, Any], sources: Mapping[str, TensorSpec]) -> Parallel:
    """The layout of rank files; HfbenchError names ranks that are missing."""
    there = {name.partition(":")[0] for name in sources}
    tp, pp, ep = (_degree(args, f"{kind}_model_parallel_size") for kind in ("tensor", "pipeline", "expert"))
    if None in (tp, pp):
        tp, pp, ep = _by_folders(there, tp, pp, ep)
    tp, pp, ep = tp or 1, pp or 1, ep or 1
    if tp * pp * ep > MOST_RANKS:
        raise HfbenchError(f"the arguments tell TP {tp}, PP {pp}, EP {ep}; {counted(len(there), 'rank')} are there")
    parallel = Parallel(
        tp=tp,
        pp=pp,
        ep=ep,
        first_stage_layers=_degree(args, "decoder_first_pipeline_num_layers"),
        last_stage_layers=_degree(args, "decoder_last_pipeline_num_layers"),
    )
    if args.get("num_experts") and args.get("expert_tensor_parallel_size") not in (None, tp):
        raise UsageError(
            "experts are divided otherwise than the rest (expert_tensor_parallel_size), which is not supported"
        )
    expected = [parallel.folder(rank) for rank in parallel.ranks()]
    if missing := [folder for folder in expected if folder not in there]:
        told = f"{counted(len(missing), 'rank')} of {len(expected)} missing: {listed(missing)}"
        raise HfbenchError(told, remedy="bring the ranks' folders together")
    if more := sorted(there - set(expected)):
        raise HfbenchError(f"{listed(more)} belong to no rank of TP {tp}, PP {pp}, EP {ep}")
    return parallel


def _degree(args: Mapping[str, Any], name: str) -> int | None:
    value = args.get(name)
    if value is not None and (type(value) is not int or value < 1):
        raise HfbenchError(f"the argument {name} is {quoted(value)}, a number from 1 is needed")
    return value


def _by_folders(
    there: Collection[str], tp: int | None, pp: int | None, ep: int | None
) -> tuple[int | None, int | None, int | None]:
    """Degrees that the arguments leave out, as the folders count them: TP, then PP where there is one, then EP."""
    counts = [tuple(int(each) for each in found.groups("0")) for name in there if (found := RANK.match(name))]
    first, second, third = (1 + max((each[place] for each in counts), default=0) for place in range(3))
    if pp is None and ep and ep > 1 and third == 1:
        return tp or first, 1, ep  # `mp_rank_00_001` counts experts where there is one stage
    return tp or first, pp or second, ep or third


def _spelling(plain: set[str]) -> Names:
    te = ("linear_qkv.layer_norm_", "linear_kv_up_proj.layer_norm_", "linear_fc1.layer_norm_")
    return "te" if any(each in name for name in plain for each in te) else "local"


def _told(args: Mapping[str, Any], hf_config: Mapping[str, Any] | None, destination: Destination) -> dict[str, Any]:
    """The arguments, from the configuration where there is one and the checkpoint's where it does not say otherwise."""
    own = {name: value for name, value in args.items() if value is not None}
    if hf_config is None:
        if "num_layers" not in own:
            told = "the checkpoint has no arguments, as those of Megatron-Bridge have none"
            raise UsageError(told, remedy="name the model it was made from, or its config.json, with --config")
        return {**UNUSED, "untie_embeddings_and_output_weights": False, **own}
    family = family_of(hf_config)
    told_args = arguments_of(family, hf_config, destination, dtype="")
    learned = told_args["position_embedding_type"] == "learned_absolute"
    for name in (*COMPARED, "max_position_embeddings") if learned else COMPARED:
        if name in own and own[name] != told_args[name] and told_args[name] is not None:
            if name == "ffn_hidden_size" and told_args["num_experts"]:
                continue  # of no effect where every layer has experts
            told = f"config.json gives {name} {told_args[name]!r}, the checkpoint's arguments {own[name]!r}"
            raise HfbenchError(told, remedy="name the configuration that belongs to these weights")
    return told_args


def _family(args: Mapping[str, Any], notes: list[str]) -> Family:
    """The family that the arguments name, else the one whose fixed arguments they have, the most telling first."""
    if isinstance(kind := args.get("hf_model_type"), str):
        return family_of({"model_type": kind})
    fits = [
        family
        for family in families().values()
        if family.told_by_arguments
        and family.mixture == bool(args.get("num_experts"))
        and all((args.get(name) or None) == (value or None) for name, value in family.fixed.items())
    ]
    if not fits:
        known = ", ".join(sorted(families()))
        raise UsageError("the arguments fit none of the families", remedy=f"name its config.json; known are {known}")
    family = max(fits, key=lambda each: len(each.fixed))
    notes.append(f"taken for a model of the family {family.name}, by its arguments")
    return family


def _embedding_rows(sources: Mapping[str, TensorSpec], format: Format) -> int:
    for name, spec in sources.items():
        if (name.partition(":")[2] if format == "torch" else name) == EMBEDDING:
            return spec.rows
    raise HfbenchError(f"{EMBEDDING} is missing", remedy="name the folder of a whole checkpoint")


def _vocabulary(padded: int, args: Mapping[str, Any], config: Mapping[str, Any] | None, given: int | None) -> int:
    told = given or (config or {}).get("vocab_size") or args.get("vocab_size")
    if type(told) is not int:
        found = f"the embedding has {padded:,} rows and nothing tells how many of them are padding"
        raise UsageError(found, remedy="give the true vocabulary with --vocab-size, or a config.json")
    if told > padded:
        raise HfbenchError(f"the vocabulary is {told:,}, the embedding has {padded:,} rows")
    return told


def _further(plain: set[str]) -> int:
    return len({name.split(".")[2] for name in plain if name.startswith("mtp.layers.")})
