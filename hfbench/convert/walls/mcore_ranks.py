"""Runs a Megatron checkpoint in megatron-core itself on the CPU, a process a rank, and saves the logits.

Started by path with the Python of an environment that has megatron-core and torch: `python -I mcore_ranks.py REQUEST`.
It imports nothing of hfbench. REQUEST is JSON: folder, format, args, tokens, logits (the file to write), sample.
Exit 0 when the logits are written; 3 when the checkpoint does not fit; the last line of stderr says why.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import re
import socket
import sys
import traceback
import warnings
from argparse import Namespace
from functools import partial
from multiprocessing.connection import wait
from typing import Any

TO_LOCAL = (
    (r"self_attention\.linear_qkv\.layer_norm_", "input_layernorm."),
    (r"mlp\.linear_fc1\.layer_norm_", "pre_mlp_layernorm."),
    (r"mlp\.experts\.(linear_fc[12])\.(weight|bias)(\d+)$", r"mlp.experts.local_experts.\3.\1.\2"),
)
"""Names of Transformer Engine's modules as those of the local spec, which needs no GPU."""

FAILED, UNLOADABLE = 1, 3
"""Exit codes: megatron-core does not run here; it runs, and the checkpoint does not fit the model of its arguments."""
FUSIONS = (
    "bias_activation_fusion",
    "bias_dropout_fusion",
    "masked_softmax_fusion",
    "gradient_accumulation_fusion",
    "apply_rope_fusion",
    "persist_layer_norm",
)
"""Kernels that only a GPU has."""


def main() -> None:
    """Start a process for each rank and wait for all, or for the first that fails."""
    with open(sys.argv[1], encoding="utf-8") as file:
        request = json.load(file)
    warnings.filterwarnings("ignore")
    prepare()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free.getsockname()[1]))
    world = int(request["tp"]) * int(request["pp"])
    fork = multiprocessing.get_context("fork")  # megatron-core was imported above, once for all ranks
    ranks = [fork.Process(target=run_rank, args=(rank, world, request)) for rank in range(world)]
    for each in ranks:
        each.start()
    running = {each.sentinel: each for each in ranks}
    while running:
        ended = wait(list(running))
        for process in [running.pop(each) for each in list(running) if each in ended]:
            process.join()
            if process.exitcode:  # the others wait for it without end
                for each in ranks:
                    each.terminate()
                sys.exit(process.exitcode)
    sys.stdout.write(json.dumps({"version": version()}))


def version() -> str:
    """The version of megatron-core."""
    import megatron.core

    return str(getattr(megatron.core, "__version__", "unknown"))


def prepare() -> None:
    """Import megatron-core and take out what asks for a GPU; none of it changes what is computed."""
    import megatron.core.models.gpt.gpt_layer_specs  # noqa: F401 - the ranks that are forked find it there
    import torch
    from megatron.core.fusions import fused_softmax
    from megatron.core.tensor_parallel.random import CudaRNGStatesTracker
    from megatron.core.transformer.moe import moe_utils

    torch.cuda.current_device = lambda: torch.device("cpu")  # positions, mappings and the router ask where they are
    torch.Tensor.cuda = lambda self, *_, **__: self
    torch.cuda.synchronize = lambda *_: None
    CudaRNGStatesTracker.fork = lambda self, name="": contextlib.nullcontext()  # only dropout draws from it
    CudaRNGStatesTracker.add = lambda self, name, seed: None
    fused_softmax.get_sliding_window_causal_mask = window_mask
    if not hasattr(moe_utils, "te_general_gemm"):
        moe_utils.te_general_gemm = None


def window_mask(queries: int, keys: int, window: tuple[int, int]) -> Any:
    """True where a query does not see a key: megatron-core's own mask, made on the CPU."""
    import torch

    seen = torch.ones(queries, keys, dtype=torch.bool)
    return ~seen.triu(keys - queries - window[0]).tril(keys - queries + window[1])


def run_rank(rank: int, world: int, request: dict[str, Any]) -> None:
    """The work of one rank: build, load, pass states along the pipeline, gather logits."""
    code = FAILED
    try:
        import torch
        from megatron.core import parallel_state

        torch.set_num_threads(1)
        torch.distributed.init_process_group("gloo", rank=rank, world_size=world)
        parallel_state.initialize_model_parallel(request["tp"], request["pp"])
        args = Namespace(**request["args"])
        model = build(args, request["tp"], request["pp"])
        code = UNLOADABLE
        load(model, args, request)
        code = FAILED
        with torch.no_grad():
            found = [forward(model, args, torch.tensor([each]), request["pp"]) for each in request["tokens"]]
        if found[0] is not None and parallel_state.get_tensor_model_parallel_rank() == 0:
            torch.save(found, request["logits"])
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()
    except BaseException as error:
        traceback.print_exc()
        first = (str(error).strip() or "no message").splitlines()[0]
        sys.stderr.write(f"rank {rank}: {type(error).__name__}: {first}\n")
        sys.stderr.flush()
        os._exit(code)


