"""Where elements lie in Megatron, worked out a second time with reshape and concatenate."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from hf_models import EXPERTS, HIDDEN, checkpoint, execute

from hfbench.convert.boxes import Box
from hfbench.convert.megatron.destination import Destination
from hfbench.convert.megatron.parallel import Parallel
from hfbench.convert.megatron.plan import plan_megatron
from hfbench.convert.plan import Plan, Target


def planned(name: str, **layout: Any) -> tuple[Plan, dict[str, Any], dict[str, Any]]:
    """The plan, the sources' bits and the targets'."""
    model = checkpoint(name)
    format, names = layout.pop("format", "torch"), layout.pop("names", "te")
    plan = plan_megatron(model.config, model.specs, Destination(Parallel(**layout), format=format, names=names))
    return plan, model.bits(), execute(plan.targets, model.bits())


def by_group(q: Any, k: Any, v: Any, groups: int) -> Any:
    """Rows of each key-value head together, as megatron-core reshapes them."""
    parts = [each.reshape(groups, -1, each.shape[1]) for each in (q, k, v)]
    return numpy.concatenate(parts, axis=1).reshape(-1, q.shape[1])


@pytest.mark.parametrize(("kind", "tp"), [("weight", 1), ("weight", 2), ("weight", 4), ("bias", 2)])
def test_query_key_and_value_are_interleaved_by_group_and_chunked(kind: str, tp: int) -> None:
    _, hf, found = planned("qwen2", tp=tp)
    parts = [hf[f"model.layers.2.self_attn.{each}_proj.{kind}"] for each in "qkv"]
    whole = by_group(*parts, groups=2)
    for rank, chunk in enumerate(numpy.split(whole, tp)):
        assert numpy.array_equal(found[f"mp_rank_{rank:02d}:decoder.layers.2.self_attention.linear_qkv.{kind}"], chunk)


def test_gate_and_up_are_chunked_apart() -> None:
    _, hf, found = planned("llama", tp=2)
    gate, up = (hf[f"model.layers.0.mlp.{each}_proj.weight"] for each in ("gate", "up"))
    for rank in range(2):
        rows = slice(12 * rank, 12 * rank + 12)
        expected = numpy.concatenate([gate[rows], up[rows]])
        assert numpy.array_equal(found[f"mp_rank_{rank:02d}:decoder.layers.0.mlp.linear_fc1.weight"], expected)


def test_output_projections_are_chunked_by_columns() -> None:
    _, hf, found = planned("llama", tp=2)
    for target, source in (("self_attention.linear_proj", "self_attn.o_proj"), ("mlp.linear_fc2", "mlp.down_proj")):
        whole = hf[f"model.layers.1.{source}.weight"]
        for rank, chunk in enumerate(numpy.split(whole, 2, axis=1)):
            assert numpy.array_equal(found[f"mp_rank_{rank:02d}:decoder.layers.1.{target}.weight"], chunk)


def test_layers_are_counted_within_their_stage() -> None:
    _, hf, found = planned("llama", pp=3, first_stage_layers=1, last_stage_layers=1)
    place = "decoder.layers.{}.self_attention.linear_qkv.layer_norm_weight"
    for stage, layer, number in ((0, 0, 0), (1, 1, 0), (1, 2, 1), (2, 3, 0)):
        norm = found[f"mp_rank_00_{stage:03d}:{place.format(number)}"]
        assert numpy.array_equal(norm, hf[f"model.layers.{layer}.input_layernorm.weight"])
    assert f"mp_rank_00_000:{place.format(1)}" not in found


def test_the_vocabulary_is_padded_with_zeros_behind_its_last_row() -> None:
    plan, hf, found = planned("llama", tp=2)
    assert plan.args["padded_vocab_size"] == 256
    first, second = (found[f"mp_rank_{rank:02d}:output_layer.weight"] for rank in range(2))
    assert numpy.array_equal(first[:50], hf["lm_head.weight"])
    assert (first[50:] == -1).all()
    assert (second == -1).all()
    assert {each.fill for each in plan.targets if "output_layer" in each.spec.name} == {"zeros"}


def test_a_tied_embedding_is_repeated_on_the_last_stage_alone() -> None:
    _, _, found = planned("llama_tied", tp=2, pp=2)
    assert numpy.array_equal(
        found["mp_rank_01_001:output_layer.weight"], found["mp_rank_01_000:embedding.word_embeddings.weight"]
    )
    assert not any("output_layer" in name for name in planned("llama_tied", tp=2)[2])


def test_linear_layers_of_gpt2_are_turned() -> None:
    _, hf, found = planned("gpt2", tp=2)
    joined = hf["transformer.h.3.attn.c_attn.weight"].T
    whole = by_group(*numpy.split(joined, 3), groups=4)
    rank = "mp_rank_01:decoder.layers.3."
    assert numpy.array_equal(found[rank + "self_attention.linear_qkv.weight"], numpy.split(whole, 2)[1])
    assert numpy.array_equal(found[rank + "mlp.linear_fc1.weight"], hf["transformer.h.3.mlp.c_fc.weight"].T[32:])
    assert numpy.array_equal(found[rank + "mlp.linear_fc2.bias"], hf["transformer.h.3.mlp.c_proj.bias"])


def test_phi3_is_taken_out_of_its_joined_tensors() -> None:
    _, hf, found = planned("phi3", tp=2)
    joined = hf["model.layers.0.self_attn.qkv_proj.weight"]
    whole = by_group(*numpy.split(joined, [16, 24]), groups=2)
    assert numpy.array_equal(found["mp_rank_00:decoder.layers.0.self_attention.linear_qkv.weight"], whole[:16])
    gate, up = numpy.split(hf["model.layers.0.mlp.gate_up_proj.weight"], 2)
    expected = numpy.concatenate([gate[12:], up[12:]])
    assert numpy.array_equal(found["mp_rank_01:decoder.layers.0.mlp.linear_fc1.weight"], expected)


def test_torch_dist_stacks_layers_and_experts() -> None:
    plan, hf, found = planned("mixtral", tp=2, format="torch_dist")
    target = next(each for each in plan.targets if "experts.experts.linear_fc1" in each.spec.name)
    assert target.spec.name == "decoder.layers.mlp.experts.experts.linear_fc1.weight"
    assert target.spec.shape == (4, EXPERTS, 48, HIDDEN)
    assert plan.stacked[target.spec.name] == 2
    whole = found[target.spec.name].reshape(target.spec.shape)
    inside = "model.layers.2.block_sparse_moe.experts.3."
    assert numpy.array_equal(whole[2, 3], numpy.concatenate([hf[inside + "w1.weight"], hf[inside + "w3.weight"]]))
    norms = found["decoder.layers.pre_mlp_layernorm.weight"]
    assert numpy.array_equal(norms[1], hf["model.layers.1.post_attention_layernorm.weight"][:, 0])


def test_torch_dist_keeps_layers_of_two_kinds_apart() -> None:
    plan, hf, found = planned("qwen2_moe", format="torch_dist")
    assert plan.args["moe_layer_freq"] == [1, 0, 1, 1]
    gate, up = (hf[f"model.layers.1.mlp.{each}_proj.weight"] for each in ("gate", "up"))
    assert numpy.array_equal(found["decoder.layers.1.mlp.linear_fc1.weight"], numpy.concatenate([gate, up]))
    assert "decoder.layers.3.mlp.experts.experts.linear_fc2.weight" in found


def test_local_names_and_those_of_transformer_engine() -> None:
    te, local = (set(planned("deepseek_v3", names=names)[2]) for names in ("te", "local"))
    layer, expert = "mp_rank_00:decoder.layers.1.", "mlp.experts."
    assert {layer + "self_attention.linear_kv_up_proj.layer_norm_weight", layer + expert + "linear_fc1.weight3"} <= te
    assert {layer + "self_attention.kv_layernorm.weight", layer + expert + "local_experts.3.linear_fc1.weight"} <= local
    assert layer + "input_layernorm.weight" in te & local
    assert "mp_rank_00:decoder.layers.0.mlp.linear_fc1.layer_norm_weight" in te
    assert "mp_rank_00:decoder.layers.0.pre_mlp_layernorm.weight" in local


def test_layers_that_predict_further_tokens_lie_on_the_last_stage() -> None:
    plan, hf, found = planned("deepseek_v3", pp=2)
    last = "mp_rank_00_001:mtp.layers.0."
    assert numpy.array_equal(found[last + "eh_proj.weight"], hf["model.layers.4.eh_proj.weight"])
    assert numpy.array_equal(found[last + "final_layernorm.weight"], hf["model.layers.4.shared_head.norm.weight"])
    assert last + "transformer_layer.mlp.experts.linear_fc1.weight0" in found
    assert "mp_rank_00_001:embedding.word_embeddings.weight" in found
    assert ("model.layers.4.embed_tokens.weight", "model.embed_tokens.weight") in plan.twins


def test_no_target_is_written_twice_or_left_open() -> None:
    """The plan's own promise, counted here element by element."""
    for name in ("llama", "qwen2_moe", "gpt2"):
        plan, _, found = planned(name, tp=2, pp=2)
        for target in plan.targets:
            assert sum(area(copy.target_box) for copy in target.copies) == (found[target.spec.name] >= 0).sum()
            assert target.fill or (found[target.spec.name] >= 0).all(), told(target)


def area(box: Box) -> int:
    return box.height * box.width


def told(target: Target) -> str:
    return f"{target.spec.name} {target.spec.shape}"
