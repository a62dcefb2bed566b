"""What checkpoints bring along: prefixes of wrappers, adapters, quantized weights, tied heads, layers too many."""

from __future__ import annotations

from typing import Any

import pytest
from hf_models import Checkpoint, checkpoint, specs_of

from hfbench.convert.boxes import TensorSpec
from hfbench.convert.megatron.destination import Destination
from hfbench.convert.megatron.plan import plan_megatron
from hfbench.convert.plan import Plan
from hfbench.errors import HfbenchError, UsageError


def planned(model: Checkpoint, **options: Any) -> Plan:
    return plan_megatron(model.config, model.specs, Destination(**options))


def renamed(model: Checkpoint, **changes: str) -> Checkpoint:
    """The model with `old` in names replaced by `new`."""
    model.shapes = {name.replace(changes["old"], changes["new"], 1): shape for name, shape in model.shapes.items()}
    return model


def prefixed(prefix: str, name: str = "llama") -> Checkpoint:
    model = checkpoint(name)
    model.shapes = {prefix + each: shape for each, shape in model.shapes.items()}
    return model


@pytest.mark.parametrize(
    ("prefix", "told"),
    [
        ("_orig_mod.", "_orig_mod. (torch.compile) is left out of 39 names"),
        ("module.", "module. (DDP) is left out of 39 names"),
        ("base_model.model.", "base_model.model. (PEFT) is left out of 39 names"),
        ("module._orig_mod.", "_orig_mod. (torch.compile)"),
    ],
)
def test_prefixes_of_wrappers_are_left_out_and_told(prefix: str, told: str) -> None:
    plan = planned(prefixed(prefix))
    assert any(told in note for note in plan.notes)
    assert specs_of(plan) == specs_of(planned(checkpoint("llama")))
    assert all(source.startswith(prefix) for target in plan.targets for source in target.sources)


def test_a_doubled_prefix_and_one_in_the_middle_are_left_out() -> None:
    doubled = renamed(checkpoint("llama"), old="model.", new="model.model.")
    inside = renamed(checkpoint("llama"), old="self_attn.", new="self_attn._orig_mod.")
    for model in (doubled, inside):
        assert specs_of(planned(model)) == specs_of(planned(checkpoint("llama")))


def test_a_model_saved_without_its_head_gets_its_prefix_back() -> None:
    for name in ("llama_tied", "gpt2"):
        model = checkpoint(name)
        bare = renamed(checkpoint(name), old="model." if name != "gpt2" else "transformer.", new="")
        plan = planned(bare)
        assert specs_of(plan) == specs_of(planned(model))
        assert any("saved without its head" in note for note in plan.notes)


def test_a_final_norm_elsewhere_is_found() -> None:
    plan = planned(renamed(checkpoint("llama"), old="model.norm.weight", new="model.final_layernorm.weight"))
    assert any("taken as the final norm" in note for note in plan.notes)


def test_two_names_that_become_one_are_refused() -> None:
    model = checkpoint("llama")
    model.shapes["module.model.norm.weight"] = (16,)
    with pytest.raises(HfbenchError, match=r"are both 'model\.norm\.weight' without their prefixes"):
        planned(model)


def test_a_head_that_is_stored_though_tied_is_left_out_and_must_equal_the_embedding() -> None:
    model = checkpoint("llama_tied")
    model.shapes["lm_head.weight"] = (50, 16)
    plan = planned(model)
    assert [(each.source, each.why) for each in plan.dropped] == [("lm_head.weight", "tied to the embedding")]
    assert plan.twins == (("lm_head.weight", "model.embed_tokens.weight"),)


def test_a_missing_head_names_the_key_that_ties_it() -> None:
    model = checkpoint("llama")
    del model.shapes["lm_head.weight"]
    with pytest.raises(HfbenchError, match=r"1 tensor missing: 'lm_head.weight'\. If head and embedding are one"):
        planned(model)


def test_inverse_frequencies_and_masks_are_left_out_with_their_reasons() -> None:
    llama, gpt2 = checkpoint("llama"), checkpoint("gpt2")
    llama.shapes["model.layers.0.self_attn.rotary_emb.inv_freq"] = (2,)
    gpt2.shapes |= {"transformer.h.1.attn.bias": (1, 1, 32, 32), "transformer.h.1.attn.masked_bias": ()}
    assert [each.why for each in planned(llama).dropped] == ["worked out from the rotary base"]
    assert len(planned(gpt2).dropped) == 2


@pytest.mark.parametrize(
    ("name", "extra", "told"),
    [
        ("llama", "model.layers.4.input_layernorm.weight", "1 tensor without a place in a llama model of 4 layers"),
        ("llama", "model.layers.0.self_attn.q_norm.weight", "q_norm"),
        ("llama", "model.layers.0.self_attn.q_proj.lora_A.weight", "belong to an adapter.*merge"),
        ("deepseek_v2", "model.layers.1.mlp.gate.e_score_correction_bias", "e_score_correction_bias"),
    ],
)
def test_tensors_without_a_place_stop_everything(name: str, extra: str, told: str) -> None:
    model = checkpoint(name)
    model.shapes[extra] = (4,)
    with pytest.raises(HfbenchError, match=told):
        planned(model)


def test_a_tensor_of_another_shape_is_refused_with_both() -> None:
    model = checkpoint("llama")
    model.shapes["model.layers.3.mlp.up_proj.weight"] = (24, 17)
    with pytest.raises(
        HfbenchError, match=r"up_proj.weight' has shape \[24, 17\], the configuration asks for \[24, 16\]"
    ):
        planned(model)


