"""Megatron's arguments for a Hugging Face configuration: all that a checkpoint's `args` are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hfbench.convert.families.numbers import fraction
from hfbench.convert.families.table import Family
from hfbench.convert.formats.inert import TORCH_DTYPES
from hfbench.convert.megatron.destination import Destination
from hfbench.convert.megatron.rope import rope_keys, tell_rope
from hfbench.convert.megatron.sizes import padded_to
from hfbench.errors import UsageError
from hfbench.estimate.settings import NotKnown, Settings
from hfbench.models.problem import quoted

LONGEST_SEQUENCE = 4096
"""Of seq_length, which a launch may raise up to max_position_embeddings: more memory is to be asked for, not found."""

SILU = ("silu", "swish")

UNUSED: Mapping[str, Any] = {
    "add_bias_linear": False,
    "add_qkv_bias": False,
    "qk_layernorm": False,
    "squared_relu": False,
    "apply_query_key_layer_scaling": False,
    "rotary_interleaved": False,
    "spec": None,
    "virtual_pipeline_model_parallel_size": None,
    "heterogeneous_layers_config_path": None,
    "heterogeneous_layers_config_encoded_json": None,
    "is_hybrid_model": False,
    "hybrid_override_pattern": None,
    "hybrid_attention_ratio": 0.0,
    "hybrid_mlp_ratio": 0.0,
    "mamba_state_dim": None,
    "mamba_head_dim": None,
    "mamba_num_groups": None,
    "mamba_num_heads": None,
    "moe_latent_size": None,
    "tiktoken_pattern": None,
    "mtp_num_layers": None,
    "mtp_loss_scaling_factor": None,
    "window_size": None,
    "hidden_dropout": 0.0,
    "openai_gelu": False,
    "num_experts": None,
    "moe_layer_freq": 1,
    "moe_ffn_hidden_size": None,
    "moe_router_topk": None,
    "moe_router_pre_softmax": False,
    "moe_router_score_function": "softmax",
    "moe_router_enable_expert_bias": False,
    "moe_router_topk_scaling_factor": None,
    "moe_router_num_groups": None,
    "moe_router_group_topk": None,
    "moe_shared_expert_intermediate_size": None,
    "moe_shared_expert_gate": False,
    "moe_token_dispatcher_type": "allgather",
    "moe_grouped_gemm": False,
    "use_rope_scaling": False,
    "rope_scaling_factor": 8.0,
    "rotary_base": 10000,
    "rotary_percent": 1.0,
    "rotary_seq_len_interpolation_factor": None,
    "multi_latent_attention": False,
}
"""Arguments that stand in every checkpoint, as they are where a family says nothing."""


def arguments_of(family: Family, config: Mapping[str, Any], destination: Destination, *, dtype: str) -> dict[str, Any]:
    """The arguments as plain values; `dtype` is that of most weights. UsageError for what Megatron cannot express."""
    settings = Settings(config)
    try:
        args = _of_model(family, settings)
        family.arguments(settings, args)
    except NotKnown as error:
        raise UsageError(str(error), where="config.json", remedy="mend config.json") from None
    _check_activation(family, settings)
    tell_rope(config, settings.kind, args)
    args.update(_of_layout(args, destination, dtype))
    return args


def config_of(family: Family, args: Mapping[str, Any], *, vocab: int, dtype: str) -> dict[str, Any]:
    """config.json as the arguments tell it, for a checkpoint that carries none along."""
    known = dict(args)
    config: dict[str, Any] = {"architectures": [family.architecture], "model_type": family.model_types[0]}
    for argument, key in family.keys:
        config[key] = known.get(argument)
    config.update(
        family.constants,
        vocab_size=vocab,
        tie_word_embeddings=not known.get("untie_embeddings_and_output_weights"),
        **rope_keys(known),
    )
    family.config(known, config)
    config["dtype"] = config["torch_dtype"] = TORCH_DTYPES.get(dtype, "float32")
    return config


def _of_model(family: Family, settings: Settings) -> dict[str, Any]:
    args: dict[str, Any] = {**UNUSED}
    for argument, key in family.keys:
        args[argument] = settings.get(key)
    if not fraction(args.get("norm_epsilon"), "the epsilon of norms"):
        raise NotKnown("the epsilon of norms is 0 or not given")
    heads = args["num_attention_heads"] = settings.heads
    args.update(
        num_layers=settings.layers,
        hidden_size=settings.hidden,
        num_query_groups=settings.kv_heads,
        kv_channels=settings.head_dim,
        max_position_embeddings=settings.size("positions"),
        vocab_size=settings.vocab,
        untie_embeddings_and_output_weights=not settings.tied,
        attention_dropout=fraction(args.get("attention_dropout"), "the dropout of attention"),
        **family.fixed,
    )
    if heads % args["num_query_groups"]:
        raise NotKnown(f"{heads} attention heads do not divide into {args['num_query_groups']} key-value heads")
    if args.get("ffn_hidden_size") is None and "n_inner" not in settings.raw and settings.kind != "gpt2":
        args["ffn_hidden_size"] = settings.width
    return args


def _of_layout(args: Mapping[str, Any], destination: Destination, dtype: str) -> dict[str, Any]:
    parallel, te = destination.parallel, destination.names == "te"
    learned = args["position_embedding_type"] == "learned_absolute"
    experts = bool(args["num_experts"])
    return {
        "group_query_attention": args["num_query_groups"] != args["num_attention_heads"],
        "add_position_embedding": learned,
        "use_rotary_position_embeddings": not learned,
        "seq_length": min(args["max_position_embeddings"], LONGEST_SEQUENCE),
        "padded_vocab_size": padded_to(args["vocab_size"], destination.divisible_by, parallel.tp),
        "make_vocab_size_divisible_by": destination.divisible_by,
        "moe_token_dispatcher_type": "alltoall" if experts else "allgather",
        "moe_grouped_gemm": experts and te,
        "tokenizer_type": "HuggingFaceTokenizer",
        "tokenizer_model": None,
        "tensor_model_parallel_size": parallel.tp,
        "pipeline_model_parallel_size": parallel.pp,
        "expert_model_parallel_size": parallel.ep,
        "expert_tensor_parallel_size": parallel.tp,
        "decoder_first_pipeline_num_layers": parallel.first_stage_layers,
        "decoder_last_pipeline_num_layers": parallel.last_stage_layers,
        "ckpt_format": destination.format,
        "transformer_impl": "transformer_engine" if te else "local",
        "bf16": dtype == "BF16",
        "fp16": dtype == "F16",
        "consumed_train_samples": 0,
        "consumed_valid_samples": 0,
    }


def _check_activation(family: Family, settings: Settings) -> None:
    if not family.fixed.get("swiglu"):
        return
    activation = settings.get("hidden_act")
    if activation not in SILU:
        raise UsageError(f"the activation is {quoted(activation)}, {family.name} in Megatron has silu")
