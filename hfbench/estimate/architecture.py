"""The architecture of a configuration: its tensors and caches, or the reason why they are not known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hfbench.estimate.blocks.attention import WINDOWED, WINDOWS
from hfbench.estimate.caches import LayerCache, attention_cache
from hfbench.estimate.family import FULL, Family, families
from hfbench.estimate.parts import Part
from hfbench.estimate.settings import MOST_LAYERS, NotKnown, Settings, class_table
from hfbench.models.config import ModelConfig
from hfbench.models.context import TEXT_PARTS
from hfbench.models.problem import listed, quoted

KINDS = ("layer_types", "layers_block_type")
PLAIN = (FULL, "attention", *WINDOWED)
"""Kinds of layers whose cache follows from their heads alone."""
STATES = (
    "attn_layer_indices",
    "attn_layer_period",
    "conv_L_cache",
    "conv_kernel",
    "inference_state",
    "linear_",
    "lru_",
    "mamba_",
    "n_mamba_",
    "n_recurrent",
    "recurrent",
    "rwkv",
    "short_conv",
    "ssm_",
    "state_size",
)
"""Beginnings of settings that only models have which keep a state beside or instead of keys and values."""
UNEVEN = (
    "H_cycles",
    "block_configs",
    "cca_time0",
    "compress_ratios",
    "dim_head",
    "global_head_dim",
    "index_head_dim",
    "num_global_key_value_heads",
    "num_kv_shared_layers",
    "swa_head_dim",
    "swa_num_key_value_heads",
    "use_cla",
    "v_head_dim",
    "zero_expert_num",
)
"""Settings by which layers keep other amounts than their heads tell, or keep them more than once."""


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """What follows from a configuration. Without `parts` or `caches` there is a reason in `not_known`."""

    parts: tuple[Part, ...] | None = None
    caches: tuple[LayerCache, ...] | None = None
    text: Settings | None = None
    """The settings of the language model."""
    not_known: tuple[str, ...] = ()
    guesses: tuple[str, ...] = ()

    @property
    def parameters(self) -> int | None:
        """Parameters, tied ones once; buffers are none."""
        return sum(part.elements for part in self.parts if not part.buffer) if self.parts is not None else None

    @property
    def tensors(self) -> int | None:
        """Tensors as transformers 5 holds them: the experts of a layer fused, a tied head left out."""
        return sum(part.tensors for part in self.parts) if self.parts is not None else None


def architecture_of(config: ModelConfig) -> Architecture:
    """Tensors by the family's own arithmetic, and caches by it or by the heads that the configuration counts."""
    if config.source is None or not config.raw:
        return Architecture(not_known=("no configuration, so no figure for the KV cache",))
    settings = Settings(config.raw)
    family = families().get(settings.kind)
    if family is None:
        return _unknown(config, settings)
    try:
        text = family.text(settings)
    except NotKnown as reason:
        return _generic(config, (str(reason),))
    reasons: list[str] = []
    parts = _parts(family, settings, reasons)
    try:
        caches: Sequence[LayerCache] | None = family.caches(settings)
    except NotKnown as reason:
        caches = None
        reasons.append(f"KV cache: {reason}")
    return Architecture(
        parts=parts,
        caches=tuple(caches) if caches is not None else None,
        text=text,
        not_known=tuple(dict.fromkeys(reasons)),
        guesses=(*_unread(settings), *_assumed(text)),
    )


def _parts(family: Family, settings: Settings, reasons: list[str]) -> tuple[Part, ...] | None:
    try:
        return tuple(family.parts(settings))
    except NotKnown as reason:
        reasons.append(f"parameters: {reason}")
        return None


def _unread(settings: Settings) -> tuple[str, ...]:
    """Sizes that the class of transformers 5.24 does not look at."""
    if settings.kind == "qwen3_asr" and "thinker_config" in settings.raw and "text_config" not in settings.raw:
        return ("thinker_config is not read by transformers 5.24, which builds the default sizes counted here",)
    return ()


