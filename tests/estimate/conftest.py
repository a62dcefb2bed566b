"""Configurations of well-known models, and folders and headers made from them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from known_models import LLAMA_8B

from hfbench.estimate.architecture import Architecture, architecture_of
from hfbench.estimate.model import Reading, read_model
from hfbench.estimate.runtimes import runtimes
from hfbench.estimate.workload import Workload
from hfbench.models.config import read_config
from hfbench.models.reference import Location

Config = dict[str, Any]
WriteFolder = Callable[..., Path]


def llama(**changes: Any) -> Config:
    """Llama 3.1 8B."""
    return LLAMA_8B | changes


def smollm2(**changes: Any) -> Config:
    """SmolLM2 135M."""
    return llama(
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        vocab_size=49152,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
    ) | changes  # fmt: skip


def deepseek_v3(**changes: Any) -> Config:
    """DeepSeek V3."""
    return {
        "model_type": "deepseek_v3",
        "architectures": ["DeepseekV3ForCausalLM"],
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "moe_intermediate_size": 2048,
        "num_hidden_layers": 61,
        "first_k_dense_replace": 3,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "vocab_size": 129280,
        "max_position_embeddings": 163840,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    } | changes


def gemma3(**changes: Any) -> Config:
    """The language model of Gemma 3 27B."""
    return {
        "model_type": "gemma3_text",
        "architectures": ["Gemma3ForCausalLM"],
        "hidden_size": 5376,
        "intermediate_size": 21504,
        "num_hidden_layers": 62,
        "num_attention_heads": 32,
        "num_key_value_heads": 16,
        "head_dim": 128,
        "vocab_size": 262208,
        "sliding_window": 1024,
        "sliding_window_pattern": 6,
        "max_position_embeddings": 131072,
        "torch_dtype": "bfloat16",
    } | changes


def qwen3_next(**changes: Any) -> Config:
    """Qwen3-Next 80B."""
    return {
        "model_type": "qwen3_next",
        "architectures": ["Qwen3NextForCausalLM"],
        "hidden_size": 2048,
        "intermediate_size": 5120,
        "moe_intermediate_size": 512,
        "shared_expert_intermediate_size": 512,
        "num_hidden_layers": 48,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "head_dim": 256,
        "full_attention_interval": 4,
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "linear_value_head_dim": 128,
        "num_experts": 512,
        "num_experts_per_tok": 10,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "vocab_size": 151936,
        "max_position_embeddings": 262144,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
    } | changes


def gpt_oss(**changes: Any) -> Config:
    """gpt-oss 20B, with its experts packed."""
    return {
        "model_type": "gpt_oss",
        "architectures": ["GptOssForCausalLM"],
        "hidden_size": 2880,
        "intermediate_size": 2880,
        "num_hidden_layers": 24,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "attention_bias": True,
        "num_local_experts": 32,
        "num_experts_per_tok": 4,
        "sliding_window": 128,
        "vocab_size": 201088,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "quantization_config": {
            "quant_method": "mxfp4",
            "modules_to_not_convert": [
                "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head",
            ],
        },
    } | changes  # fmt: skip


MODELS = {
    "llama": llama,
    "smollm2": smollm2,
    "deepseek_v3": deepseek_v3,
    "gemma3": gemma3,
    "qwen3_next": qwen3_next,
    "gpt_oss": gpt_oss,
}


@pytest.fixture
def config_of() -> Callable[..., Config]:
    """The configuration of a model by name, with some keys replaced."""
    return lambda name, **changes: MODELS[name](**changes)


@pytest.fixture
def write_folder(tmp_path: Path) -> WriteFolder:
    """Make a folder of a configuration and perhaps one file of weights: name to dtype, shape and bytes."""

    def write(
        config: Config | None,
        tensors: Mapping[str, tuple[str, tuple[int, ...], int]] | None = None,
        name: str = "model",
    ) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        if config is not None:
            (folder / "config.json").write_text(json.dumps(config))
        if tensors is not None:
            header, end = {}, 0
            for tensor, (dtype, shape, size) in tensors.items():
                header[tensor] = {"dtype": dtype, "shape": list(shape), "data_offsets": [end, end + size]}
                end += size
            text = json.dumps(header).encode()
            text += b" " * (-len(text) % 8)
            (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(end))
        return folder

    return write


@pytest.fixture
def read(write_folder: WriteFolder) -> Callable[..., Reading]:
    """The reading of a configuration, with weights or without."""

    def reading(
        config: Config | None, tensors: Any = None, *, runtime: str = "vllm", dtype: str | None = None
    ) -> Reading:
        folder = write_folder(config, tensors)
        return read_model(Location(folder.name, folder, "local"), runtime=runtimes()[runtime], dtype=dtype)

    return reading


@pytest.fixture
def built(write_folder: WriteFolder) -> Callable[[Config], Architecture]:
    """The architecture of a configuration."""
    return lambda config: architecture_of(read_config(write_folder(config)))


@pytest.fixture
def work() -> Callable[..., Workload]:
    """A workload on a reading: 32k tokens, one sequence, one GPU, a 16-bit cache, unless it is said."""

    def workload(reading: Reading, *, runtime: str = "vllm", kv_dtype: str = "bfloat16", **asked: Any) -> Workload:
        told = {"dtype": reading.dtype, "weight_dtype": reading.weight_dtype, "context": 32768, **asked}
        return Workload(runtime=runtimes()[runtime], kv_dtype=kv_dtype, **told)

    return workload
