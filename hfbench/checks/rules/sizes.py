"""Sizes, types and dtypes of config.json that no model can be built with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hfbench.checks.base import Found, rule
from hfbench.checks.known import vllm
from hfbench.checks.subject import Subject
from hfbench.models.config import HEAD_DIM, HEADS, HIDDEN, KV_HEADS, LAYERS, VOCAB
from hfbench.models.context import context_keys
from hfbench.models.problem import quoted
from hfbench.text import nearest

INTERMEDIATE = ("intermediate_size", "ffn_dim", "n_inner", "moe_intermediate_size")

DTYPES = frozenset(
    [
        "float16",
        "half",
        "bfloat16",
        "float32",
        "float",
        "float64",
        "double",
        "int8",
        "uint8",
        "int16",
        "int32",
        "int64",
        "bool",
        "float8_e4m3fn",
        "float8_e5m2",
        "float8_e4m3fnuz",
        "float8_e5m2fnuz",
        "float8_e8m0fnu",
        "float4_e2m1fn_x2",
    ]
)
"""Names of dtypes that torch has."""

CASTS = {"half": "float16", "float": "float32"}

_HALF = "float16"


@rule("HB214", "heads-do-not-divide")
def heads_do_not_divide(subject: Subject) -> Iterator[Found]:
    """The attention heads do not divide the hidden size, or the key-value heads do not divide the heads.

    Why: the projections cannot be cut into heads, and building the model fails.
    Remedy: write the numbers that the model was trained with, and head_dim where it is not their quotient.
    """
    for section in subject.sections:
        values = section.values
        heads, hidden = _size(values, HEADS), _size(values, HIDDEN)
        kv_heads = _size(values, KV_HEADS)
        own = any(
            values.get(name) is not None for name in (*HEAD_DIM, "kv_lora_rank", "qk_nope_head_dim", "q_lora_rank")
        )
        if heads and hidden and hidden % heads and not own and not subject.custom:
            message = f"{section.path}hidden_size {hidden:,} is not a multiple of {heads} heads"
            yield Found(message=message, file="config.json", evidence={"hidden_size": hidden, "heads": heads})
        if heads and kv_heads and heads % kv_heads:
            message = f"{section.path}num_key_value_heads {kv_heads} does not divide {heads} heads"
            yield Found(message=message, file="config.json", evidence={"heads": heads, "kv_heads": kv_heads})


@rule("HB215", "size-of-zero")
def size_of_zero(subject: Subject) -> Iterator[Found]:
    """A size that every model needs is zero.

    Why: the model would have no layers, no heads or no vocabulary.
    Remedy: write the number that the model was trained with.
    """
    for section in subject.sections:
        for names in (LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD_DIM, VOCAB, context_keys(), INTERMEDIATE):
            zero = next((name for name in names if section.values.get(name) == 0), None)
            if zero and type(section.values[zero]) is int:
                yield Found(message=f"{section.path}{zero} is 0", file="config.json")


@rule("HB216", "odd-head-dim")
def odd_head_dim(subject: Subject) -> Iterator[Found]:
    """The size of a head is odd, and rotary embeddings turn pairs.

    Why: transformers and vLLM refuse to build the model.
    Remedy: write the head_dim that the model was trained with.
    """
    head_dim = subject.config.head_dim
    rotary = any("rope_theta" in each.values or "rope_parameters" in each.values for each in subject.sections)
    if head_dim and head_dim % 2 and rotary and not _partial(subject):
        yield Found(message=f"head_dim is {head_dim}", file="config.json", evidence={"head_dim": head_dim})


@rule("HB217", "unknown-dtype-in-config")
def unknown_dtype_in_config(subject: Subject) -> Iterator[Found]:
    """The dtype in config.json is no dtype of torch.

    Why: transformers and vLLM fail with an error about an attribute of torch.
    Remedy: write bfloat16, float16 or float32.
    """
    for section in subject.sections:
        for key in ("dtype", "torch_dtype"):
            value = section.values.get(key)
            if isinstance(value, str) and value not in DTYPES:
                near = nearest(value, DTYPES)
                remedy = f"did you mean {near!r}?" if near else ""
                yield Found(message=f"{section.path}{key} is {quoted(value)}", file="config.json", remedy=remedy)


@rule("HB219", "dtype-refused")
def dtype_refused(subject: Subject) -> Iterator[Found]:
    """The model is to run in float16, which vLLM refuses for its family.

    Why: the activations of these families leave the range of float16 and become infinite.
    Remedy: use bfloat16 or float32.
    """
    types = {each.model_type for each in subject.sections}
    refused = sorted(each for each in types if each in vllm().float16_refused and each is not None)
    asked = CASTS.get(subject.options.dtype or "", subject.options.dtype)
    if not refused:
        return
    if asked == _HALF:
        message = f"{refused[0]} is asked for in float16, which {vllm().title} refuses"
        yield Found(message=message, file="config.json", evidence={"model_type": refused[0]})
    elif asked in (None, "auto") and CASTS.get(subject.config.dtype or "", subject.config.dtype) == _HALF:
        message = f"dtype is float16, which {vllm().title} refuses for {refused[0]}"
        evidence = {"model_type": refused[0]}
        yield Found(message=message, file="config.json", evidence=evidence, severity="warning")


@rule("HB227", "narrowed-to-float16", severity="warning")
def narrowed_to_float16(subject: Subject) -> Iterator[Found]:
    """A model in bfloat16 or float32 is asked for in float16.

    Why: float16 ends at 65,504; larger weights or activations become infinite.
    Remedy: use bfloat16, or scan the values first.
    """
    asked = CASTS.get(subject.options.dtype or "", subject.options.dtype)
    said = subject.config.dtype
    if asked == _HALF and said in ("bfloat16", "float32") and not subject.config.quantization:
        yield Found(message=f"{said} is to be narrowed to float16", file="config.json", evidence={"config": said})


def _size(values: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((values[name] for name in names if type(values.get(name)) is int and values[name] > 0), None)


def _partial(subject: Subject) -> bool:
    names = ("partial_rotary_factor", "rotary_pct", "rotary_dim", "qk_rope_head_dim", "rotary_emb_fraction")
    return any(each.values.get(name) is not None for each in subject.sections for name in names)
