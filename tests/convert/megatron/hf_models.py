"""Small models of every family as transformers names and shapes their tensors, written down here by hand.

Every element has bits of its own, so that one that went astray is seen; plans are executed element by element.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy

from hfbench.convert.boxes import Copy, TensorSpec
from hfbench.convert.plan import Plan, Target
from hfbench.convert.safetensors_writer import Entry, SafetensorsWriter

HIDDEN, FFN, LAYERS, HEADS, KV, VOCAB = 16, 24, 4, 4, 2, 50
DECODER = {
    "vocab_size": VOCAB,
    "hidden_size": HIDDEN,
    "intermediate_size": FFN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": False,
    "rope_theta": 500000.0,
}
EXPERTS, EXPERT_FFN = 4, 8
LATENT = {
    "q_lora_rank": 12,
    "kv_lora_rank": 6,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 6,
    "moe_intermediate_size": EXPERT_FFN,
    "n_routed_experts": EXPERTS,
    "n_shared_experts": 2,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": 1,
    "num_key_value_heads": HEADS,
}

Shapes = dict[str, tuple[int, ...]]
Bits = dict[str, Any]


@dataclass
class Checkpoint:
    """A configuration with the tensors that belong to it."""

    config: dict[str, Any]
    shapes: Shapes
    dtypes: dict[str, str] = field(default_factory=dict)

    @property
    def specs(self) -> dict[str, TensorSpec]:
        return {name: TensorSpec(name, self.dtypes.get(name, "BF16"), shape) for name, shape in self.shapes.items()}

    def bits(self) -> Bits:
        """Numbers that no two elements share, as rows and columns."""
        found, begin = {}, 0
        for name, spec in self.specs.items():
            size = spec.rows * spec.columns
            found[name] = numpy.arange(begin, begin + size).reshape(spec.rows, spec.columns)
            begin += size
        return found


def written(folder: Path, model: Checkpoint) -> Path:
    """A Hugging Face folder of a checkpoint."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(model.config))
    with (folder / "model.safetensors").open("wb") as file:
        writer = SafetensorsWriter(file, [Entry(name, "BF16", shape) for name, shape in model.shapes.items()])
        for name, bits in model.bits().items():
            writer.write(name, [bits.astype("<u2").tobytes()])
        writer.finish()
    return folder


def execute(targets: tuple[Target, ...], sources: Mapping[str, Any]) -> Bits:
    """What the copies of targets put where; -1 where none does."""
    found = {}
    for target in targets:
        whole = numpy.full((target.spec.rows, target.spec.columns), -1)
        for copy in target.copies:
            move(copy, sources[copy.source], whole)
        found[target.spec.name] = whole
    return found


def move(copy: Copy, source: Any, target: Any) -> None:
    here, there = copy.source_box, copy.target_box
    part = source[here.row : here.row_end, here.column : here.column_end]
    target[there.row : there.row_end, there.column : there.column_end] = part.T if copy.transposed else part


def specs_of(plan: Plan) -> dict[str, TensorSpec]:
    return {target.spec.name: target.spec for target in plan.targets}


def checkpoint(name: str, **changes: Any) -> Checkpoint:
    """The model of that name; `changes` go into its configuration before its tensors are listed."""
    made: Checkpoint = globals()["_" + name](changes)
    return made


NAMES = (
    "llama",
    "llama_tied",
    "llama_biases",
    "mistral",
    "qwen2",
    "qwen3",
    "mixtral",
    "qwen2_moe",
    "qwen3_moe",
    "deepseek_v2",
    "deepseek_v3",
    "gemma",
    "gemma2",
    "gemma3",
    "phi3",
    "gpt2",
)


def _linear(name: str, rows: int, columns: int, bias: bool = False) -> Shapes:
    return {f"{name}.weight": (rows, columns)} | ({f"{name}.bias": (rows,)} if bias else {})


