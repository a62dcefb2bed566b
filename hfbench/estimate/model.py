"""Reads a folder into what fitting needs: headers where there are some, else the architecture, and what is guessed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hfbench.errors import HfbenchError, UsageError
from hfbench.estimate.architecture import Architecture, architecture_of
from hfbench.estimate.headers import Headers, count_headers
from hfbench.estimate.quantized import Scheme, scheme_of
from hfbench.estimate.runtimes import COMPUTING, SIZES, Runtime, dtype_named
from hfbench.estimate.settings import NotKnown, Settings
from hfbench.estimate.weights import Weights, from_bytes, from_parts
from hfbench.estimate.workload import Model, Shape
from hfbench.models.config import ModelConfig, read_config
from hfbench.models.context import Context, context_of
from hfbench.models.json_text import JsonError, cut_depth, read_object
from hfbench.models.problem import Problem
from hfbench.models.problem import counted as numbered
from hfbench.models.reference import Location, NotFound
from hfbench.models.weights import choose_weights
from hfbench.units import show_bytes

Source = Literal["headers", "architecture", "files"]
SIDE = "hf_quant_config.json"
OPENED = ("safetensors", "safetensors-sharded", "consolidated", "adapter")


@dataclass(frozen=True)
class Reading:
    """A model and where its figures are from. `dtype` is computed in, `weight_dtype` is that of weights not packed."""

    model: Model
    source: Source
    dtype: str
    weight_dtype: str
    architecture: Architecture
    config: ModelConfig
    guesses: tuple[str, ...]
    warnings: tuple[str, ...]
    broken: tuple[Problem, ...]
    """Errors that make the weights incomplete."""


def read_model(location: Location, *, runtime: Runtime, dtype: str | None) -> Reading:
    """The model of a folder. NotFound when it holds neither weights nor a configuration."""
    config = read_config(location.folder)
    architecture = architecture_of(config)
    tied = config.tied if config.tied is not None else _class_ties(architecture)
    headers = count_headers(location.folder, layers=config.layers, tied=tied, bits=_bits(config.raw))
    computing = dtype if dtype in COMPUTING else computing_dtype(config, runtime)
    held = dtype or computing
    weights, source, guesses = _weights(location, config, headers, architecture, held, dtype is not None)
    if weights.unused:
        what = "a copy of a tied head, or layers beyond those of the configuration"
        guesses = (*guesses, f"{show_bytes(weights.unused)} stored are not loaded: {what}")
    shape = shape_of(config, architecture)
    broken = tuple(each for each in headers.problems if each.severity == "error") if source == "headers" else ()
    context = context_of(config.raw, runtime.name)
    model = Model(location.name, weights, architecture.caches, shape, context.limit)
    return Reading(
        model=model,
        source=source,
        dtype=computing,
        weight_dtype=held,
        architecture=architecture,
        config=config,
        guesses=(*guesses, *architecture.guesses, *_about_context(context)),
        warnings=(*architecture.not_known, *_cache_wishes(config, location.folder)),
        broken=broken,
    )


def computing_dtype(config: ModelConfig, runtime: Runtime) -> str:
    """The type a runtime computes in by default: the configuration's, but vLLM casts float32 down."""
    try:
        told = dtype_named(config.dtype) if config.dtype else ""
    except UsageError:
        told = ""
    return told if told in COMPUTING and told != "float32" else runtime.computing


def shape_of(config: ModelConfig, architecture: Architecture) -> Shape:
    """The widths, 0 where the configuration does not tell them."""
    c = architecture.text

    def known(read: Callable[[Settings], int], otherwise: int | None = None) -> int:
        try:
            return read(c) if c is not None else otherwise or 0
        except NotKnown:
            return otherwise or 0

    experts = known(lambda c: c.optional("experts"), config.experts)
    chosen = known(lambda c: c.optional("num_experts_per_tok", "top_k_experts", "num_experts_per_token"))
    width = known(lambda c: c.width)
    if experts:
        width = max(width, chosen * known(lambda c: c.size("moe_intermediate_size", "intermediate_size")))
    latent = known(lambda c: c.optional("kv_lora_rank"))
    return Shape(
        hidden=known(lambda c: c.hidden, config.hidden),
        heads=known(lambda c: c.heads, config.heads),
        kv_heads=0 if latent else known(lambda c: c.kv_heads, config.kv_heads),
        head_dim=known(lambda c: c.head_dim, config.head_dim),
        width=width,
        vocab=known(lambda c: c.vocab, config.vocab),
        experts=experts,
    )


