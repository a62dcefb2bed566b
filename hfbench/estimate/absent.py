"""Sizes of nested configurations that a file leaves out altogether, where the class around them has its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CLIP_336 = {
    "hidden_size": 1024,
    "image_size": 336,
    "intermediate_size": 4096,
    "num_attention_heads": 16,
    "num_hidden_layers": 24,
    "patch_size": 14,
}

ABSENT: Mapping[tuple[str, str], Mapping[str, Any]] = {
    ("llava", "vision_config"): _CLIP_336,
    ("llava_next", "vision_config"): _CLIP_336,
    ("mistral3", "text_config"): {
        "hidden_size": 5120,
        "head_dim": 128,
        "intermediate_size": 32768,
        "max_position_embeddings": 131072,
        "num_attention_heads": 32,
        "num_hidden_layers": 40,
        "num_key_value_heads": 8,
        "sliding_window": None,
        "vocab_size": 131072,
    },
    ("mistral3", "vision_config"): {
        "hidden_size": 1024,
        "head_dim": 64,
        "image_size": 1540,
        "intermediate_size": 4096,
        "num_attention_heads": 16,
        "num_hidden_layers": 24,
        "patch_size": 14,
    },
    ("qwen2_audio", "audio_config"): {
        "d_model": 1280,
        "encoder_attention_heads": 20,
        "encoder_ffn_dim": 5120,
        "encoder_layers": 32,
        "max_source_positions": 1500,
        "num_mel_bins": 128,
    },
    ("qwen3_asr", "text_config"): {
        "head_dim": 128,
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "max_position_embeddings": 65536,
        "num_attention_heads": 16,
        "num_hidden_layers": 28,
        "num_key_value_heads": 8,
        "tie_word_embeddings": True,
    },
}
"""By model_type and name of the nested object: `init_kwargs` of `sub_configs_defaults` in transformers 5.24."""