def test_what_becomes_one_tensor_must_have_one_dtype() -> None:
    model = checkpoint("llama")
    model.dtypes["model.layers.0.self_attn.k_proj.weight"] = "F32"
    with pytest.raises(UsageError, match=r"differ in dtype: BF16, F32\. Choose one with --dtype"):
        planned(model)
    assert {target.spec.dtype for target in planned(model, dtype="BF16").targets} == {"BF16"}


def test_a_cast_leaves_the_bias_of_experts_in_float32() -> None:
    plan = planned(checkpoint("deepseek_v3"), dtype="BF16")
    kept = {target.spec.name.rpartition(".")[2] for target in plan.targets if target.spec.dtype == "F32"}
    assert kept == {"expert_bias"}
    assert plan.args["bf16"]


@pytest.mark.parametrize(
    ("method", "tensor", "told"),
    [
        ("gptq", "model.layers.0.mlp.up_proj.qweight", "quantized with gptq.*4-bit groups have to be unpacked"),
        ("awq", "model.layers.0.mlp.up_proj.qweight", "quantized with awq.*scales multiplied back"),
        ("bitsandbytes", "model.layers.0.mlp.up_proj.weight.absmax", "quantized with bitsandbytes.*dequantized"),
        ("mxfp4", "model.layers.0.mlp.experts.gate_up_proj_blocks", "blocks of 32 values"),
        ("compressed-tensors", "model.layers.0.mlp.up_proj.weight_packed", "decompressed first"),
        ("", "model.layers.0.mlp.up_proj.qweight", "a method config.json does not name"),
        ("modelopt", "", "quantized with 'modelopt'"),
    ],
)
def test_quantized_weights_are_refused_with_what_would_have_to_happen(method: str, tensor: str, told: str) -> None:
    model = checkpoint("llama", **({"quantization_config": {"quant_method": method}} if method else {}))
    if tensor:
        model.shapes[tensor] = (1,)
    with pytest.raises(UsageError, match=told):
        planned(model)


def test_fp8_is_never_cast_without_its_scales() -> None:
    model = checkpoint("llama", quantization_config={"quant_method": "fp8", "weight_block_size": [128, 128]})
    name = "model.layers.0.mlp.up_proj.weight"
    model.dtypes[name] = "F8_E4M3"
    with pytest.raises(UsageError, match="8-bit and would lose its scales"):
        planned(model, dtype="BF16")


def test_a_family_that_is_not_known_is_told_with_those_that_are() -> None:
    specs = {"x": TensorSpec("x", "BF16", (1,))}
    for config, told in (
        ({"model_type": "falcon"}, "'falcon' is none of those supported. They are deepseek_v2, deepseek_v3, gemma, "),
        ({"model_type": "deepseek_v4"}, "'deepseek_v4' is none of those supported. They are deepseek_v2, "),
        ({"model_type": "own", "auto_map": {}}, "'own' is none of those supported"),
        ({"model_type": "own", "auto_map": {"AutoModel": "m.M"}}, "runs code of its own, which is neither executed"),
        ({}, "gives no model_type"),
    ):
        with pytest.raises(UsageError, match=told):
            plan_megatron(config, specs, Destination())


def test_code_that_comes_with_a_known_family_is_not_used() -> None:
    plan = planned(checkpoint("deepseek_v3", auto_map={"AutoModelForCausalLM": "modeling.Model"}))
    assert any("its family is known" in note for note in plan.notes)


def test_layers_that_predict_further_tokens_may_be_told_and_not_stored() -> None:
    """transformers saves DeepSeek V3 without them and leaves the number in config.json."""
    model = checkpoint("deepseek_v3")
    model.shapes = {name: shape for name, shape in model.shapes.items() if ".layers.4." not in name}
    plan = planned(model)
    assert plan.args["mtp_num_layers"] is None
    assert any("told in config.json and not stored" in note for note in plan.notes)


@pytest.mark.parametrize(
    ("name", "key", "value", "told"),
    [
        ("mixtral", "num_local_experts", 10**9, "num_experts is 1,000,000,000 in each of 4 layers"),
        ("deepseek_v3", "num_nextn_predict_layers", 10**12, "num_nextn_predict_layers is '1000000000000'"),
        ("deepseek_v3", "num_nextn_predict_layers", "1", "num_nextn_predict_layers is '1'"),
        ("deepseek_v3", "first_k_dense_replace", 10**12, "tensors missing"),
        ("deepseek_v3", "n_group", "two", "n_group is 'two'"),
        ("gemma2", "sliding_window_pattern", "2", "sliding_window_pattern is '2'"),
        ("mistral", "sliding_window", "4096", "sliding_window is '4096'"),
        ("llama", "attention_dropout", [0.1], "dropout of attention is"),
        ("llama", "rms_norm_eps", "1e-6", "epsilon of norms is '1e-6'"),
        ("llama", "rms_norm_eps", None, "epsilon of norms is 0 or not given"),
        ("llama", "partial_rotary_factor", "half", "partial_rotary_factor is 'half'"),
        ("gpt2", "resid_pdrop", {}, "resid_pdrop is"),
    ],
)
def test_a_value_of_another_kind_or_size_is_refused_at_once(name: str, key: str, value: object, told: str) -> None:
    model = checkpoint(name)
    model.config[key] = value
    with pytest.raises(HfbenchError, match=told):
        planned(model)