def _weights(
    location: Location,
    config: ModelConfig,
    headers: Headers,
    architecture: Architecture,
    held: str,
    asked: bool,
) -> tuple[Weights, Source, tuple[str, ...]]:
    if headers.weights is not None:
        return headers.weights, "headers", ()
    if architecture.parts is not None:
        scheme, guesses = _scheme(config, location.folder, asked)
        size = SIZES[held]
        depth = config.layers or (len(architecture.caches) if architecture.caches else 1)
        weights = from_parts(architecture.parts, layers=depth, size=size, scheme=scheme)
        counted = "weights are counted from the architecture, not from headers"
        unread = _unread(headers)
        return weights, "architecture", (f"{counted}: {unread}" if unread else counted, *guesses)
    unopened = choose_weights(location.folder).unopened
    total = sum(each.bytes for each in unopened)
    if total:
        return from_bytes(total), "files", (f"weights are the size of {numbered(len(unopened), 'file')}, not opened",)
    if config.source is None:
        if unread := _unread(headers):
            raise HfbenchError(
                f"no weights can be read: {unread}", where=location.folder, remedy="hfbench check tells more"
            )
        raise NotFound("no config.json and no weights", where=location.folder, remedy="give the folder of a model")
    return from_bytes(0), "architecture", ()


def _unread(headers: Headers) -> str:
    """Why there are weights and none of them could be read."""
    if headers.format not in OPENED:
        return ""
    return next((str(problem) for problem in headers.problems if problem.severity == "error"), "")


def _scheme(config: ModelConfig, folder: Path, asked: bool) -> tuple[Scheme | None, tuple[str, ...]]:
    """How the weights would be packed; a type that is asked for means that they are not."""
    if asked:
        return None, ("a type is asked for: quantised weights are counted as unpacked",) if config.quantization else ()
    side: dict[str, Any] | None = None
    if (folder / SIDE).is_file():
        try:
            side = read_object(folder / SIDE, folder).value
            cut_depth(side)
        except JsonError:
            side = None
    try:
        scheme = scheme_of(config.raw, side)
    except NotKnown as reason:
        return None, (f"{reason}; they are counted as unpacked",)
    told = f"weights are packed as {scheme.method} by the configuration's own list of exceptions" if scheme else ""
    return scheme, (told,) if told else ()


def _class_ties(architecture: Architecture) -> bool | None:
    return architecture.text.tied if architecture.text is not None else None


def _bits(raw: dict[str, Any]) -> int | None:
    told = raw.get("quantization_config")
    bits = told.get("bits", told.get("w_bit")) if isinstance(told, dict) else None
    if isinstance(told, dict) and bits is None:
        groups = told.get("config_groups")
        first = next(iter(groups.values()), None) if isinstance(groups, dict) else None
        weights = first.get("weights") if isinstance(first, dict) else None
        bits = weights.get("num_bits") if isinstance(weights, dict) else None
    return bits if type(bits) is int and bits in (2, 3, 4, 8) else None


def _about_context(context: Context) -> tuple[str, ...]:
    """How the limit comes about, where it does not simply stand in the file."""
    if context.origin == "assumed":
        return (f"context limit: no key tells one, vLLM assumes {context.limit:,}",)
    told = f"context limit: {context.key} is the default of {context.by}" if context.by else ""
    return tuple(filter(None, (told, *(f"context limit: {why}" for why in context.whys))))


def _cache_wishes(config: ModelConfig, folder: Path) -> tuple[str, ...]:
    """What a checkpoint says of its own cache."""
    told = config.raw.get("quantization_config")
    scheme = told.get("kv_cache_scheme") if isinstance(told, dict) else None
    if isinstance(scheme, dict) and scheme.get("num_bits") == 8:
        return ("the checkpoint carries scales for an 8-bit KV cache: --kv-dtype fp8 counts it",)
    return ()