def build(args: Namespace, tp: int, pp: int) -> Any:
    """GPTModel by the checkpoint's arguments, of the local spec, in float32."""
    import inspect

    from megatron.core import parallel_state
    from megatron.core.models.gpt import GPTModel
    from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec, get_gpt_layer_local_spec
    from megatron.core.transformer.transformer_config import TransformerConfig

    told = partial(_told, args)
    known = inspect.signature(TransformerConfig).parameters
    settings = {**_settings(args, tp, pp), **_expert_settings(args)}
    config = TransformerConfig(**{name: value for name, value in settings.items() if name in known})
    if told("num_experts") and told("moe_layer_freq", 1) != 1:
        spec = get_gpt_decoder_block_spec(config, use_transformer_engine=False, normalization=config.normalization)
    else:
        spec = get_gpt_layer_local_spec(
            num_experts=told("num_experts"),
            moe_grouped_gemm=False,
            qk_layernorm=config.qk_layernorm,
            normalization=config.normalization,
        )
    model = GPTModel(
        config,
        spec,
        vocab_size=args.padded_vocab_size,
        max_sequence_length=told("max_position_embeddings", 2048),
        pre_process=parallel_state.is_pipeline_first_stage(),
        post_process=parallel_state.is_pipeline_last_stage(),
        parallel_output=True,
        share_embeddings_and_output_weights=not told("untie_embeddings_and_output_weights", False),
        position_embedding_type=told("position_embedding_type", "learned_absolute"),
        rotary_percent=told("rotary_percent", 1.0),
        rotary_base=told("rotary_base", 10000),
        rope_scaling=told("use_rope_scaling", False),
        rope_scaling_factor=told("rope_scaling_factor", 8.0),
        seq_len_interpolation_factor=told("rotary_seq_len_interpolation_factor"),
    )
    return model.float().eval()


def _told(args: Namespace, name: str, default: Any = None) -> Any:
    value = getattr(args, name, None)
    return default if value is None else value


