"""The shapes and the biases of the tensors against what its configuration makes of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hfbench.checks.base import Found, rule
from hfbench.checks.known import known_type
from hfbench.checks.subject import Subject
from hfbench.models.problem import counted, quoted

QKVO = tuple(f"self_attn.{part}_proj" for part in "qkvo")
GATE_UP_DOWN = tuple(f"mlp.{part}_proj" for part in ("gate", "up", "down"))

OF_WIDTH = re.compile(r"dim|hidden|embd|d_model|embed|width|size")
"""Keys that may tell how wide an embedding is: ALBERT, ELECTRA and others factor theirs."""

_IN_LAYER = re.compile(r"(?:^|\.)layers\.\d+\.(.+)\Z")
_BESIDE_TEXT = re.compile(r"vision|visual|audio|encoder|mtp|draft|eagle")


@rule("HB222", "sizes-differ")
def sizes_differ(subject: Subject) -> Iterator[Found]:
    """hidden_size, the heads or intermediate_size do not give the shapes that the weights have.

    Why: loading fails with a mismatch of shapes, far from the line of the configuration that is wrong.
    Remedy: fetch config.json and the weights again, from one revision.
    """
    config, fit = subject.config, subject.fit
    if config.quantization or not subject.raw:
        return
    table = subject.places.embedding
    if fit is None and table is not None and _another_width(subject, table.shape[1]):
        message = f"hidden_size is {config.hidden:,}, the embedding is {table.shape[1]:,} wide"
        yield Found(message=message, file="config.json", evidence={"tensor": table.name})
    for each in fit.misfits() if fit else ():
        tensor, shape = each.tensor, list(each.wanted)
        makes = "make" if " and " in each.keys else "makes"
        more = f", as are {counted(each.further, 'further layer')}" if each.further else ""
        yield Found(
            message=f"{each.keys} {makes} {shape}, {quoted(tensor.name)} is {list(tensor.shape)}{more}",
            file="config.json",
            evidence={"tensor": tensor.name, "config": shape, "weights": list(tensor.shape)},
        )
        if len(shape) == 2 and not each.layered:
            return  # every layer is as wide as the embedding: the rest follows from this


@rule("HB235", "biases-differ")
def biases_differ(subject: Subject) -> Iterator[Found]:
    """The weights hold biases that the configuration does not build, or lack those that it does.

    Why: transformers drops the ones without a word to the user and fills the others with zeros.
    Remedy: set attention_bias and mlp_bias to what the model was trained with.
    """
    config = subject.config
    if config.quantization or not subject.complete or subject.custom:
        return
    wanted = _biases(subject)
    if wanted is None:
        return
    stored = {suffix.removesuffix(".bias") for _, suffix in _in_layers(subject) if suffix.endswith("_proj.bias")}
    known = {*QKVO, *GATE_UP_DOWN}
    if dropped := sorted(stored & known - wanted):
        message = f"{config.model_type} builds no bias of {', '.join(dropped)} here, and the weights hold it"
        yield Found(message=message, file="config.json", evidence={"stored": dropped})
    if lacking := sorted(wanted - stored):
        message = f"the weights hold no bias of {', '.join(lacking)}, which the configuration builds"
        yield Found(message=message, file="config.json", evidence={"missing": lacking}, severity="warning")


def _in_layers(subject: Subject) -> Iterator[tuple[int, str]]:
    """The row of each tensor of a numbered layer, and its name below that layer."""
    for row, name in enumerate(subject.tensor_names):
        match = _IN_LAYER.search(name)
        if match and not _BESIDE_TEXT.search(name):
            yield row, match[1]


def _another_width(subject: Subject, width: int) -> bool:
    """True for an embedding of a known type that is neither as wide as the layers nor as a key of its own says."""
    if len(subject.sections) > 1 or any(key.endswith("_config") for key in subject.raw):
        return False  # which part is the language model's is not certain
    told = [value for key, value in subject.raw.items() if OF_WIDTH.search(key)]
    return known_type(subject.config.model_type) and subject.config.hidden is not None and width not in told


def _biases(subject: Subject) -> set[str] | None:
    """The projections of a layer that have a bias; None for families of which it is not known."""
    values = subject.text.values
    attention = {*QKVO} if values.get("attention_bias") is True else set[str]()
    match subject.config.model_type:
        case "llama":
            return attention | ({*GATE_UP_DOWN} if values.get("mlp_bias") is True else set())
        case "qwen3" | "gemma":
            return attention
        case "qwen2":
            return {*QKVO[:3]}
        case "mistral":
            return set()
        case _:
            return None