def _assumed(text: Settings) -> tuple[str, ...]:
    """Sizes of the language model that the file leaves out, when it has any of its own."""
    missing = text.assumed("layers", "hidden", "heads", "vocab") if text.raw else ()
    what = f"{listed(missing)} {'is' if len(missing) == 1 else 'are'} not given"
    return (f"{what}: counted by the defaults of {class_table().title}",) if missing else ()


def _unknown(config: ModelConfig, settings: Settings) -> Architecture:
    """A model_type without a family: perhaps its language model has one."""
    kind = config.model_type
    reason = f"parameters: not known for model_type {quoted(kind)}" if kind else "the configuration has no model_type"
    for name in TEXT_PARTS:
        nested = settings.raw.get(name)
        inner = nested.get("model_type") if isinstance(nested, dict) else None
        family = families().get(inner) if isinstance(inner, str) else None
        if family is None or not isinstance(nested, dict):
            continue
        text = Settings(nested)
        try:
            caches = tuple(family.caches(text))
        except NotKnown:
            continue
        return Architecture(caches=caches, text=text, not_known=(reason,))
    return _generic(config, (reason,))


def _generic(config: ModelConfig, reasons: tuple[str, ...]) -> Architecture:
    """Caches from the counted heads alone, where every layer is of a kind that needs nothing more."""
    settings = _innermost(config)
    if not config.layers or config.layers > MOST_LAYERS:
        return Architecture(not_known=reasons)
    try:
        caches = _by_heads(config, settings)
    except NotKnown as reason:
        return Architecture(not_known=(*reasons, f"KV cache: {reason}"))
    guess = f"model_type {quoted(config.model_type or '')} is not known here: the KV cache is counted from its heads"
    if settings.optional(*WINDOWS) and not settings.sequence(*KINDS):
        guess += ", and every layer as full, for the layers of its window are not listed"
    return Architecture(caches=tuple(caches), text=settings, not_known=reasons, guesses=(guess,))


def _by_heads(config: ModelConfig, c: Settings) -> list[LayerCache]:
    assert config.layers is not None
    kinds = [str(each) for each in c.sequence(*KINDS)][: config.layers]
    if strange := [kind for kind in kinds if kind not in PLAIN]:
        raise NotKnown(f"what {quoted(strange[0])} layers keep is not known for this model_type")
    if any(name.startswith(STATES) for name in (*c.raw, *(c.cls.fields if c.cls else ()))):
        raise NotKnown("some layers keep a state, and its size is not known for this model_type")
    if Settings(config.raw).flag("is_encoder_decoder"):
        raise NotKnown("a decoder also keeps what its encoder gave, and how is not known for this model_type")
    kinds = kinds or [FULL] * config.layers
    rank = c.optional("kv_lora_rank")
    for name in UNEVEN:
        if (c.raw.get(name) or (c.cls and c.declares(name))) and not (rank and name == "v_head_dim"):
            raise NotKnown(f"{name} changes what layers keep, and how is not known for this model_type")
    if rank:
        return [LayerCache("latent_attention", shared=rank + c.optional("qk_rope_head_dim"))] * config.layers
    if not config.kv_heads or not config.head_dim:
        raise NotKnown("the configuration does not count its heads")
    window = c.optional(*WINDOWS) or None
    made = {
        kind: attention_cache(kind, config.kv_heads, config.head_dim, window if kind in WINDOWED else None)
        for kind in dict.fromkeys(kinds)
    }
    return [made[kind] for kind in kinds]


def _innermost(config: ModelConfig) -> Settings:
    """The part of the configuration in which the language model's facts stand."""
    raw = config.raw
    for name in (config.parts[0] if config.parts else "").split("."):
        nested = raw.get(name)
        raw = nested if isinstance(nested, dict) else raw
    return Settings(raw)