def _mlp(block: str, width: int, bias: bool = False) -> Shapes:
    return {
        **_linear(block + "gate_proj", width, HIDDEN, bias),
        **_linear(block + "up_proj", width, HIDDEN, bias),
        **_linear(block + "down_proj", HIDDEN, width, bias),
    }


def _attention(config: Mapping[str, Any], layer: str, qkv_bias: bool = False, o_bias: bool = False) -> Shapes:
    heads = config["num_attention_heads"]
    head = config.get("head_dim") or HIDDEN // heads
    kv = config["num_key_value_heads"] * head
    return {
        layer + "input_layernorm.weight": (HIDDEN,),
        **_linear(layer + "self_attn.q_proj", heads * head, HIDDEN, qkv_bias),
        **_linear(layer + "self_attn.k_proj", kv, HIDDEN, qkv_bias),
        **_linear(layer + "self_attn.v_proj", kv, HIDDEN, qkv_bias),
        **_linear(layer + "self_attn.o_proj", HIDDEN, heads * head, o_bias),
        layer + "post_attention_layernorm.weight": (HIDDEN,),
    }


def _norms(layer: str, head: int) -> Shapes:
    return {f"{layer}self_attn.{each}_norm.weight": (head,) for each in "qk"}


def _ends(config: Mapping[str, Any]) -> Shapes:
    vocab = config["vocab_size"]
    head = {} if config["tie_word_embeddings"] else {"lm_head.weight": (vocab, HIDDEN)}
    return {"model.embed_tokens.weight": (vocab, HIDDEN), "model.norm.weight": (HIDDEN,), **head}


def _decoder(config: dict[str, Any], layer_of: Any) -> Checkpoint:
    shapes = _ends(config)
    for layer in range(config["num_hidden_layers"]):
        shapes |= layer_of(f"model.layers.{layer}.", layer)
    return Checkpoint(config, shapes)


def _dense(kind: str, changes: Mapping[str, Any], qkv_bias: bool = False, qk_norm: bool = False) -> Checkpoint:
    config = {"model_type": kind, **DECODER, **changes}
    biases = config.get("mlp_bias", False)

    def layer(prefix: str, _: int) -> Shapes:
        norms = _norms(prefix, config["head_dim"]) if qk_norm else {}
        attention = _attention(config, prefix, qkv_bias or biases, biases)
        return attention | norms | _mlp(prefix + "mlp.", config["intermediate_size"], biases)

    return _decoder(config, layer)


def _llama(changes: Mapping[str, Any]) -> Checkpoint:
    return _dense("llama", changes)


def _llama_tied(changes: Mapping[str, Any]) -> Checkpoint:
    return _dense("llama", {"tie_word_embeddings": True, **changes})


def _llama_biases(changes: Mapping[str, Any]) -> Checkpoint:
    return _dense("llama", {"attention_bias": True, "mlp_bias": True, **changes})


def _mistral(changes: Mapping[str, Any]) -> Checkpoint:
    return _dense("mistral", {"head_dim": 8, "sliding_window": 4, **changes})


def _qwen2(changes: Mapping[str, Any]) -> Checkpoint:
    return _dense("qwen2", changes, qkv_bias=True)


def _qwen3(changes: Mapping[str, Any]) -> Checkpoint:
    return _dense("qwen3", {"head_dim": 8, **changes}, qk_norm=True)


def _mixtral(changes: Mapping[str, Any]) -> Checkpoint:
    config = {"model_type": "mixtral", **DECODER, "num_local_experts": EXPERTS, "num_experts_per_tok": 2, **changes}

    def layer(prefix: str, _: int) -> Shapes:
        block = prefix + "block_sparse_moe."
        shapes = _attention(config, prefix) | {block + "gate.weight": (EXPERTS, HIDDEN)}
        for expert in range(EXPERTS):
            inside = f"{block}experts.{expert}."
            shapes |= _linear(inside + "w1", FFN, HIDDEN) | _linear(inside + "w3", FFN, HIDDEN)
            shapes |= _linear(inside + "w2", HIDDEN, FFN)
        return shapes

    return _decoder(config, layer)


