"""Tiny models of many families with random weights, saved by transformers itself, each with a tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

VOCABULARY = 64

TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)

BASE: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 3,
}
OLD = {**BASE, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128, "rotary_dim": 4}
SEEN = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
IMAGE = {**SEEN, "image_size": 16, "patch_size": 8}
SEQ2SEQ = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "max_position_embeddings": 128,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 3,
    "decoder_start_token_id": 2,
}
T5 = {"vocab_size": VOCABULARY, "d_model": 32, "d_ff": 64, "d_kv": 8, "num_layers": 2, "num_heads": 4}
LATENT = {
    "kv_lora_rank": 8,
    "q_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "first_k_dense_replace": 1,
    "n_group": 2,
    "topk_group": 1,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
YARN = {"rope_type": "yarn", "rope_theta": 1e6, "factor": 4.0, "original_max_position_embeddings": 32}
SECTIONS = {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 1e6}
TURNED = {"depth": 2, "embed_dim": 32, "hidden_size": 32, "num_heads": 4, "patch_size": 8, "mlp_ratio": 2}
TOKENS_OF_IMAGES = {"image_token_id": 5, "video_token_id": 6, "vision_start_token_id": 7, "vision_end_token_id": 8}

CAUSAL: dict[str, dict[str, Any]] = {
    "llama": {},
    "llama tied": {"tie_word_embeddings": True},
    "llama scaled": {"rope_parameters": LLAMA3},
    "llama with biases": {"attention_bias": True, "mlp_bias": True},
    "mistral": {"sliding_window": 16},
    "mixtral": {"num_local_experts": 4},
    "qwen2": {},
    "qwen2 scaled": {"rope_parameters": YARN},
    "qwen2_moe": {"num_experts": 4, "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16},
    "qwen3": {"head_dim": 16},
    "qwen3_moe": {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "head_dim": 16},
    "gemma": {"head_dim": 16},
    "gemma2": {"head_dim": 16},
    "gemma3_text": {"head_dim": 16},
    "phi": {},
    "phi3": {},
    "gpt2": OLD,
    "gptj": OLD,
    "gpt_neox": {},
    "gpt_bigcode": OLD,
    "falcon": {"multi_query": True},
    "bloom": {"n_layer": 2, "n_head": 4},
    "opt": {"ffn_dim": 64, "word_embed_proj_dim": 32},
    "mpt": {"d_model": 32, "n_heads": 4, "n_layers": 2},
    "stablelm": {},
    "olmo2": {},
    "olmoe": {"num_experts": 4, "num_experts_per_tok": 2},
    "granite": {},
    "cohere": {},
    "starcoder2": {},
    "smollm3": {},
    "glm4": {"head_dim": 8},
    "nemotron": {},
    "exaone4": {},
    "deepseek_v3": LATENT,
    "gpt_oss": {"num_local_experts": 4, "head_dim": 8, "layer_types": ["sliding_attention", "full_attention"]},
    "mamba": {"state_size": 4},
    "lfm2": {"layer_types": ["conv", "full_attention"]},
    "rwkv": {"attention_hidden_size": 32},
}
"""Decoders by model type, with what differs from the common sizes; a second word parts several of one type."""

OTHERS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("AutoModelForMaskedLM", BASE),
    "bert base": ("AutoModel", BASE),
    "bert classes": ("AutoModelForSequenceClassification", BASE),
    "roberta": ("AutoModelForMaskedLM", {**BASE, "max_position_embeddings": 130}),
    "modernbert": ("AutoModelForMaskedLM", {**BASE, "cls_token_id": 1, "sep_token_id": 2}),
    "llama classes": ("AutoModelForSequenceClassification", BASE),
    "qwen3 base": ("AutoModel", {**BASE, "head_dim": 16}),
    "t5": ("AutoModelForSeq2SeqLM", {**T5, "pad_token_id": 3, "eos_token_id": 2, "decoder_start_token_id": 3}),
    "bart": ("AutoModelForSeq2SeqLM", {**SEQ2SEQ, "forced_eos_token_id": 2}),
    "whisper": (
        "AutoModelForSpeechSeq2Seq",
        {**SEQ2SEQ, "num_mel_bins": 8, "max_source_positions": 16, "max_target_positions": 16},
    ),
    "vit": ("AutoModelForImageClassification", IMAGE),
    "clip": ("AutoModel", {"text_config": BASE, "vision_config": IMAGE, "projection_dim": 32}),
    "llava": (
        "AutoModelForImageTextToText",
        {
            "text_config": {"model_type": "llama", **BASE},
            "vision_config": {"model_type": "clip_vision_model", **IMAGE},
            "image_token_index": 5,
            "image_seq_length": 4,
        },
    ),
    "gemma3": (
        "AutoModelForImageTextToText",
        {
            "text_config": {"model_type": "gemma3_text", **BASE, "head_dim": 16},
            "vision_config": {"model_type": "siglip_vision_model", **IMAGE},
            "mm_tokens_per_image": 4,
            "boi_token_index": 5,
            "eoi_token_index": 6,
            "image_token_index": 7,
        },
    ),
    "qwen2_vl": (
        "AutoModelForImageTextToText",
        {"text_config": {**BASE, "rope_parameters": SECTIONS}, "vision_config": TURNED, **TOKENS_OF_IMAGES},
    ),
}
"""Everything else: the class that makes it, and its configuration."""

WITHOUT_TEMPLATE = frozenset({"bert", "roberta", "modernbert", "t5", "bart", "whisper", "clip", "gpt2", "bloom", "opt"})
"""Families that never had one."""


def save(folder: Path, name: str) -> Path:
    """A model of that name with its tokenizer, in bfloat16, as `save_pretrained` writes them."""
    import torch
    import transformers

    model_type = name.split()[0]
    class_name, sizes = OTHERS.get(name) or ("AutoModelForCausalLM", {**BASE, **CAUSAL[name]})
    config = transformers.AutoConfig.for_model(model_type, **json.loads(json.dumps(sizes)))
    torch.manual_seed(0)
    model = getattr(transformers, class_name).from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(folder)
    if model_type != "vit":
        save_tokenizer(folder, None if model_type in WITHOUT_TEMPLATE else TEMPLATE)
    return folder


def save_tokenizer(folder: Path, template: str | None) -> None:
    """A tokenizer of single letters and words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = ["<unk>", "<s>", "</s>", "<pad>", *(f"t{number}" for number in range(4, VOCABULARY))]
    tokenizer = Tokenizer(models.BPE(vocab={word: n for n, word in enumerate(words)}, merges=[], unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        model_max_length=128,
    )
    if template:
        fast.chat_template = template
    fast.save_pretrained(folder)
