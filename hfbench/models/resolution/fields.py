"""Step that holds common fields of a configuration against what transformers' classes validate."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hfbench.models.field_types import fits, wanted
from hfbench.models.resolution.subject import Subject
from hfbench.models.resolution.trace import Stage, Trace, joined, shown
from hfbench.models.runtimes import Names, rules

LAYER_TYPES = "layer_types"
PARTS = ("text_config", "vision_config", "audio_config", "quantization_config")

_INTEGER = re.compile(r"\s*[+-]?\d+\s*")


def validate_fields(subject: Subject, trace: Trace, *, mistral: bool) -> None:
    """Block transformers and vLLM, which builds on its classes, where a field has a type or value they refuse."""
    if subject.config is None:
        return
    fate = trace.fates["transformers"]
    faults: list[str] = []
    notes: list[str] = []
    root_type = subject.config.get("model_type")
    for prefix, section in subject.sections():
        model_type = section.get("model_type") or (f"{root_type}_text" if prefix else root_type)
        if isinstance(model_type, str) and model_type in fate.names.config_classes:
            faults += [f"{prefix}{fault}" for fault in _faults(section, model_type, fate.names)]
    architectures = subject.config.get("architectures")
    if architectures is not None and not isinstance(architectures, list):
        notes.append(f"architectures is {shown(architectures)}, a list is meant")
    faults += [*_bad_dtype(subject.config), *_bad_parts(subject.config)]
    looked = "config.json: types and values that transformers validates"
    for fault in faults:
        trace.block(Stage.CONFIGURATION, f"transformers' configuration class refuses it: {fault}", "transformers")
        if not mistral:
            why = f"the configuration class, which vLLM uses too, refuses it: {fault}"
            trace.block(Stage.CONFIGURATION, why, "vllm")
    if faults:
        trace.step("fields", looked, "; ".join(faults), "the configuration cannot be made", "error")
    elif notes:
        trace.step("fields", looked, "; ".join(notes), "taken all the same", "warning")
    else:
        trace.step("fields", looked, "nothing that is refused")


def type_faults(section: Mapping[str, Any], model_type: str, names: Names) -> Iterator[str]:
    """What a configuration class of transformers says against the types of its fields, one sentence a field."""
    if model_type not in names.config_classes:
        return
    for name, value in section.items():
        annotation = names.field_types.get(name, {}).get(model_type)
        if annotation and not fits(value, annotation):
            allowed = joined(wanted(annotation), "or")
            yield f"{name} is {shown(value)}, {allowed} is needed" if value is not None else f"{name} is null"


def _faults(section: Mapping[str, Any], model_type: str, names: Names) -> Iterator[str]:
    yield from type_faults(section, model_type, names)
    yield from _bad_heads(section, model_type, names)
    yield from layer_type_faults(section, model_type, names)


def _bad_heads(section: Mapping[str, Any], model_type: str, names: Names) -> Iterator[str]:
    hidden, heads = section.get("hidden_size"), section.get("num_attention_heads")
    if model_type not in names.whole_heads or type(hidden) is not int or type(heads) is not int:
        return
    if heads == 0 or hidden % heads:
        yield f"hidden_size {shown(hidden)} is not a multiple of the {shown(heads)} attention heads"


def layer_type_faults(section: Mapping[str, Any], model_type: str, names: Names) -> Iterator[str]:
    """What is wrong with the kinds of layers that a configuration lists."""
    layers, count = section.get(LAYER_TYPES), section.get("num_hidden_layers")
    if not isinstance(layers, list) or model_type not in names.rope:
        return
    if unknown := [each for each in layers if not isinstance(each, str) or each not in names.layer_types]:
        yield f"{LAYER_TYPES} holds {shown(unknown[0])}, which transformers does not know"
    elif type(count) is int and count != len(layers):
        yield f"num_hidden_layers is {shown(count)}, {LAYER_TYPES} lists {len(layers)}"


def _bad_parts(config: Mapping[str, Any]) -> Iterator[str]:
    for name in PARTS:
        if config.get(name) is not None and not isinstance(config[name], dict):
            yield f"{name} is {shown(config[name])}, an object is needed"
    labels = config.get("id2label")
    if isinstance(labels, dict) and (wrong := [key for key in labels if not _INTEGER.fullmatch(key)]):
        yield f"id2label has the key {shown(wrong[0])}, a number is needed"


def _bad_dtype(config: Mapping[str, Any]) -> Iterator[str]:
    value = config.get("dtype") if config.get("dtype") is not None else config.get("torch_dtype")
    if isinstance(value, str) and value not in rules("dtypes")["torch"]:
        name = "dtype" if config.get("dtype") is not None else "torch_dtype"
        yield f"{name} is {shown(value)}, which torch does not have"
