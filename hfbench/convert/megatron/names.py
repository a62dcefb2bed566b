"""Spellings of Megatron's tensor names: Transformer Engine's, which the families use, local ones, and torch_dist's."""

from __future__ import annotations

import re

from hfbench.convert.megatron.destination import Names

LAYERS = "decoder.layers."

_TE_TO_LOCAL = (
    (re.compile(r"\bself_attention\.linear_qkv\.layer_norm_"), "input_layernorm."),
    (re.compile(r"\bmlp\.linear_fc1\.layer_norm_"), "pre_mlp_layernorm."),
    (re.compile(r"\bself_attention\.linear_q_up_proj\.layer_norm_"), "self_attention.q_layernorm."),
    (re.compile(r"\bself_attention\.linear_kv_up_proj\.layer_norm_"), "self_attention.kv_layernorm."),
    (
        re.compile(r"\bmlp\.experts\.linear_fc([12])\.(weight|bias)(\d+|\{e\})"),
        r"mlp.experts.local_experts.\3.linear_fc\1.\2",
    ),
)
_EXPERT = re.compile(r"\bmlp\.experts\.linear_fc([12])\.(weight|bias)\{e\}")

LEGACY = re.compile(r"\.(query_key_value|dense_h_to_4h|dense_4h_to_h)\.|language_model\.(encoder|transformer)\.")
"""Names of Megatron-LM before megatron-core."""

GROUPED = re.compile(r"\bmlp\.experts\.weight[12]$")
"""Experts in two transposed tensors, of --moe-use-legacy-grouped-gemm."""


def in_rank_file(name: str, names: Names) -> str:
    """A name of the families as a file of one rank has it."""
    if names == "te":
        return name
    for pattern, other in _TE_TO_LOCAL:
        name = pattern.sub(other, name)
    return name


def in_torch_dist(name: str, names: Names) -> str:
    """A name of the families as torch_dist has it: experts in one tensor, whatever the layer's own module is called.

    The local modules of a layer with experts ask for the norm before them under the name of a dense layer's.
    """
    name = _EXPERT.sub(r"mlp.experts.experts.linear_fc\1.\2", name)
    return name.replace("pre_mlp_layernorm.", "mlp.linear_fc1.layer_norm_") if names == "local" else name