def _settings(args: Namespace, tp: int, pp: int) -> dict[str, Any]:
    """TransformerConfig's fields of any model."""
    import torch

    told = partial(_told, args)
    gated = told("swiglu", False) or told("gated_linear_unit", False)
    kind = told("activation_func") or ("gelu_tanh" if told("openai_gelu", False) else "silu" if gated else "gelu")
    activations = {
        "silu": torch.nn.functional.silu,
        "gelu": torch.nn.functional.gelu,
        "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    }
    window = told("window_size")
    settings = {
        "num_layers": args.num_layers,
        "hidden_size": args.hidden_size,
        "ffn_hidden_size": told("ffn_hidden_size"),
        "num_attention_heads": args.num_attention_heads,
        "num_query_groups": told("num_query_groups") if told("group_query_attention", False) else None,
        "kv_channels": told("kv_channels"),
        "normalization": told("normalization", "LayerNorm"),
        "layernorm_epsilon": told("norm_epsilon", 1e-5),
        "layernorm_zero_centered_gamma": told("apply_layernorm_1p", False),
        "gated_linear_unit": gated,
        "activation_func": activations[kind],
        "add_bias_linear": told("add_bias_linear", True),
        "add_qkv_bias": told("add_qkv_bias", False),
        "qk_layernorm": told("qk_layernorm", False),
        "rotary_interleaved": told("rotary_interleaved", False),
        "window_size": tuple(window) if window else None,
        "window_attn_skip_freq": told("window_attn_skip_freq"),
        "softmax_scale": told("softmax_scale"),
        "tensor_model_parallel_size": tp,
        "pipeline_model_parallel_size": pp,
        "pipeline_dtype": torch.float32,
        "params_dtype": torch.float32,
        "num_layers_in_first_pipeline_stage": told("decoder_first_pipeline_num_layers") if pp > 1 else None,
        "num_layers_in_last_pipeline_stage": told("decoder_last_pipeline_num_layers") if pp > 1 else None,
        "attention_softmax_in_fp32": True,
        "use_cpu_initialization": True,
        "perform_initialization": False,
    }
    return settings | dict.fromkeys(("hidden_dropout", "attention_dropout"), 0.0) | dict.fromkeys(FUSIONS, False)


def _expert_settings(args: Namespace) -> dict[str, Any]:
    """Those of a mixture of experts; none for other models."""
    told = partial(_told, args)
    if not (experts := told("num_experts")):
        return {}
    settings = {
        "num_moe_experts": experts,
        "moe_ffn_hidden_size": told("moe_ffn_hidden_size", told("ffn_hidden_size")),
        "moe_grouped_gemm": False,
        "moe_token_dispatcher_type": "allgather",
        "moe_router_load_balancing_type": "none",
        "moe_aux_loss_coeff": 0.0,
        "moe_shared_expert_intermediate_size": told("moe_shared_expert_intermediate_size"),
        "moe_shared_expert_gate": told("moe_shared_expert_gate", False),
        "moe_layer_freq": told("moe_layer_freq", 1),
    }
    routing = ("topk", "pre_softmax", "score_function", "enable_expert_bias", "topk_scaling_factor")
    for name in (*routing, "num_groups", "group_topk"):
        if told(f"moe_router_{name}") is not None:
            settings[f"moe_router_{name}"] = told(f"moe_router_{name}")
    return settings


def load(model: Any, args: Namespace, request: dict[str, Any]) -> None:
    """Fill the model of this rank, every parameter of it."""
    from megatron.core import parallel_state

    if request["format"] == "torch_dist":
        tensors = distributed(model, request["folder"])
    else:
        tp = parallel_state.get_tensor_model_parallel_rank()
        tensors = rank_file(args, request, tp, parallel_state.get_pipeline_model_parallel_rank())
    model.load_state_dict({name: value.float() for name, value in tensors.items()}, strict=True)


def rank_file(args: Namespace, request: dict[str, Any], tp: int, pp: int) -> dict[str, Any]:
    """A rank's own file by names of the local spec; the experts of all expert ranks numbered through."""
    import torch

    ep, found = int(getattr(args, "expert_model_parallel_size", None) or 1), {}
    for rank in range(ep):
        folder = f"mp_rank_{tp:02d}" + (f"_{pp:03d}" if request["pp"] > 1 else "") + (f"_{rank:03d}" if ep > 1 else "")
        path = os.path.join(request["folder"], folder, request["file"])
        with torch.serialization.safe_globals([Namespace]):
            stored = torch.load(path, map_location="cpu", mmap=True, weights_only=True)
        for name, value in stored["model"].items():
            if name.endswith("_extra_state"):
                continue
            for spelled, local in TO_LOCAL:
                name = re.sub(spelled, local, name)
            if ep > 1:
                each = args.num_experts // ep
                name = re.sub(r"local_experts\.(\d+)", lambda m: f"local_experts.{int(m[1]) + rank * each}", name)  # noqa: B023
            found[name] = value
    return found


def distributed(model: Any, folder: str) -> dict[str, Any]:
    """This rank's part of a torch_dist checkpoint, read by megatron-core's own loader."""
    from megatron.core import dist_checkpointing
    from megatron.core.dist_checkpointing.validation import StrictHandling
    from torch.distributed.checkpoint import FileSystemReader

    there = set(FileSystemReader(folder).read_metadata().state_dict_metadata)
    alone = any(".layers.0." in name for name in there)
    asked = model.sharded_state_dict(metadata={"non_homogeneous_layers": True} if alone else None)
    asked = {name: each for name, each in asked.items() if not name.endswith("_extra_state")}
    for each in asked.values():  # the local spec of a mixture asks for the dense layer's name of its norm
        other = each.key.replace("mlp.linear_fc1.layer_norm_", "pre_mlp_layernorm.")
        each.key = other if each.key not in there and other in there else each.key
    loaded = dist_checkpointing.load({"model": asked}, folder, strict=StrictHandling.RAISE_UNEXPECTED)
    return dict(loaded["model"])


def forward(model: Any, args: Namespace, tokens: Any, pp: int) -> Any:
    """Logits [tokens, padded vocabulary] on the last stage, None before it."""
    import torch
    from megatron.core import parallel_state
    from torch import distributed

    length, stage = tokens.shape[1], parallel_state.get_pipeline_model_parallel_rank()
    if stage:
        states = torch.empty(length, 1, args.hidden_size)
        distributed.recv(states, parallel_state.get_pipeline_model_parallel_prev_rank())
        model.set_input_tensor(states)
    places = torch.arange(length)[None]
    hidden = torch.ones(1, 1, length, length, dtype=torch.bool).triu(1)
    out = model(tokens, places, hidden).contiguous()
    if stage < pp - 1:
        distributed.send(out, parallel_state.get_pipeline_model_parallel_next_rank())
        return None
    group = parallel_state.get_tensor_model_parallel_group()
    parts = [torch.empty_like(out) for _ in range(distributed.get_world_size(group))]
    distributed.all_gather(parts, out, group=group)
    return torch.cat(parts, -1)[0].float()


if __name__ == "__main__":
    main()
