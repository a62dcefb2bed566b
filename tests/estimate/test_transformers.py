"""The counts of transformers itself on the meta device, and what its caches hold after a forward pass."""

from __future__ import annotations

import dataclasses
import json
import random
import zlib
from pathlib import Path
from typing import Any

import pytest

from hfbench.estimate.architecture import architecture_of
from hfbench.estimate.caches import LayerCache
from hfbench.estimate.family import families
from hfbench.estimate.settings import class_table
from hfbench.models.config import read_config

pytestmark = pytest.mark.slow

SMALL = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 120,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
MOE = {"num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "moe_intermediate_size": 32}
LATENT = {
    "q_lora_rank": 16, "kv_lora_rank": 24, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16,
    "num_key_value_heads": 4, "n_group": 1, "topk_group": 1, "num_experts_per_tok": 2,
}  # fmt: skip
INDEXED = {**LATENT, **MOE, "index_head_dim": 16, "index_n_heads": 2, "index_topk": 8}
DELTA = {
    "linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
    "layer_types": ["linear_attention", "full_attention"] * 2,
}  # fmt: skip
NEMOTRON = {
    "layers_block_type": ["mamba", "moe", "attention", "mlp"], "mamba_num_heads": 4, "mamba_head_dim": 16,
    "n_groups": 2, "ssm_state_size": 8, "chunk_size": 8, "moe_shared_expert_intermediate_size": 48, **MOE,
}  # fmt: skip

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "heads without groups": ("llama", {"num_key_value_heads": None, "head_dim": None}),
    "a tied head": ("llama", {"tie_word_embeddings": True, "mlp_bias": True, "attention_bias": True}),
    "another name": ("gpt2", {"num_hidden_layers": 3, "n_embd": 64, "n_inner": None}),
    "a width of the class": ("deepseek_v3", {**LATENT, "n_routed_experts": 4, "num_hidden_layers": 4}),
    "a head size that is not declared": ("qwen2", {"head_dim": 24}),
    "a head size that is passed over": ("bloom", {"head_dim": 24, "num_key_value_heads": 1}),
    "norms of single heads": ("stablelm", {"head_dim": 16, "qk_layernorm": True, "use_parallel_residual": True}),
    "a window": ("gemma2", {"sliding_window": 12}),
    "a window in every layer": ("starcoder2", {"sliding_window": 12}),
    "a pattern of windows": ("cohere2", {"sliding_window": 12}),
    "layers that are listed": ("gpt_oss", {**MOE, "layer_types": ["full_attention"] * 3 + ["sliding_attention"]}),
    "chunks": ("llama4_text", {**MOE, "attention_chunk_size": 12, "intermediate_size_mlp": 48}),
    "experts in some layers": ("qwen3_moe", {**MOE, "mlp_only_layers": [1], "num_experts_per_tok": 2}),
    "a first dense layer": ("glm4_moe_lite", {**LATENT, **MOE}),
    "latent vectors": ("deepseek_v3", {**LATENT, **MOE, "first_k_dense_replace": 1}),
    "latent vectors without a rank of queries": ("minicpm3", {**LATENT, "q_lora_rank": None, "v_head_dim": None}),
    "an index": ("deepseek_v32", {**INDEXED, "first_k_dense_replace": 1}),
    "a delta rule": (
        "qwen3_next",
        {**MOE, **DELTA, "num_experts_per_tok": 2, "shared_expert_intermediate_size": 48},
    ),
    "a delta rule of channels": (
        "kimi_linear",
        {
            **LATENT, **MOE, "num_experts_per_token": 2, "linear_num_heads": 4, "linear_head_dim": 16,
            "layer_types": DELTA["layer_types"],
        },
    ),
    "a state space": ("mamba", {"state_size": 8, "expand": 2}),
    "state space beside attention": (
        "jamba",
        {**MOE, "attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 8, "mamba_dt_rank": 8},
    ),
    "layers of feed-forward alone": ("nemotron_h", NEMOTRON),
    "short convolutions": ("lfm2", {"layer_types": ["conv", "full_attention"] * 2}),
    "caches that are shared": (
        "gemma4_text",
        {
            "num_kv_shared_layers": 2, "global_head_dim": 32, "attention_k_eq_v": True, "num_global_key_value_heads": 1,
            "hidden_size_per_layer_input": 8, "vocab_size_per_layer_input": 120, "use_double_wide_mlp": True,
            "layer_types": ["sliding_attention", "full_attention"] * 2, "sliding_window": 12, **MOE,
            "enable_moe_block": True, "top_k_experts": 2,
        },
    ),
    "an encoder made a decoder": ("bert", {"is_decoder": True}),
}  # fmt: skip


NEEDED: dict[str, dict[str, Any]] = {
    "dots1": {"n_routed_experts": 8, "n_shared_experts": 1},
    "gpt_neo": {"num_layers": 2, "attention_types": [[["global", "local"], 1]]},
    "hunyuan_v1_dense": {"head_dim": 64},
    "ministral": {"head_dim": 64},
    "nemotron": {"head_dim": 128, "num_key_value_heads": 8},
    "nemotron_h": {"layers_block_type": ["mamba", "moe", "attention", "mlp"], "mamba_num_heads": 16},
}
"""What a class cannot do without."""


@pytest.fixture
def transformers() -> Any:
    """The package, when it is the one that the arithmetic was written after."""
    pytest.importorskip("torch")
    found = pytest.importorskip("transformers")
    if class_table().title != f"transformers {found.__version__}":
        pytest.skip(f"the arithmetic is of {class_table().title}")
    found.logging.set_verbosity_error()
    return found


def model_of(transformers: Any, folder: Path, raw: dict[str, Any], device: str) -> Any:
    """The class that the file names, from the file alone."""
    import torch

    (folder / "config.json").write_text(json.dumps(raw))
    config = transformers.AutoConfig.from_pretrained(folder)
    with torch.device(device):
        model = getattr(transformers, raw["architectures"][0])._from_config(config)
    model.tie_weights()
    return model


def counts(model: Any) -> tuple[int, int]:
    parameters = {id(each): each.numel() for each in model.parameters()}
    return sum(parameters.values()), len({id(each) for each in model.state_dict(keep_vars=True).values()})


def raw_of(transformers: Any, kind: str, more: dict[str, Any]) -> dict[str, Any]:
    """A small configuration of a kind; sizes that its class does not have are left out."""
    fields = class_table().of_type(kind)
    assert fields is not None
    known = {name: value for name, value in SMALL.items() if fields.names.get(name, name) in fields.fields}
    architecture = transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[kind]
    return {"model_type": kind, "architectures": [architecture], **known, **more}


@pytest.mark.parametrize("name", CASES)
def test_counts_are_those_of_the_class(transformers: Any, tmp_path: Path, name: str) -> None:
    kind, more = CASES[name]
    raw = raw_of(transformers, kind, more)
    model = model_of(transformers, tmp_path, raw, "meta")
    found = architecture_of(read_config(tmp_path))
    assert (found.parameters, found.tensors) == counts(model), found.not_known


@pytest.mark.parametrize("name", CASES)
def test_caches_hold_what_a_forward_pass_leaves(transformers: Any, tmp_path: Path, name: str) -> None:
    import torch

    kind, more = CASES[name]
    raw = raw_of(transformers, kind, more)
    model = model_of(transformers, tmp_path, raw, "cpu").eval()
    caches = architecture_of(read_config(tmp_path)).caches
    assert caches is not None
    for length in (5, 40):
        with torch.no_grad():
            out = model(input_ids=torch.arange(length)[None] % 100 + 3, use_cache=True)
        held = [elements(layer) for layer in (out.get("past_key_values") or out.get("cache")).layers]
        assert held == [kept(cache, length) for cache in caches]


@pytest.mark.parametrize("kind", sorted(families()))
def test_switches_change_the_counts_as_they_do_in_the_class(transformers: Any, tmp_path: Path, kind: str) -> None:
    """Three configurations of each kind with switches flipped by chance, at the sizes that the class declares."""
    names = transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    if kind not in names or kind in ("gemma3n", "gemma3n_text") or class_table().of_type(kind).parts:  # type: ignore[union-attr]
        pytest.skip("it is no language model alone")
    compared = 0
    for turn in range(3):
        raw = flipped(transformers, kind, names[kind], random.Random(zlib.crc32(f"{kind} {turn}".encode())))
        try:
            model = model_of(transformers, tmp_path, raw, "meta")
        except Exception:  # the class itself refuses what chance put together
            continue
        found = architecture_of(read_config(tmp_path))
        assert (found.parameters, found.tensors) == counts(model), raw
        compared += 1
    assert compared


def flipped(transformers: Any, kind: str, architecture: str, chance: random.Random) -> dict[str, Any]:
    raw: dict[str, Any] = {"model_type": kind, "architectures": [architecture], **NEEDED.get(kind, {})}
    for field in dataclasses.fields(transformers.CONFIG_MAPPING[kind]):
        if field.name in ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers"):
            raw[field.name] = chance.randint(1, 5)
            raw[field.name] = NEEDED.get(kind, {}).get(field.name, raw[field.name])
        elif isinstance(field.default, bool) and not field.name.startswith("_") and chance.random() < 0.3:
            raw[field.name] = not field.default
    return raw


def elements(layer: Any) -> int:
    """Numbers that a layer of the cache holds; keys and values may be one tensor."""
    import torch

    seen: dict[int, int] = {}

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, (list, tuple)):
            for each in value:
                walk(each)
        elif torch.is_tensor(value) and value.dtype.is_floating_point and value.numel():
            seen[value.data_ptr()] = value.numel()

    walk(list(vars(layer).values()))
    return sum(seen.values())


def kept(cache: LayerCache, length: int) -> int:
    """Elements of one layer; transformers holds a window less the token that is being made."""
    tokens = cache.tokens(length)
    if cache.window and length >= cache.window:
        tokens -= 1
    return tokens * (cache.heads * cache.per_head + cache.shared + cache.index) + cache.state + cache.state32
