"""Fields of config.json whose values are of a type, or a name, that the configuration classes do not take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hfbench.checks.base import Found, rule
from hfbench.checks.known import known_type, transformers
from hfbench.checks.subject import Section, Subject
from hfbench.checks.tables import table
from hfbench.checks.tensor_names import PLAIN
from hfbench.models.problem import quoted
from hfbench.models.resolution.fields import layer_type_faults, type_faults
from hfbench.text import nearest

NUMBERS = ("rms_norm_eps", "layer_norm_eps", "initializer_range", "attention_dropout", "rope_theta")
"""Fields that are numbers wherever they are not null, also of families that no library knows."""

INTEGERS = ("intermediate_size", "num_labels", "sliding_window")

ONE_EACH = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "max_position_embeddings",
            "intermediate_size", "head_dim")  # fmt: skip
"""Fields that single families keep as a list for all layers, and plain ones do not."""

OBJECTS = ("rope_scaling", "rope_parameters", "quantization_config", "auto_map")
"""Fields that must be objects where they are not null."""

MAY_BE_EMPTY = ("rope_scaling", "auto_map")
"""Those that are passed over when they are false or an empty list."""

PARTS = ("text_config", "vision_config", "audio_config", "llm_config", "id2label", "label2id")

TOKEN_IDS = ("bos_token_id", "eos_token_id", "pad_token_id")

ACTIVATIONS = ("hidden_act", "activation_function", "hidden_activation", "dense_act_fn")


@rule("HB218", "wrong-type-of-a-field")
def wrong_type_of_a_field(subject: Subject) -> Iterator[Found]:
    """A field is of another type than it must be: a number in quotes, a list in place of an object.

    Why: transformers refuses the configuration with an error that names a dataclass, or fails on a missing method.
    Remedy: write a value of the type that is named.
    """
    told = {problem.found.partition(" ")[0] for problem in subject.config.problems}
    for section in subject.sections:
        for fault in _faults(subject, section):
            name = f"{section.path}{fault.partition(' ')[0]}"
            if name not in told:
                told.add(name)
                yield Found(message=f"{section.path}{fault}", file="config.json")


@rule("HB239", "unknown-activation")
def unknown_activation(subject: Subject) -> Iterator[Found]:
    """The activation function is none that transformers has.

    Why: building the model fails with a KeyError.
    Remedy: correct the spelling.
    """
    known = table("activations")["known"]
    unread = table("activations")["unread"].get(subject.config.model_type or "", [])
    for section in subject.sections:
        for name in ACTIVATIONS if _library(subject, section) else ():
            value = section.values.get(name)
            if isinstance(value, str) and value not in (*known, *unread) and not value.startswith("gated-"):
                near = nearest(value, known)
                remedy = f"did you mean {near!r}?" if near else ""
                yield Found(message=f"{section.path}{name} is {quoted(value)}", file="config.json", remedy=remedy)


def _faults(subject: Subject, section: Section) -> Iterator[str]:
    """Sentences that begin with the name of the field."""
    values, model_type = section.values, section.model_type or subject.config.model_type
    for name in OBJECTS:
        value = values.get(name)
        if value is not None and not isinstance(value, dict) and (value or name not in MAY_BE_EMPTY):
            yield f"{name} is {shown(value)}, an object is needed"
    if "auto_map" in values and values["auto_map"] is None:
        yield "auto_map is null, an object is needed"
    for name in PARTS:
        if values.get(name) is not None and not isinstance(values[name], dict):
            yield f"{name} is {shown(values[name])}, an object is needed"
    for name in NUMBERS:
        value = values.get(name)
        if isinstance(value, (str, list, dict)) or (isinstance(value, bool) and name != "rope_theta"):
            yield f"{name} is {shown(value)}, a number is needed"
    for name in INTEGERS:
        if isinstance(values.get(name), (str, float, dict)):
            yield f"{name} is {shown(values[name])}, an integer is needed"
    for name in TOKEN_IDS:
        if not _is_id(values.get(name), several=name == "eos_token_id"):
            yield f"{name} is {shown(values[name])}, a token id is needed"
    if _library(subject, section):
        yield from _of_library(values, str(model_type))


def _of_library(values: Any, model_type: str) -> Iterator[str]:
    yield from type_faults(values, model_type, transformers())
    yield from layer_type_faults(values, model_type, transformers())
    if "layer_types" in values and not isinstance(values["layer_types"], (list, type(None))):
        yield f"layer_types is {shown(values['layer_types'])}, a list is needed"
    for name in ACTIVATIONS:
        if isinstance(values.get(name), (bool, int, float, list)):
            yield f"{name} is {shown(values[name])}, a name is needed"
    for name in ONE_EACH if model_type in PLAIN else ():
        if isinstance(values.get(name), list):
            yield f"{name} is a list, an integer is needed"


def _library(subject: Subject, section: Section) -> bool:
    return known_type(section.model_type or subject.config.model_type) and not subject.custom


def _is_id(value: object, *, several: bool) -> bool:
    if value is None or type(value) is int:
        return True
    return several and isinstance(value, list) and all(type(each) is int for each in value)


def shown(value: object) -> str:
    """A value of JSON inside a sentence."""
    if value is None:
        return "null"
    if isinstance(value, (bool, int, float)):
        return str(value)[:40].lower()
    return quoted(value) if isinstance(value, str) else "an object" if isinstance(value, dict) else "a list"
