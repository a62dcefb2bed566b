"""Where two models part: the first layer, and in it the first tensor. Runs in a child process: torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from hfbench.convert.walls.forward_pass import MegatronModel
from hfbench.convert.walls.reference import Reference

Seen = Mapping[str, tuple[torch.Tensor, torch.Tensor]]

OUT, INTO = 1, 0
SAME: dict[str, tuple[tuple[str, int], ...]] = {
    "input_layernorm.weight": (("input_layernorm", OUT), ("ln_1", OUT)),
    "core_attention": (("self_attn.o_proj", INTO), ("attn.c_proj", INTO)),
    "self_attention.linear_proj.weight": (("self_attn.o_proj", OUT), ("attn.c_proj", OUT)),
    "self_attention.linear_q_down_proj.weight": (("self_attn.q_a_proj", OUT),),
    "self_attention.linear_q_up_proj.weight": (("self_attn.q_b_proj", OUT),),
    "self_attention.linear_q_proj.weight": (("self_attn.q_proj", OUT),),
    "self_attention.linear_kv_down_proj.weight": (("self_attn.kv_a_proj_with_mqa", OUT),),
    "self_attention.linear_kv_up_proj.weight": (("self_attn.kv_b_proj", OUT),),
    "pre_mlp_layernorm.weight": (
        ("pre_feedforward_layernorm", OUT),
        ("post_attention_layernorm", OUT),
        ("ln_2", OUT),
    ),
    "mlp.linear_fc1 gate": (("mlp.gate_proj", OUT),),
    "mlp.linear_fc1 up": (("mlp.up_proj", OUT),),
    "mlp.linear_fc1 rows": (("mlp.c_fc", OUT),),
    "mlp.linear_fc2.weight": (("mlp.down_proj", OUT), ("mlp.c_proj", OUT)),
    "mlp.router.weight": (("mlp.gate", OUT),),
    "mlp.experts": (("mlp", OUT),),
}
"""What a traced value is in transformers' modules: the first of these that the layer has."""
FUSED = ("self_attn.qkv_proj", "attn.c_attn")
"""Modules whose output is queries, keys and values behind each other."""
WORDS = {
    "core_attention": "none of its weights: how positions turn queries and keys, the softmax scale or the window,"
    " which args say",
    "mlp.experts": "mlp.experts, their order, or how the router weighs them",
}


def first_difference(
    reference: Reference, model: MegatronModel, sequence: torch.Tensor, limit: float
) -> dict[str, Any]:
    """Where the two part on a sequence: `layer` (-1 before the first, the number of layers behind the last), `tensor`,
    `relative` of that layer, and `layers`, all that part when each is given the reference's own input."""
    with torch.no_grad():
        states, logits = reference.states(sequence)
        layers = model.args.layers
        apart = parted(states[0], model.embedded([sequence])[0])
        if not apart < limit:
            return told(-1, "embedding.word_embeddings.weight", apart, [])
        by_layer = [
            parted(states[number + 1], model.layer(number, [states[number]])[0])
            for number in range(min(layers, len(states) - 1))
        ]
        wrong = [number for number, each in enumerate(by_layer) if not each < limit]
        if wrong:
            tensor = first_tensor(reference, model, sequence, states[wrong[0]], wrong[0], limit)
            return told(wrong[0], tensor, by_layer[wrong[0]], wrong)
        apart = parted(logits, next(model.head([states[-1]]))[:, : logits.shape[-1]])
        tensor = model.shards.last().full_name("output_layer.weight or decoder.final_layernorm.weight")
        return told(layers, tensor, apart, []) if not apart < limit else {}


def told(layer: int, tensor: str, relative: float, layers: list[int]) -> dict[str, Any]:
    """The answer as plain data."""
    return {"layer": layer, "tensor": tensor, "relative": relative, "layers": layers}


def first_tensor(
    reference: Reference, model: MegatronModel, sequence: torch.Tensor, state: torch.Tensor, layer: int, limit: float
) -> str:
    """The first traced value of a layer that is another than transformers', by its tensor's name."""
    seen = reference.inside(layer, sequence)
    traced: dict[str, torch.Tensor] = {}
    model.layer(layer, [state], lambda name, value: traced.update({name: value}) if name not in traced else None)
    for name, value in traced.items():
        for theirs in candidates(name, seen, traced):
            if theirs.numel() != value.numel():
                continue
            theirs = theirs.reshape(value.shape)
            alike = parted(theirs, value) < limit
            if not alike and name == "mlp.router.weight":  # some routers give probabilities
                alike = parted(theirs, value.softmax(-1)) < limit
            if not alike:
                return WORDS.get(name) or model.shards.layer(layer).full_name(name)
    return "none that can be told apart"


def candidates(name: str, seen: Seen, traced: Mapping[str, torch.Tensor]) -> Iterator[torch.Tensor]:
    """transformers' value for a traced one, where it has a module for it."""
    if name.startswith("self_attention.linear_qkv "):
        yield from projected(name.rpartition(" ")[2], seen, traced)
        return
    if name.startswith("mlp.linear_fc1 ") and "mlp.gate_up_proj" in seen:
        gate, up = seen["mlp.gate_up_proj"][OUT].chunk(2, -1)
        yield gate if name.endswith("gate") else up
        return
    found = next(((module, side) for module, side in SAME.get(name, ()) if module in seen), None)
    if found:
        yield seen[found[0]][found[1]]


def projected(which: str, seen: Seen, traced: Mapping[str, torch.Tensor]) -> Iterator[torch.Tensor]:
    """Queries, keys or values of transformers, from their own projection or their part of a fused one."""
    single = f"self_attn.{which[0]}_proj"
    if single in seen:
        yield seen[single][OUT]
        return
    fused = next((seen[name][OUT] for name in FUSED if name in seen), None)
    if fused is not None:
        order = ("query", "key", "value")
        widths = [traced[f"self_attention.linear_qkv {each}"].shape[-1] for each in order]
        if sum(widths) == fused.shape[-1]:
            yield fused.split(widths, -1)[order.index(which)]


def parted(theirs: torch.Tensor, ours: torch.Tensor) -> float:
    """max|difference| / max|theirs|; infinite where one of them is no number."""
    apart = float((theirs.float() - ours.float()).abs().max())
    most = float(theirs.abs().max())
    return apart / max(most, 1e-30) if apart == apart else float("inf")
