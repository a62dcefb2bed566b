"""How transformers and vLLM read rotary position embeddings out of a configuration, as pure functions on its keys."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hfbench.models.resolution.trace import joined, shown
from hfbench.models.runtimes import rules

Parameters = dict[str, Any]

KEYS = (
    "rope_scaling",
    "rope_parameters",
    "rope_theta",
    "rotary_emb_base",
    "rotary_pct",
    "rotary_emb_fraction",
    "partial_rotary_factor",
    "original_max_position_embeddings",
    "rope_local_base_freq",
)
LARGEST = 2**1000
"""Integers beyond it are no numbers for torch, nor for the arithmetic here."""

LABELS = frozenset({"full_attention", "sliding_attention", "chunked_attention", "main", "compress"})


@dataclass(slots=True)
class Reading:
    """RoPE as one runtime uses it. `faults` keep it from loading, `notes` do not."""

    parameters: Parameters | None = None
    faults: list[str] = field(default_factory=list)
    """While the configuration is made."""
    later_faults: list[str] = field(default_factory=list)
    """While the model is built."""
    notes: list[str] = field(default_factory=list)


def read_in_transformers(section: Mapping[str, Any], model_type: str, defaults: Mapping[str, Any]) -> Reading:
    """RoPE after transformers has brought it into today's form; `defaults` holds theta of the type's class."""
    rope = rules("rope")
    family = rope["families"].get(model_type, {})
    reading = Reading()
    given = section.get("rope_scaling") or section.get("rope_parameters") or {}
    if not isinstance(given, dict):
        name = "rope_scaling" if section.get("rope_scaling") else "rope_parameters"
        reading.faults.append(f"{name} is {shown(given)}, an object is needed")
        return reading
    if section.get("rope_scaling") and section.get("rope_parameters"):
        reading.notes.append("rope_scaling wins, rope_parameters is dropped in silence")
    reading.parameters = _copied(given)
    theta = _first(section, family.get("theta_names", ["rope_theta"]), _theta(defaults, rope))
    partial = _first(section, family.get("partial_names", ["partial_rotary_factor"]), family.get("partial_default"))
    for parameters in layers_of(reading.parameters):
        parameters.setdefault("rope_theta", theta)
        if partial is not None:
            parameters.setdefault("partial_rotary_factor", partial)
        parameters.setdefault("rope_type", parameters.get("type", rope["default_type"]))
        _fill_original(parameters, section, rope, flat=parameters is reading.parameters)
        if parameters["rope_type"] in rope["takes_original"] and defaults.get("context") is not None:
            parameters.setdefault(rope["original"], defaults["context"])
        for legacy, today in family.get("legacy_types", {}).items():
            if parameters["rope_type"] == legacy:
                parameters["rope_type"] = today
    _judge(reading, section, rope["types"]["transformers"])
    _tell_ignored(reading, section, family, rope)
    return reading


def read_in_vllm(section: Mapping[str, Any], before: Reading) -> Reading:
    """RoPE after vLLM's own repairs of what transformers made of it."""
    rope = rules("rope")
    reading = Reading(faults=list(before.faults))
    if before.parameters is None:
        return reading
    reading.parameters = _copied(before.parameters)
    partial = _first(section, rope["partial_names"], None)
    for parameters in layers_of(reading.parameters):
        original, legacy = parameters.get("rope_type"), parameters.get("type")
        allowed = [("su", "longrope"), ("mrope", "default")]
        if legacy is not None and legacy != original and (legacy, original) not in allowed:
            reading.faults.append(f"type {shown(legacy)} and rope_type {shown(original)} conflict")
        _repair(parameters, reading)
        _fill_original(parameters, section, rope, flat=parameters is reading.parameters)
        if partial is not None:
            parameters.setdefault("partial_rotary_factor", partial)
    if "rotary_emb_fraction" in section:
        reading.notes.append("rotary_emb_fraction is taken as partial_rotary_factor")
    _judge(reading, section, rope["types"]["vllm"])
    return reading


def layers_of(parameters: Parameters) -> Iterator[Parameters]:
    """The parameters themselves, or those of each layer type where they are nested."""
    nested = [value for key, value in parameters.items() if key in LABELS and isinstance(value, dict)]
    yield from nested or [parameters]


