"""Rotary positions as Megatron's arguments tell them, from either spelling of transformers, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hfbench.errors import UsageError
from hfbench.models.problem import quoted
from hfbench.models.resolution.rope_rules import read_in_transformers
from hfbench.models.runtimes import shipped

LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
"""What megatron-core takes for granted; only the factor can be told."""

LATENT_YARN = {"original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1}
"""Defaults of megatron-core's multi-latent attention that Megatron-LM's command line has no words for."""


LATENT_FACTOR = 40.0
"""The factor of yarn that it takes where no argument says otherwise."""


def tell_rope(config: Mapping[str, Any], kind: str, args: dict[str, Any]) -> None:
    """Set base and scaling; UsageError for a kind of scaling, or a setting of one, that Megatron cannot express."""
    defaults = shipped("transformers").rope.get(kind)
    if defaults is None:
        return
    theta = defaults.get("theta")
    flat = defaults if not isinstance(theta, Mapping) else {**defaults, "theta": theta.get("global")}
    reading = read_in_transformers(config, kind, flat)
    rope = reading.parameters
    if reading.faults or rope is None:
        raise UsageError(f"the rotary embedding cannot be read: {reading.faults[0] if reading.faults else 'not given'}")
    rope = rope.get("full_attention", rope)
    base = rope.get("rope_theta")
    if isinstance(base, bool) or not isinstance(base, (int, float)) or not 0 < base < float("inf"):
        raise UsageError(f"the rotary base is {quoted(base)}, a positive number is needed")
    args["rotary_base"] = int(base) if float(base).is_integer() else float(base)
    if (part := rope.get("partial_rotary_factor")) is not None:
        if isinstance(part, bool) or not isinstance(part, (int, float)) or not 0 < part <= 1:
            raise UsageError(f"partial_rotary_factor is {quoted(part)}, a number up to 1 is needed")
        args["rotary_percent"] = float(part)
    _tell_scaling(rope, args)


def rope_keys(args: Mapping[str, Any]) -> dict[str, Any]:
    """Base and scaling as keys of config.json, in the spelling that every version of transformers reads."""
    if args.get("position_embedding_type", "rope") != "rope":
        return {}
    keys: dict[str, Any] = {"rope_theta": _number(args, "rotary_base", 10000.0)}
    if args.get("use_rope_scaling"):
        factor = _number(args, "rope_scaling_factor", 8.0)
        keys["rope_scaling"] = {"rope_type": "llama3", "factor": factor, **LLAMA3}
    elif args.get("rotary_seq_len_interpolation_factor"):
        factor = _number(args, "rotary_seq_len_interpolation_factor", 1.0)
        keys["rope_scaling"] = {"rope_type": "linear", "factor": factor}
    elif args.get("multi_latent_attention") and (args.get("rope_type") or "yarn") == "yarn":
        scaling = {name: args[name] for name in ("mscale", "mscale_all_dim") if args.get(name) is not None}
        factor = _number(args, "rotary_scaling_factor", LATENT_FACTOR)
        ranges = {name: args.get(name, value) for name, value in LATENT_YARN.items()}
        keys["rope_scaling"] = {"type": "yarn", "rope_type": "yarn", "factor": factor, **scaling, **ranges}
    return keys


def _number(args: Mapping[str, Any], name: str, default: float) -> float:
    value = args.get(name) or default
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e30:
        raise UsageError(f"the argument {name} is {quoted(value)}, a positive number is needed")
    return float(value)


def unsaid_yarn(args: Mapping[str, Any]) -> list[str]:
    """Names of yarn's settings that are not megatron-core's defaults, and that no launch flag tells."""
    if args.get("rope_type") != "yarn":
        return []
    return [name for name, value in LATENT_YARN.items() if args.get(name, value) != value]


def _tell_scaling(rope: Mapping[str, Any], args: dict[str, Any]) -> None:
    kind, factor = rope.get("rope_type", "default"), rope.get("factor")
    if kind == "default":
        return
    if kind in ("llama3", "linear", "yarn") and (isinstance(factor, bool) or not isinstance(factor, (int, float))):
        raise UsageError(f"the factor of rope scaling {kind} is {quoted(factor)}, a number is needed")
    if kind == "llama3":
        _refuse_others(kind, rope, LLAMA3)
        args.update(use_rope_scaling=True, rope_scaling_factor=float(factor or 0))
    elif kind == "linear":
        args["rotary_seq_len_interpolation_factor"] = factor
    elif kind == "yarn" and args.get("multi_latent_attention"):
        args.update(
            rope_type="yarn",
            rotary_scaling_factor=float(factor or 0),
            mscale=float(rope.get("mscale") or 1.0),
            mscale_all_dim=float(rope.get("mscale_all_dim") or 0.0),
            **{name: rope.get(name, value) for name, value in LATENT_YARN.items()},
        )
    elif kind == "yarn":
        told = "rope scaling yarn is known to Megatron-LM's arguments for multi-latent attention only"
        raise UsageError(told, remedy="remove rope_scaling from config.json to convert the model without long contexts")
    else:
        told = f"rope scaling {quoted(kind)} has no counterpart in Megatron"
        raise UsageError(told, remedy="known are llama3, linear, and yarn with multi-latent attention")


def _refuse_others(kind: str, rope: Mapping[str, Any], known: Mapping[str, float]) -> None:
    for name, value in known.items():
        if rope.get(name, value) != value:
            told = f"rope scaling {kind} with {name} {rope[name]:g}: Megatron has {value:g} built in"
            raise UsageError(told, remedy="it cannot be expressed")