def _routed(block: str) -> Shapes:
    shapes: Shapes = {block + "gate.weight": (EXPERTS, HIDDEN)}
    for expert in range(EXPERTS):
        shapes |= _mlp(f"{block}experts.{expert}.", EXPERT_FFN)
    return shapes


def _qwen2_moe(changes: Mapping[str, Any]) -> Checkpoint:
    config = {
        "model_type": "qwen2_moe",
        **DECODER,
        "num_experts": EXPERTS,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": EXPERT_FFN,
        "shared_expert_intermediate_size": 12,
        "mlp_only_layers": [1],
        **changes,
    }

    def layer(prefix: str, number: int) -> Shapes:
        shapes = _attention(config, prefix, True)
        if number in config["mlp_only_layers"]:
            return shapes | _mlp(prefix + "mlp.", FFN)
        gate = _linear(prefix + "mlp.shared_expert_gate", 1, HIDDEN)
        return shapes | _routed(prefix + "mlp.") | _mlp(prefix + "mlp.shared_expert.", 12) | gate

    return _decoder(config, layer)


def _qwen3_moe(changes: Mapping[str, Any]) -> Checkpoint:
    config = {
        "model_type": "qwen3_moe",
        **DECODER,
        "head_dim": 8,
        "num_experts": EXPERTS,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": EXPERT_FFN,
        "norm_topk_prob": True,
        **changes,
    }
    return _decoder(config, lambda prefix, _: _attention(config, prefix) | _norms(prefix, 8) | _routed(prefix + "mlp."))


def _latent(config: Mapping[str, Any], layer: str) -> Shapes:
    attention = layer + "self_attn."
    head = config["qk_nope_head_dim"] + config["qk_rope_head_dim"]
    rank, latent, value = config["q_lora_rank"], config["kv_lora_rank"], config["v_head_dim"]
    query: Shapes = {
        **_linear(attention + "q_a_proj", rank or 0, HIDDEN),
        attention + "q_a_layernorm.weight": (rank or 0,),
        **_linear(attention + "q_b_proj", HEADS * head, rank or 0),
    }
    return {
        layer + "input_layernorm.weight": (HIDDEN,),
        layer + "post_attention_layernorm.weight": (HIDDEN,),
        **(query if rank else _linear(attention + "q_proj", HEADS * head, HIDDEN)),
        **_linear(attention + "kv_a_proj_with_mqa", latent + config["qk_rope_head_dim"], HIDDEN),
        attention + "kv_a_layernorm.weight": (latent,),
        **_linear(attention + "kv_b_proj", HEADS * (config["qk_nope_head_dim"] + value), latent),
        **_linear(attention + "o_proj", HIDDEN, HEADS * value),
    }


def _deepseek(config: dict[str, Any], biased: bool) -> Checkpoint:
    def layer(prefix: str, number: int) -> Shapes:
        shapes = _latent(config, prefix)
        if number < config["first_k_dense_replace"]:
            return shapes | _mlp(prefix + "mlp.", FFN)
        bias = {prefix + "mlp.gate.e_score_correction_bias": (EXPERTS,)} if biased else {}
        return shapes | _routed(prefix + "mlp.") | bias | _mlp(prefix + "mlp.shared_experts.", 2 * EXPERT_FFN)

    made = _decoder(config, layer)
    for place in range(config.get("num_nextn_predict_layers", 0)):
        prefix = f"model.layers.{config['num_hidden_layers'] + place}."
        made.shapes |= layer(prefix, config["num_hidden_layers"]) | {
            prefix + "enorm.weight": (HIDDEN,),
            prefix + "hnorm.weight": (HIDDEN,),
            prefix + "eh_proj.weight": (HIDDEN, 2 * HIDDEN),
            prefix + "shared_head.norm.weight": (HIDDEN,),
            prefix + "embed_tokens.weight": (VOCAB, HIDDEN),
            prefix + "shared_head.head.weight": (VOCAB, HIDDEN),
        }
    made.dtypes = {name: "F32" for name in made.shapes if name.endswith("e_score_correction_bias")}
    return made


