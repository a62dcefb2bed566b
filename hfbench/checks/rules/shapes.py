"""The shapes and the biases of a plain decoder against what its configuration makes of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hfbench.checks.base import Found, rule
from hfbench.checks.subject import Subject
from hfbench.checks.tensor_names import FLOATING, PLAIN
from hfbench.models.config import ModelConfig
from hfbench.models.problem import counted, quoted

Shape = tuple[int, ...]

QKVO = tuple(f"self_attn.{part}_proj" for part in "qkvo")
GATE_UP_DOWN = tuple(f"mlp.{part}_proj" for part in ("gate", "up", "down"))

_IN_LAYER = re.compile(r"(?:^|\.)layers\.\d+\.(.+)\Z")
_BESIDE_TEXT = re.compile(r"vision|visual|audio|encoder|mtp|draft|eagle")


@rule("HB222", "sizes-differ")
def sizes_differ(subject: Subject) -> Iterator[Found]:
    """hidden_size, the heads or intermediate_size do not give the shapes that the weights have.

    Why: loading fails with a mismatch of shapes, far from the line of the configuration that is wrong.
    Remedy: fetch config.json and the weights again, from one revision.
    """
    config = subject.config
    if config.model_type not in PLAIN or config.quantization or not config.hidden:
        return
    table = subject.places.embedding
    if table is not None and table.shape[1] != config.hidden:
        message = f"hidden_size is {config.hidden:,}, the embedding is {table.shape[1]:,} wide"
        yield Found(message=message, file="config.json", evidence={"tensor": table.name})
        return
    wanted = _shapes(config, subject.text.values.get("intermediate_size"))
    columns, told = subject.checkpoint.columns, dict[str, list[int]]()
    for row, suffix in _in_layers(subject):
        shape = columns.shapes[columns.shape_ids[row]]
        if suffix in wanted and wanted[suffix][0] != shape and columns.dtypes[columns.dtype_ids[row]] in FLOATING:
            told.setdefault(suffix, []).append(row)
    for suffix, rows in told.items():
        tensor, (shape, keys) = columns[rows[0]], wanted[suffix]
        more = f", as are {counted(len(rows) - 1, 'further layer')}" if len(rows) > 1 else ""
        yield Found(
            message=f"{keys} make {list(shape)}, {quoted(tensor.name)} is {list(tensor.shape)}{more}",
            file="config.json",
            evidence={"tensor": tensor.name, "config": list(shape), "weights": list(tensor.shape)},
        )


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


def _shapes(config: ModelConfig, intermediate: object) -> dict[str, tuple[Shape, str]]:
    """The shape of each tensor of a layer that follows from the configuration, and the keys it follows from."""
    hidden = config.hidden or 0
    wanted: dict[str, tuple[Shape, str]] = {
        f"{norm}.weight": ((hidden,), "hidden_size") for norm in ("input_layernorm", "post_attention_layernorm")
    }
    if config.heads and config.kv_heads and config.head_dim:
        heads, keys = config.heads * config.head_dim, config.kv_heads * config.head_dim
        queries = ((heads, hidden), "num_attention_heads, head_dim and hidden_size")
        pairs = ((keys, hidden), "num_key_value_heads, head_dim and hidden_size")
        back = ((hidden, heads), "hidden_size, num_attention_heads and head_dim")
        wanted |= {f"{QKVO[0]}.weight": queries, f"{QKVO[1]}.weight": pairs, f"{QKVO[2]}.weight": pairs}
        wanted[f"{QKVO[3]}.weight"] = back
    if type(intermediate) is int:
        wide = ((intermediate, hidden), "intermediate_size and hidden_size")
        wanted |= {f"{GATE_UP_DOWN[0]}.weight": wide, f"{GATE_UP_DOWN[1]}.weight": wide}
        wanted[f"{GATE_UP_DOWN[2]}.weight"] = ((hidden, intermediate), "hidden_size and intermediate_size")
    return wanted


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