def _repair(parameters: Parameters, reading: Reading) -> None:
    kind = parameters.get("rope_type")
    if kind == "su":
        parameters["rope_type"] = "longrope"
        reading.notes.append("the legacy type 'su' is read as 'longrope'")
    elif kind == "mrope" and "mrope_section" not in parameters:
        reading.faults.append("the legacy type 'mrope' needs mrope_section")
    elif kind == "mrope":
        parameters["rope_type"] = "default"
        reading.notes.append("the legacy type 'mrope' is read as 'default'")
    elif kind == "telechat3-yarn":
        factor: Any = parameters.get("factor")
        if not _number(factor) or factor <= 0:
            reading.faults.append("the type 'telechat3-yarn' needs a factor above 0")
            return
        parameters.update(rope_type="yarn", attention_factor=0.07 * math.log(factor) + 1.0)
        parameters.pop("type", None)
        reading.notes.append("the type 'telechat3-yarn' is read as 'yarn' with an attention_factor of its own")


def _fill_original(parameters: Parameters, section: Mapping[str, Any], rope: Mapping[str, Any], *, flat: bool) -> None:
    """The context before scaling, which some types need, from the root of the configuration."""
    name = rope["original"]
    if parameters.get("rope_type") not in rope["takes_original"]:
        return
    if flat and name in section:
        parameters[name] = section[name]
    elif section.get("max_position_embeddings") is not None:
        parameters.setdefault(name, section["max_position_embeddings"])


def _judge(reading: Reading, section: Mapping[str, Any], types: list[str]) -> None:
    for parameters in layers_of(reading.parameters or {}):
        kind = parameters.get("rope_type")
        required = rules("rope")["required"].get(kind, []) if isinstance(kind, str) else []
        if missing := [key for key in required if key not in parameters]:
            reading.faults.append(f"rope type {shown(kind)} lacks the keys {joined(missing)}")
        if kind not in types:
            reading.later_faults.append(f"rope type {shown(kind)} is not known; known are {joined(types, 'or')}")
        if "factor" in required and "factor" in parameters and not _number(parameters["factor"]):
            reading.later_faults.append(f"the factor of rope type {shown(kind)} is {shown(parameters['factor'])}")
        if not _number(parameters.get("rope_theta")):
            theta = shown(parameters.get("rope_theta"))
            reading.later_faults.append(f"rope_theta is {theta}, a number is needed")
        elif parameters["rope_theta"] <= 0:
            reading.later_faults.append(f"rope_theta is {shown(parameters['rope_theta'])}, it must be above 0")
        head = section.get("head_dim")
        partial = parameters.get("partial_rotary_factor", 1.0)
        if type(head) is int and 4 < head < 2**31 and head % 2 and _number(partial) and int(head * partial) == head:
            reading.faults.append(f"head_dim is {shown(head)}; RoPE needs an even number")


def _tell_ignored(
    reading: Reading, section: Mapping[str, Any], family: Mapping[str, Any], rope: Mapping[str, Any]
) -> None:
    taken = family.get("theta_names", ["rope_theta"])
    for name in rope["theta_names"]:
        if name in section and name not in taken:
            theta = next((each.get("rope_theta") for each in layers_of(reading.parameters or {})), None)
            reading.notes.append(f"{name} is ignored; rope_theta stays {shown(theta)}")
    for parameters in layers_of(reading.parameters or {}):
        legacy, today = parameters.get("type"), parameters.get("rope_type")
        if (
            legacy is not None
            and legacy != today
            and (not isinstance(legacy, str) or legacy not in rope["legacy_types"])
        ):
            reading.notes.append(f"type {shown(legacy)} is dropped in silence, rope_type {shown(today)} is taken")


def _theta(defaults: Mapping[str, Any], rope: Mapping[str, Any]) -> Any:
    theta = defaults.get("theta", rope["default_theta"])
    return next(iter(theta.values())) if isinstance(theta, dict) else theta


def _copied(parameters: Mapping[str, Any]) -> Parameters:
    """A copy in which the parameters of each layer type may be changed."""
    return {key: dict(value) if isinstance(value, dict) else value for key, value in parameters.items()}


def _first(section: Mapping[str, Any], names: list[str], otherwise: Any) -> Any:
    return next((section[name] for name in names if name in section), otherwise)


def _number(value: object) -> bool:
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < LARGEST
    return isinstance(value, float) and math.isfinite(value)