def _deepseek_v2(changes: Mapping[str, Any]) -> Checkpoint:
    return _deepseek({"model_type": "deepseek_v2", **DECODER, **LATENT, "q_lora_rank": None, **changes}, False)


def _deepseek_v3(changes: Mapping[str, Any]) -> Checkpoint:
    groups = {"n_group": 2, "topk_group": 1, "num_nextn_predict_layers": 1}
    return _deepseek({"model_type": "deepseek_v3", **DECODER, **LATENT, **groups, **changes}, True)


def _gemma(changes: Mapping[str, Any]) -> Checkpoint:
    return _dense("gemma", {"head_dim": 8, "tie_word_embeddings": True, **changes})


def _gemma_since_2(kind: str, changes: Mapping[str, Any], qk_norm: bool) -> Checkpoint:
    window = {"sliding_window": 8, "query_pre_attn_scalar": 8}
    made = _dense(kind, {"head_dim": 8, "tie_word_embeddings": True, **window, **changes}, qk_norm=qk_norm)
    for layer in range(made.config["num_hidden_layers"]):
        for place in ("pre", "post"):
            made.shapes[f"model.layers.{layer}.{place}_feedforward_layernorm.weight"] = (HIDDEN,)
    return made


def _gemma2(changes: Mapping[str, Any]) -> Checkpoint:
    return _gemma_since_2("gemma2", changes, False)


def _gemma3(changes: Mapping[str, Any]) -> Checkpoint:
    return _gemma_since_2("gemma3_text", changes, True)


def _phi3(changes: Mapping[str, Any]) -> Checkpoint:
    config = {"model_type": "phi3", **DECODER, **changes}
    head = HIDDEN // HEADS

    def layer(prefix: str, _: int) -> Shapes:
        return {
            prefix + "input_layernorm.weight": (HIDDEN,),
            prefix + "post_attention_layernorm.weight": (HIDDEN,),
            **_linear(prefix + "self_attn.qkv_proj", (HEADS + 2 * KV) * head, HIDDEN),
            **_linear(prefix + "self_attn.o_proj", HIDDEN, HIDDEN),
            **_linear(prefix + "mlp.gate_up_proj", 2 * FFN, HIDDEN),
            **_linear(prefix + "mlp.down_proj", HIDDEN, FFN),
        }

    return _decoder(config, layer)


def _gpt2(changes: Mapping[str, Any]) -> Checkpoint:
    config = {
        "model_type": "gpt2",
        "vocab_size": VOCAB,
        "n_embd": HIDDEN,
        "n_layer": LAYERS,
        "n_head": HEADS,
        "n_positions": 32,
        **changes,
    }
    shapes: Shapes = {"transformer.wte.weight": (VOCAB, HIDDEN), "transformer.wpe.weight": (32, HIDDEN)}
    for layer in range(LAYERS):
        prefix = f"transformer.h.{layer}."
        for norm in ("ln_1", "ln_2"):
            shapes |= {f"{prefix}{norm}.weight": (HIDDEN,), f"{prefix}{norm}.bias": (HIDDEN,)}
        for name, inward, outward in (
            ("attn.c_attn", HIDDEN, 3 * HIDDEN),
            ("attn.c_proj", HIDDEN, HIDDEN),
            ("mlp.c_fc", HIDDEN, 4 * HIDDEN),
            ("mlp.c_proj", 4 * HIDDEN, HIDDEN),
        ):
            shapes |= {f"{prefix}{name}.weight": (inward, outward), f"{prefix}{name}.bias": (outward,)}
    shapes |= {"transformer.ln_f.weight": (HIDDEN,), "transformer.ln_f.bias": (HIDDEN,)}
    return Checkpoint(config, shapes)
