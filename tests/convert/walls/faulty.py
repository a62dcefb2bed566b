"""Writes Megatron checkpoints with torch.save, right or with one fault; shares nothing with what is under test."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

Tensors = dict[str, torch.Tensor]
Ranks = dict[str, Tensors]

FAULTS = (
    "qkv_concat",
    "tp_swap",
    "glu_halves",
    "gate_up_swapped",
    "pp_offset",
    "one_bit",
    "padding",
    "nan",
    "missing",
    "norm_of_one_rank",
    "surplus",
)
"""Faults of weights that any Llama at TP 2, PP 2 can have."""
WRONG_ARGS: dict[str, dict[str, Any]] = {
    "eps": {"norm_epsilon": 1e-5},
    "rope": {"rotary_base": 10000},
    "noscale": {"use_rope_scaling": False},
    "no_qk_norm": {"qk_layernorm": False},
}


def args_of(config: dict[str, Any], *, tp: int, pp: int, ep: int = 1, first: int | None = None) -> dict[str, Any]:
    """What Megatron's own parser would hold for such a model."""
    kind, rope = config["model_type"], config.get("rope_parameters") or {}
    gpt2 = kind == "gpt2"
    heads = config["n_head"] if gpt2 else config["num_attention_heads"]
    hidden = config["n_embd"] if gpt2 else config["hidden_size"]
    args: dict[str, Any] = {
        "num_layers": config["n_layer"] if gpt2 else config["num_hidden_layers"],
        "hidden_size": hidden,
        "ffn_hidden_size": 4 * hidden if gpt2 else config["intermediate_size"],
        "num_attention_heads": heads,
        "group_query_attention": not gpt2 and config["num_key_value_heads"] != heads,
        "num_query_groups": heads if gpt2 else config["num_key_value_heads"],
        "kv_channels": config.get("head_dim") or hidden // heads,
        "max_position_embeddings": 256,
        "seq_length": 256,
        "padded_vocab_size": -(-config["vocab_size"] // (128 * tp)) * 128 * tp,
        "make_vocab_size_divisible_by": 128,
        "add_position_embedding": gpt2,
        "position_embedding_type": "learned_absolute" if gpt2 else "rope",
        "normalization": "LayerNorm" if gpt2 else "RMSNorm",
        "norm_epsilon": config["layer_norm_epsilon"] if gpt2 else config["rms_norm_eps"],
        "add_bias_linear": gpt2,
        "add_qkv_bias": kind in ("qwen2", "qwen2_moe"),
        "swiglu": not gpt2 and not kind.startswith("gemma"),
        "untie_embeddings_and_output_weights": not config["tie_word_embeddings"],
        "qk_layernorm": kind.startswith(("qwen3", "gemma3", "deepseek")),
        "tensor_model_parallel_size": tp,
        "pipeline_model_parallel_size": pp,
        "expert_model_parallel_size": ep,
        "decoder_first_pipeline_num_layers": first,
        "tokenizer_type": "HuggingFaceTokenizer",
    }
    if rope and "rope_theta" in rope:
        args |= {"rotary_base": rope["rope_theta"], "rotary_percent": rope.get("partial_rotary_factor", 1.0)}
    if rope.get("rope_type") == "llama3":
        args |= {"use_rope_scaling": True, "rope_scaling_factor": rope["factor"]}
    if gpt2:
        args |= {"activation_func": "gelu_tanh"}
    if config.get("sliding_window") and kind == "mistral":
        args["window_size"] = (config["sliding_window"] - 1, 0)
    return args | _gemma(config) | _experts(config) | _latent(config)


def _gemma(config: dict[str, Any]) -> dict[str, Any]:
    kind = config["model_type"]
    if not kind.startswith("gemma"):
        return {}
    args: dict[str, Any] = {"activation_func": "gelu_tanh", "gated_linear_unit": True, "apply_layernorm_1p": True}
    args["embedding_scale"] = config["hidden_size"] ** 0.5
    if kind != "gemma":
        windowed = [int(each == "sliding_attention") for each in config["layer_types"]]
        args |= {"softmax_scale": config["query_pre_attn_scalar"] ** -0.5, "window_attn_skip_freq": windowed}
        args |= {"window_size": (config["sliding_window"] - 1, 0)}
    if kind == "gemma2":
        args |= {name: config[name] for name in ("attn_logit_softcapping", "final_logit_softcapping")}
    if kind == "gemma3_text":
        rope = config["rope_parameters"]
        args |= {"rotary_base": rope["full_attention"]["rope_theta"]}
        args |= {"rotary_base_local": rope["sliding_attention"]["rope_theta"]}
    return args


def _experts(config: dict[str, Any]) -> dict[str, Any]:
    kind = config["model_type"]
    number = config.get("num_local_experts") or config.get("n_routed_experts") or config.get("num_experts")
    if not number:
        return {}
    args = {
        "num_experts": number,
        "moe_router_topk": config["num_experts_per_tok"],
        "moe_ffn_hidden_size": config.get("moe_intermediate_size") or config["intermediate_size"],
        "moe_router_pre_softmax": kind in ("qwen2_moe", "deepseek_v2"),
        "moe_router_score_function": "sigmoid" if kind == "deepseek_v3" else "softmax",
        "moe_router_enable_expert_bias": kind == "deepseek_v3",
    }
    if kind == "qwen2_moe":
        args |= {"moe_shared_expert_intermediate_size": 96, "moe_shared_expert_gate": True}
    if kind.startswith("deepseek"):
        args |= {"moe_shared_expert_intermediate_size": 48, "moe_layer_freq": [0, 1]}
        args |= {"moe_router_topk_scaling_factor": config["routed_scaling_factor"]}
    if kind == "deepseek_v3":
        args |= {"moe_router_num_groups": config["n_group"], "moe_router_group_topk": config["topk_group"]}
    return args


def _latent(config: dict[str, Any]) -> dict[str, Any]:
    if not config["model_type"].startswith("deepseek"):
        return {}
    args = {
        "multi_latent_attention": True,
        "q_lora_rank": config["q_lora_rank"],
        "kv_lora_rank": config["kv_lora_rank"],
    }
    args |= {"qk_head_dim": config["qk_nope_head_dim"], "qk_pos_emb_head_dim": config["qk_rope_head_dim"]}
    args |= {"v_head_dim": config["v_head_dim"], "rope_type": "rope"}
    rope = config["rope_parameters"]
    if rope["rope_type"] == "yarn":
        args |= {"rope_type": "yarn", "rotary_scaling_factor": rope["factor"]}
        args |= {each: rope[each] for each in ("original_max_position_embeddings", "beta_fast", "beta_slow")}
        args |= {each: rope[each] for each in ("mscale", "mscale_all_dim")}
    return args


class Source:
    """The tensors of a Hugging Face folder by the roles they have in a layer."""

    def __init__(self, folder: Path) -> None:
        from safetensors.torch import load_file

        self.config: dict[str, Any] = json.loads((folder / "config.json").read_text())
        self.tensors = load_file(folder / "model.safetensors")

    def __getitem__(self, name: str) -> torch.Tensor:
        return self.tensors[name]

    def get(self, name: str) -> torch.Tensor | None:
        return self.tensors.get(name)


def write_megatron(
    source: Path, out: Path, *, tp: int = 1, pp: int = 1, ep: int = 1, first: int | None = None, fault: str = "",
    te: bool = False, **wrong: Any,
) -> Path:  # fmt: skip
    """The folder of a legacy checkpoint of that layout; `wrong` replaces arguments."""
    hf = Source(source)
    args = args_of(hf.config, tp=tp, pp=pp, ep=ep, first=first)
    layers = args["num_layers"]
    counts = [first, *[(layers - first) // (pp - 1)] * (pp - 1)] if first else [layers // pp] * pp
    ranks: Ranks = {}
    for stage in range(pp):
        begin = sum(counts[:stage]) - (1 if fault == "pp_offset" and stage else 0)
        for t in range(tp):
            for e in range(ep):
                name = f"mp_rank_{t:02d}" + (f"_{stage:03d}" if pp > 1 else "") + (f"_{e:03d}" if ep > 1 else "")
                ranks[name] = rank_of(hf, args, t, e, range(begin, begin + counts[stage]), stage, fault)
    spoil(ranks, fault)
    args |= wrong
    for name, tensors in ranks.items():
        folder = out / "iter_0000001" / name
        folder.mkdir(parents=True)
        stored = {te_name(each, args, tensors): value for each, value in tensors.items()} if te else tensors
        told = {"args": Namespace(**args), "checkpoint_version": 3.0, "iteration": 1, "model": stored}
        torch.save(told, folder / "model_optim_rng.pt")
    (out / "latest_checkpointed_iteration.txt").write_text("1")
    return out


def te_name(name: str, args: dict[str, Any], tensors: Tensors) -> str:
    """The name in Transformer Engine's modules."""
    if args.get("multi_latent_attention"):
        name = name.replace(".q_layernorm.", ".linear_q_up_proj.layer_norm_")
        name = name.replace(".kv_layernorm.", ".linear_kv_up_proj.layer_norm_")
    else:
        name = name.replace(".input_layernorm.", ".self_attention.linear_qkv.layer_norm_")
    head, norm, _ = name.partition("pre_mlp_layernorm.")
    if norm and f"{head}mlp.linear_fc1.weight" in tensors:  # a layer without experts
        name = name.replace(".pre_mlp_layernorm.", ".mlp.linear_fc1.layer_norm_")
    if ".local_experts." in name:
        head, _, rest = name.partition("local_experts.")
        number, _, rest = rest.partition(".")
        return f"{head}{rest}{number}"
    return name


def rank_of(hf: Source, args: dict[str, Any], t: int, e: int, layers: range, stage: int, fault: str) -> Tensors:
    """The tensors of one rank."""
    tp, pp, gpt2 = args["tensor_model_parallel_size"], args["pipeline_model_parallel_size"], "n_embd" in hf.config
    t = (t + 1) % tp if fault == "tp_swap" else t
    top = "transformer." if gpt2 else "model."
    tied = not args["untie_embeddings_and_output_weights"]
    found: Tensors = {}
    rows = lambda x: x.chunk(tp, 0)[t].clone()  # noqa: E731
    columns = lambda x: x.chunk(tp, -1)[t].clone()  # noqa: E731

    def padded(x: torch.Tensor) -> torch.Tensor:
        return rows(torch.cat([x, x.new_zeros(args["padded_vocab_size"] - len(x), x.shape[1])]))

    words = hf[f"{top}{'wte' if gpt2 else 'embed_tokens'}.weight"]
    if stage == 0:
        found["embedding.word_embeddings.weight"] = padded(words)
        if gpt2:
            found["embedding.position_embeddings.weight"] = hf[f"{top}wpe.weight"]
    for local, number in enumerate(layers):
        layer = gpt2_layer if gpt2 else latent_layer if "kv_lora_rank" in hf.config else grouped_layer
        for name, value in layer(hf, args, number, e, rows, columns, fault).items():
            found[f"decoder.layers.{local}.{name}"] = value
    if stage == pp - 1:
        norm = f"{top}{'ln_f' if gpt2 else 'norm'}"
        found |= {
            f"decoder.final_layernorm.{each}": hf[f"{norm}.{each}"].clone()
            for each in ("weight", "bias")
            if hf.get(f"{norm}.{each}") is not None
        }
        if not tied or pp > 1:
            found["output_layer.weight"] = padded(words if tied else hf["lm_head.weight"])
    return found


Cut = Callable[[torch.Tensor], torch.Tensor]


def by_group(parts: list[torch.Tensor], groups: int) -> torch.Tensor:
    """Queries, keys and values interleaved group by group."""
    return torch.cat([torch.cat([part.chunk(groups)[g] for part in parts]) for g in range(groups)])


def glu(gate: torch.Tensor, up: torch.Tensor, rows: Cut, fault: str) -> torch.Tensor:
    if fault == "gate_up_swapped":
        gate, up = up, gate
    return rows(torch.cat([gate, up])) if fault == "glu_halves" else torch.cat([rows(gate), rows(up)])


def grouped_layer(
    hf: Source, args: dict[str, Any], number: int, e: int, rows: Cut, columns: Cut, fault: str
) -> Tensors:
    top = f"model.layers.{number}."
    groups = args["num_query_groups"]
    if (fused := hf.get(f"{top}self_attn.qkv_proj.weight")) is not None:
        per = args["num_attention_heads"] * args["kv_channels"]
        each = args["num_query_groups"] * args["kv_channels"]
        qkv = list(fused.split([per, each, each]))
    else:
        qkv = [hf[f"{top}self_attn.{p}_proj.weight"] for p in "qkv"]
    found = {
        "input_layernorm.weight": hf[f"{top}input_layernorm.weight"].clone(),
        "self_attention.linear_qkv.weight": rows(torch.cat(qkv) if fault == "qkv_concat" else by_group(qkv, groups)),
        "self_attention.linear_proj.weight": columns(hf[f"{top}self_attn.o_proj.weight"]),
    }
    if hf.get(f"{top}self_attn.q_proj.bias") is not None:
        biases = by_group([hf[f"{top}self_attn.{p}_proj.bias"] for p in "qkv"], groups)
        found["self_attention.linear_qkv.bias"] = rows(biases * (fault != "bias_zeroed"))
    for p in "qk" if hf.get(f"{top}self_attn.q_norm.weight") is not None else "":
        found[f"self_attention.{p}_layernorm.weight"] = hf[f"{top}self_attn.{p}_norm.weight"].clone()
    before = "pre_feedforward_layernorm" if hf.get(f"{top}pre_feedforward_layernorm.weight") is not None \
        else "post_attention_layernorm"  # fmt: skip
    found["pre_mlp_layernorm.weight"] = hf[f"{top}{before}.weight"].clone()
    if before != "post_attention_layernorm":
        found["self_attention.linear_proj.post_layernorm.weight"] = hf[f"{top}post_attention_layernorm.weight"].clone()
        found["mlp.linear_fc2.post_layernorm.weight"] = hf[f"{top}post_feedforward_layernorm.weight"].clone()
    return found | mlp(hf, args, number, e, rows, columns, fault)


def latent_layer(hf: Source, args: dict[str, Any], number: int, e: int, rows: Cut, columns: Cut, fault: str) -> Tensors:
    top = f"model.layers.{number}."
    names: dict[str, tuple[str, Cut]] = {
        "input_layernorm": ("input_layernorm", torch.clone),
        "self_attention.linear_q_proj": ("self_attn.q_proj", rows),
        "self_attention.linear_q_down_proj": ("self_attn.q_a_proj", torch.clone),
        "self_attention.q_layernorm": ("self_attn.q_a_layernorm", torch.clone),
        "self_attention.linear_q_up_proj": ("self_attn.q_b_proj", rows),
        "self_attention.linear_kv_down_proj": ("self_attn.kv_a_proj_with_mqa", torch.clone),
        "self_attention.kv_layernorm": ("self_attn.kv_a_layernorm", torch.clone),
        "self_attention.linear_kv_up_proj": ("self_attn.kv_b_proj", rows),
        "self_attention.linear_proj": ("self_attn.o_proj", columns),
        "pre_mlp_layernorm": ("post_attention_layernorm", torch.clone),
    }
    found = {
        f"{ours}.weight": cut(hf[f"{top}{theirs}.weight"])
        for ours, (theirs, cut) in names.items()
        if hf.get(f"{top}{theirs}.weight") is not None
    }
    return found | mlp(hf, args, number, e, rows, columns, fault)


def mlp(hf: Source, args: dict[str, Any], number: int, e: int, rows: Cut, columns: Cut, fault: str) -> Tensors:
    top = f"model.layers.{number}."
    if (fused := hf.get(f"{top}mlp.gate_up_proj.weight")) is not None:
        gate, up = fused.chunk(2)
        return {
            "mlp.linear_fc1.weight": glu(gate, up, rows, fault),
            "mlp.linear_fc2.weight": columns(hf[f"{top}mlp.down_proj.weight"]),
        }

    def both(ours: str, theirs: str, names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")) -> Tensors:
        gate, up, down = (hf[f"{theirs}{each}.weight"] for each in names)
        return {f"{ours}linear_fc1.weight": glu(gate, up, rows, fault), f"{ours}linear_fc2.weight": columns(down)}

    mixtral = f"{top}block_sparse_moe."
    router = hf.get(f"{mixtral}gate.weight")
    theirs, names = (
        (mixtral, ("w1", "w3", "w2")) if router is not None else (f"{top}mlp.", ("gate_proj", "up_proj", "down_proj"))
    )
    router = router if router is not None else hf.get(f"{theirs}gate.weight")
    if router is None:
        return both("mlp.", f"{top}mlp.")
    found = {"mlp.router.weight": router.clone()}
    if (bias := hf.get(f"{theirs}gate.e_score_correction_bias")) is not None:
        found["mlp.router.expert_bias"] = bias.bfloat16().float() if fault == "router_bias_cast" else bias.clone()
    each = args["num_experts"] // args["expert_model_parallel_size"]
    for local in range(each):
        one = e * each + local
        one = {0: 1, 1: 0}.get(one, one) if fault == "expert_order" else one
        found |= both(f"mlp.experts.local_experts.{local}.", f"{theirs}experts.{one}.", names)
    for shared in ("shared_expert", "shared_experts"):
        if hf.get(f"{theirs}{shared}.gate_proj.weight") is not None:
            found |= both("mlp.shared_experts.", f"{theirs}{shared}.")
    if (gate := hf.get(f"{theirs}shared_expert_gate.weight")) is not None:
        found["mlp.shared_experts.gate_weight"] = gate.clone()
    return found


def gpt2_layer(hf: Source, args: dict[str, Any], number: int, e: int, rows: Cut, columns: Cut, fault: str) -> Tensors:
    top, heads = f"transformer.h.{number}.", args["num_attention_heads"]
    turned = lambda name: hf[f"{top}{name}.weight"].T.contiguous()  # noqa: E731
    found = {
        "self_attention.linear_qkv.weight": rows(by_group(list(turned("attn.c_attn").chunk(3)), heads)),
        "self_attention.linear_qkv.bias": rows(by_group(list(hf[f"{top}attn.c_attn.bias"].chunk(3)), heads)),
        "self_attention.linear_proj.weight": columns(turned("attn.c_proj")),
        "self_attention.linear_proj.bias": hf[f"{top}attn.c_proj.bias"].clone(),
        "mlp.linear_fc1.weight": rows(turned("mlp.c_fc")),
        "mlp.linear_fc1.bias": rows(hf[f"{top}mlp.c_fc.bias"]),
        "mlp.linear_fc2.weight": columns(turned("mlp.c_proj")),
        "mlp.linear_fc2.bias": hf[f"{top}mlp.c_proj.bias"].clone(),
    }
    for ours, theirs in (("input_layernorm", "ln_1"), ("pre_mlp_layernorm", "ln_2")):
        found |= {f"{ours}.{each}": hf[f"{top}{theirs}.{each}"].clone() for each in ("weight", "bias")}
    return found


def spoil(ranks: Ranks, fault: str) -> None:
    """The faults of single tensors, in the last rank where there is a choice."""
    last = ranks[max(ranks)]
    name = "decoder.layers.0.mlp.linear_fc2.weight"
    if fault == "one_bit":
        last[name].view(torch.int32)[3, 5] ^= 1
    elif fault == "nan":
        last[name][3, 5] = float("nan")
    elif fault == "missing":
        del last[name]
    elif fault == "surplus":
        last["decoder.layers.7.mlp.linear_fc2.weight"] = last[name].clone()
    elif fault == "padding":
        ranks[sorted(ranks)[-1]]["output_layer.weight"][-1, 0] = 3.0
    elif fault == "norm_of_one_rank":
        last["decoder.layers.0.input_layernorm.weight"][2] += 0.5
    elif fault == "tied_stale":
        last["output_layer.weight"][7] += 0.25
