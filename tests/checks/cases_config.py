"""config.json: its text, its values, the names in it, RoPE, quantization, and what the tensors say of it."""

from __future__ import annotations

import json
from typing import Any

import small_model
from rule_case import Case, error, info, passes, warning
from small_model import CONFIG, LAYER, Edit, all_of, config, gone, put, same, stored, weights
from small_model import TENSORS as SMALL

TEXT: list[Case] = [
    error("HB200", "none", gone("config.json")),
    error("HB200", "a folder", all_of(gone("config.json"), put("config.json/x", ""))),
    error("HB201", "a mark", put("config.json", b"\xef\xbb\xbf" + json.dumps(CONFIG).encode())),
    error("HB202", "UTF-16", put("config.json", json.dumps(CONFIG).encode("utf-16"))),
    error("HB202", "Latin-1", put("config.json", b'{"model_type": "\xe9"}')),
    error("HB203", "a comment", put("config.json", "// c\n{}")),
    error("HB203", "a trailing comma", put("config.json", '{"a": 1,}')),
    error("HB203", "empty", put("config.json", "")),
    error("HB203", "cut short", put("config.json", '{"a": {')),
    error("HB203", "nested too deeply", put("config.json", "[" * 100_000)),
    error("HB204", "a list", put("config.json", [1])),
    error("HB204", "null", put("config.json", "null")),
    warning("HB205", "more than a float holds", put("config.json", '{"model_type": "llama", "rms_norm_eps": 1e999}')),
    passes("HB205", "a large float", config(rope_theta=1e300)),
    warning("HB205", "NaN", config(rms_norm_eps=float("nan"))),
    warning("HB206", "a key twice", put("config.json", '{"model_type": "llama", "model_type": "mistral"}')),
    error("HB207", "layers as a text", config(num_hidden_layers="1")),
    error("HB207", "layers as a fraction", config(num_hidden_layers=1.5)),
    error("HB207", "architectures as a text", config(architectures="LlamaForCausalLM")),
    error("HB207", "a number as model_type", config(model_type=7)),
    error("HB208", "300 lists in one another", put("config.json", '{"a":' + "[" * 300 + "]" * 300 + "}")),
    error("HB208", "negative layers", config(num_hidden_layers=-2)),
    warning("HB209", "a broken side file", put("generation_config.json", "{oops")),
    *[passes(f"HB{number}", "the small model", same) for number in range(200, 210)],
]

NAMES: list[Case] = [
    error("HB210", "none", config(drop="model_type")),
    error("HB210", "an empty one", config(model_type="")),
    error("HB210", "an empty object", put("config.json", "{}")),
    passes("HB210", "code of the repository", config(drop="model_type", auto_map={"AutoConfig": "c.C"})),
    passes("HB210", "llama", same),
    error("HB211", "nobody's", config(model_type="brandnew9000")),
    error("HB211", "a slip", config(model_type="lama")),
    warning("HB211", "only vLLM's", config(model_type="kimi_k2")),
    passes("HB211", "code of the repository", config(model_type="brandnew9000", auto_map={"AutoConfig": "c.C"})),
    passes("HB211", "llama", same),
    warning("HB212", "none", config(drop="architectures")),
    warning("HB212", "an empty name", config(architectures=[""])),
    warning("HB212", "an empty list", config(architectures=[])),
    passes("HB212", "one", same),
    error("HB213", "an empty name", config(architectures=[""])),
    error("HB213", "nobody's", config(architectures=["NopeForCausalLM"])),
    warning("HB213", "given up by vLLM", config(architectures=["MotifForCausalLM"])),
    passes("HB213", "vLLM's alone", config(architectures=["ChatGLMModel"])),
    passes(
        "HB213", "code of the repository", config(architectures=["Mine"], auto_map={"AutoModelForCausalLM": "m.Mine"})
    ),
    passes("HB213", "LlamaForCausalLM", same),
    warning(
        "HB700", "an unknown type", all_of(config(model_type="my", auto_map={"AutoConfig": "c.C"}), put("c.py", ""))
    ),
    warning("HB700", "another repository", config(model_type="my", auto_map={"AutoConfig": "org/other--c.C"})),
    warning(
        "HB700",
        "a tokenizer",
        put("tokenizer_config.json", {"tokenizer_class": "X", "auto_map": {"AutoTokenizer": ["t.X", None]}}),
    ),
    warning(
        "HB700",
        "an image processor",
        all_of(config(model_type="my"), put("preprocessor_config.json", {"auto_map": {"AutoImageProcessor": "p.P"}})),
    ),
    info("HB700", "a known type", config(auto_map={"AutoConfig": "c.C"})),
    passes("HB700", "no code", config(auto_map={})),
    error("HB701", "the configuration", config(model_type="my", auto_map={"AutoConfig": "gone.C"})),
    warning("HB701", "the model", config(model_type="my", auto_map={"AutoModelForCausalLM": "gone.M"})),
    error("HB701", "a folder", all_of(config(model_type="my", auto_map={"AutoConfig": "c.C"}), put("c.py/x", ""))),
    error("HB701", "outside", config(model_type="my", auto_map={"AutoConfig": "../../etc/x.C"})),
    passes("HB701", "it is there", all_of(config(model_type="my", auto_map={"AutoConfig": "c.C"}), put("c.py", ""))),
    passes("HB701", "another repository", config(model_type="my", auto_map={"AutoConfig": "org/other--gone.C"})),
]

SIZES: list[Case] = [
    error("HB214", "three heads", config(num_attention_heads=3)),
    error("HB214", "key-value heads", config(num_attention_heads=4, num_key_value_heads=3)),
    passes("HB214", "heads of their own size", config(hidden_size=10, num_attention_heads=4, head_dim=4)),
    passes("HB214", "two heads", same),
    error("HB215", "no layers", config(num_hidden_layers=0)),
    error("HB215", "no vocabulary", config(vocab_size=0)),
    error("HB215", "no context", config(max_position_embeddings=0)),
    error("HB215", "no width of a head", config(head_dim=0)),
    error("HB215", "no width between", config(intermediate_size=0)),
    passes("HB215", "sizes", same),
    error("HB216", "seven", config(head_dim=7)),
    passes("HB216", "eight", config(head_dim=8)),
    error("HB217", "a slip", config(torch_dtype="bfloat")),
    error("HB217", "auto", config(torch_dtype="auto")),
    error("HB217", "with its module", config(torch_dtype="torch.bfloat16")),
    passes("HB217", "bfloat16", same),
    error("HB218", "a text", config(rms_norm_eps="1e-5")),
    error("HB218", "a number in quotes", config(intermediate_size="16")),
    error("HB218", "null layers", config(num_hidden_layers=None)),
    error("HB218", "a token id as text", config(eos_token_id="2")),
    error("HB218", "a list in place of an object", config(rope_scaling=[1])),
    error("HB218", "a text in place of an object", config(quantization_config="gptq")),
    error("HB218", "null in place of an object", config(auto_map=None)),
    error("HB218", "an integer as a small number", config(rms_norm_eps=1)),
    error("HB218", "a list of sizes", config(hidden_size=[8])),
    error("HB218", "several beginnings", config(bos_token_id=[1])),
    error("HB218", "a number in place of true", config(use_cache=1)),
    error("HB218", "kinds of layers nobody has", config(layer_types=["odd_attention"])),
    error("HB218", "kinds of more layers", config(layer_types=["full_attention"] * 2)),
    error("HB218", "a text as labels", config(id2label="x")),
    passes("HB218", "false in place of an object", config(rope_scaling=False)),
    passes("HB218", "a list of sizes in another family", config(model_type="gemma3n_text", intermediate_size=[16])),
    passes("HB218", "code of the repository", config(model_type="my", rms_norm_eps=1, auto_map={"AutoConfig": "c.C"})),
    error("HB218", "code that is not needed", config(use_cache="yes", auto_map={"AutoConfig": "c.C"})),
    passes("HB218", "key-value heads may be null", config(num_key_value_heads=None)),
    passes("HB218", "several ends", config(eos_token_id=[2, 3])),
    error("HB239", "a slip", config(hidden_act="slu")),
    passes("HB239", "silu", config(hidden_act="silu")),
    passes(
        "HB239", "code of the repository", config(model_type="my", hidden_act="mine", auto_map={"AutoConfig": "c.C"})
    ),
    error("HB239", "code that is not needed", config(hidden_act="mine", auto_map={"AutoConfig": "c.C"})),
    error("HB219", "asked for", config(model_type="gemma2", architectures=["Gemma2ForCausalLM"]), dtype="float16"),
    error("HB219", "asked for by its old name", config(model_type="glm4"), dtype="half"),
    warning("HB219", "in the configuration", config(model_type="gemma2", torch_dtype="float16")),
    passes("HB219", "another dtype asked for", config(model_type="gemma2", torch_dtype="float16"), dtype="bfloat16"),
    passes("HB219", "llama", same, dtype="float16"),
    warning("HB227", "bfloat16 narrowed", same, dtype="half"),
    passes("HB227", "as it is", config(torch_dtype="float16"), dtype="float16"),
]


def scaled(**values: Any) -> Edit:
    return config(rope_scaling=values)


LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}

ROPE: list[Case] = [
    warning("HB301", "missing", config(drop="rope_theta")),
    error("HB301", "null", config(rope_theta=None)),
    passes(
        "HB301",
        "in rope_parameters",
        config(drop="rope_theta", rope_parameters={"rope_theta": 1e6, "rope_type": "default"}),
    ),
    passes("HB301", "no rotary embedding", config(drop="rope_theta", model_type="gpt2")),
    passes("HB301", "there", same),
    error("HB302", "two types", scaled(type="linear", rope_type="dynamic", factor=2.0)),
    passes("HB302", "an old name for the same", scaled(type="mrope", rope_type="default", mrope_section=[1, 1, 2])),
    error("HB303", "none", scaled(type="mrope")),
    passes("HB303", "there", scaled(type="mrope", mrope_section=[1, 1, 2])),
    error("HB304", "nobody's", scaled(rope_type="quantum", factor=2.0)),
    error("HB304", "a number", scaled(rope_type=3)),
    warning("HB304", "only vLLM's", scaled(rope_type="deepseek_yarn", factor=2.0)),
    error("HB304", "null", scaled(rope_type=None, factor=2.0)),
    warning("HB304", "su on a Llama", scaled(type="su", short_factor=[1.0, 1.0], long_factor=[1.0, 1.0])),
    warning("HB304", "mrope on a Llama", scaled(type="mrope", mrope_section=[1, 1, 2])),
    passes("HB304", "longrope", scaled(rope_type="longrope", short_factor=[1.0, 1.0], long_factor=[1.0, 1.0])),
    passes(
        "HB304",
        "su on a Phi-3",
        config(model_type="phi3", rope_scaling={"type": "su", "short_factor": [1.0], "long_factor": [1.0]}),
    ),
    error("HB305", "yarn without factor", scaled(rope_type="yarn")),
    error("HB305", "llama3 without frequencies", scaled(rope_type="llama3", factor=8.0)),
    passes("HB305", "llama3", scaled(**LLAMA3)),
    error("HB306", "a null factor", scaled(rope_type="linear", factor=None)),
    error("HB306", "a factor as text", scaled(rope_type="linear", factor="4.0")),
    error("HB306", "a negative factor", scaled(rope_type="linear", factor=-1)),
    error("HB306", "lists of two lengths", scaled(rope_type="longrope", short_factor=[1.0], long_factor=[1.0, 2.0])),
    error("HB306", "lists of a wrong length", scaled(rope_type="longrope", short_factor=[1.0], long_factor=[1.0])),
    error("HB306", "a null list", scaled(rope_type="longrope", short_factor=[1.0, 1.0], long_factor=None)),
    error("HB306", "a text as attention factor", scaled(rope_type="yarn", factor=2.0, attention_factor="x")),
    error("HB306", "a null original length", scaled(**{**LLAMA3, "original_max_position_embeddings": None})),
    passes("HB306", "a null attention factor", scaled(rope_type="yarn", factor=2.0, attention_factor=None)),
    warning("HB306", "a factor below one", scaled(rope_type="linear", factor=0.5)),
    warning("HB306", "frequencies in the wrong order", scaled(**{**LLAMA3, "high_freq_factor": 1.0})),
    passes("HB306", "an integer", scaled(rope_type="linear", factor=2)),
    warning("HB307", "a factor alone", scaled(factor=8.0)),
    passes("HB307", "only a base", config(rope_parameters={"rope_theta": 1e4})),
    passes("HB307", "an empty object", scaled()),
    info("HB308", "type", scaled(type="linear", factor=2.0)),
    passes("HB308", "rope_type", scaled(**LLAMA3)),
    warning(
        "HB309",
        "two",
        config(rope_scaling={"rope_type": "linear", "factor": 2.0}, rope_parameters={"rope_type": "default"}),
    ),
    passes("HB309", "one", scaled(**LLAMA3)),
    warning("HB310", "on a Llama", config(drop="rope_theta", rotary_emb_base=1_000_000)),
    passes("HB310", "on a GPT-NeoX", config(drop="rope_theta", model_type="gpt_neox", rotary_emb_base=10_000)),
    info("HB311", "on a Llama", config(rotary_emb_fraction=0.5)),
    passes("HB311", "today's name", config(partial_rotary_factor=0.5)),
    info("HB312", "yarn", scaled(rope_type="yarn", factor=4.0, original_max_position_embeddings=8)),
    passes("HB312", "linear", scaled(rope_type="linear", factor=4.0)),
    error(
        "HB305",
        "nested by layer type",
        config(
            rope_parameters={"full_attention": {"rope_type": "yarn"}, "sliding_attention": {"rope_type": "default"}}
        ),
    ),
]

ATTENTION = "model.layers.0.self_attn"

GPT2: dict[str, Any] = {
    "model_type": "gpt2",
    "architectures": ["GPT2LMHeadModel"],
    "n_embd": 8,
    "n_head": 2,
    "n_layer": 1,
}
MIXTRAL: dict[str, Any] = {
    "model_type": "mixtral",
    "architectures": ["MixtralForCausalLM"],
    "num_experts_per_tok": 2,
    "num_local_experts": 2,
}


def renamed(old: str, new: str) -> Edit:
    """Write the weights anew with the beginning of some names replaced."""
    names = {name: new + name.removeprefix(old) if name.startswith(old) else name for name in SMALL}
    return put("model.safetensors", weights({names[name]: value for name, value in SMALL.items()}))


def mixture(experts: int) -> Edit:
    """Write the weights anew with so many experts in place of the dense layer."""
    start = "model.layers.0.block_sparse_moe"
    shapes = {"w1": [16, 8], "w2": [8, 16], "w3": [16, 8]}
    added = {
        f"{start}.experts.{number}.{name}.weight": ("BF16", shape)
        for number in range(experts)
        for name, shape in shapes.items()
    }
    kept = {name: value for name, value in SMALL.items() if ".mlp." not in name}
    return put("model.safetensors", weights({**kept, f"{start}.gate.weight": ("BF16", [experts, 8]), **added}))


TENSORS: list[Case] = [
    error("HB220", "no layers at all", put("model.safetensors", weights({"a": ("BF16", [1])}))),
    error("HB220", "more layers in the configuration", config(num_hidden_layers=3)),
    error("HB220", "more layers in the weights", stored({f"model.layers.1.{n}": v for n, v in LAYER.items()})),
    error(
        "HB220",
        "a layer in the middle is gone",
        all_of(config(num_hidden_layers=3), stored({f"model.layers.2.{n}": v for n, v in LAYER.items()})),
    ),
    passes(
        "HB220",
        "a layer for further tokens",
        all_of(config(num_nextn_predict_layers=1), stored({"model.layers.1.x": ("BF16", [8])})),
    ),
    error("HB220", "beside code that is not needed", config(num_hidden_layers=3, auto_map={"AutoConfig": "c.C"})),
    passes("HB220", "layers of the eyes", stored({"vision_tower.layers.7.x": ("BF16", [8])})),
    passes("HB220", "one layer", same),
    error("HB221", "fewer", config(vocab_size=10)),
    error("HB221", "more", config(vocab_size=20)),
    passes("HB221", "padded on purpose", config(vocab_size=10, pad_vocab_size_multiple=16)),
    error("HB221", "a shorter head", stored({"lm_head.weight": ("BF16", [12, 8])})),
    passes(
        "HB221",
        "eight more for images, which the head lacks",
        all_of(config(vocab_size=8, model_type="mllama"), stored({"lm_head.weight": ("BF16", [8, 8])})),
    ),
    error("HB221", "a longer head", stored({"lm_head.weight": ("BF16", [32, 8])})),
    passes(
        "HB221",
        "both padded alike",
        all_of(
            config(vocab_size=64),
            stored({"lm_head.weight": ("BF16", [64, 8]), "model.embed_tokens.weight": ("BF16", [64, 8])}),
        ),
    ),
    passes("HB221", "equal", same),
    error("HB222", "another width", config(hidden_size=16)),
    error("HB222", "more heads", config(num_attention_heads=4, head_dim=4)),
    error("HB222", "more key-value heads", config(num_key_value_heads=2)),
    error("HB222", "another intermediate size", config(intermediate_size=32)),
    error("HB222", "one norm of another size", stored({"model.layers.0.input_layernorm.weight": ("BF16", [4])})),
    error("HB222", "a last norm of another size", stored({"model.norm.weight": ("BF16", [4])})),
    error("HB222", "an embedding in one dimension", stored({"model.embed_tokens.weight": ("BF16", [128])})),
    error("HB222", "other heads of a mixture", all_of(config(**MIXTRAL, head_dim=8), mixture(2))),
    passes("HB222", "quantized", config(intermediate_size=32, quantization_config={"quant_method": "gptq"})),
    passes("HB222", "as the weights", same),
    warning("HB223", "float32", config(torch_dtype="float32")),
    passes("HB223", "quantized", config(torch_dtype="float32", quantization_config={"quant_method": "fp8"})),
    passes("HB223", "bfloat16", same),
    error("HB224", "untied", stored(drop="lm_head.weight")),
    error("HB224", "untied by the family", all_of(config(drop="tie_word_embeddings"), stored(drop="lm_head.weight"))),
    passes("HB224", "tied", all_of(config(tie_word_embeddings=True), stored(drop="lm_head.weight"))),
    passes(
        "HB224",
        "tied by the family",
        all_of(config(drop="tie_word_embeddings", model_type="gemma"), stored(drop="lm_head.weight")),
    ),
    passes("HB224", "a packed head", stored({"lm_head.qweight": ("I32", [2, 8])}, drop="lm_head.weight")),
    passes("HB224", "no head wanted", all_of(config(architectures=["LlamaModel"]), stored(drop="lm_head.weight"))),
    warning("HB225", "another table", all_of(config(tie_word_embeddings=True), stored(fill={"lm_head.weight": b"\1"}))),
    passes("HB225", "the same table", config(tie_word_embeddings=True)),
    info("HB226", "the same table", config(tie_word_embeddings=True)),
    passes("HB226", "untied", same),
    error(
        "HB228",
        "compiled",
        put("model.safetensors", weights({f"_orig_mod.{n}": v for n, v in small_model.TENSORS.items()})),
    ),
    passes("HB228", "plain names", same),
    error("HB235", "stored and not built", stored({f"{ATTENTION}.q_proj.bias": ("BF16", [8])})),
    warning("HB235", "built and not stored", config(attention_bias=True)),
    warning("HB235", "always built", config(model_type="qwen2", architectures=["Qwen2ForCausalLM"])),
    passes(
        "HB235",
        "built and stored",
        all_of(
            config(attention_bias=True),
            stored({f"{ATTENTION}.{part}_proj.bias": ("BF16", [4 if part in "kv" else 8]) for part in "qkvo"}),
        ),
    ),
    passes("HB235", "none", same),
    warning("HB229", "Mistral's class", config(architectures=["MistralForCausalLM"])),
    passes("HB229", "a text model's", config(model_type="gemma3_text", architectures=["Gemma3ForCausalLM"])),
    passes("HB229", "Llama's", config(architectures=["LlamaForSequenceClassification"])),
    error("HB238", "no embedding", stored(drop="model.embed_tokens.weight")),
    error("HB238", "no queries", stored(drop="model.layers.0.self_attn.q_proj.weight")),
    passes("HB238", "another family", all_of(config(model_type="phi"), stored(drop="model.norm.weight"))),
    error("HB238", "names of a part", renamed("model.", "model.language_model.")),
    error("HB238", "names of another model", renamed("model.", "transformer.")),
    error("HB238", "one letter less", renamed("model.layers.", "model.layer.")),
    error("HB238", "Meta's names", renamed("model.layers.0.self_attn.", "layers.0.attention.w")),
    info("HB238", "llama under the name of gpt2", config(**GPT2)),
    info("HB238", "dense layers under a mixture's name", config(**MIXTRAL)),
    info("HB238", "parts of what another family fuses", config(model_type="phi3", architectures=["Phi3ForCausalLM"])),
    error(
        "HB238",
        "no queries, beside code that is not needed",
        all_of(config(auto_map={"AutoConfig": "c.C"}), stored(drop="model.layers.0.self_attn.q_proj.weight")),
    ),
    passes("HB238", "the model without its head", renamed("model.", "")),
    passes("HB238", "layers of the eyes beside", stored({"vision_tower.layers.7.x": ("BF16", [8])})),
    error("HB241", "more than are stored", all_of(config(**MIXTRAL | {"num_local_experts": 4}), mixture(2))),
    error("HB241", "more than there are", all_of(config(**MIXTRAL | {"num_experts_per_tok": 3}), mixture(2))),
    passes("HB241", "as many", all_of(config(**MIXTRAL), mixture(2))),
    passes("HB241", "none", same),
    passes("HB238", "all there", same),
]


def quantized(**values: Any) -> Edit:
    return config(quantization_config=values)


def packed(method: str, shape: list[int], **values: Any) -> Edit:
    """One layer of 8 by 8 weights in one group, its packed tensor of a given shape."""
    layer = f"{ATTENTION}.q_proj"
    parts = {"qweight": ("I32", shape), "scales": ("F16", [1, 8])}
    parts |= {"g_idx": ("I32", [8])} if method == "gptq" and shape != [8, 1] else {}
    tensors = {f"{layer}.{name}": part for name, part in parts.items()}
    return all_of(
        quantized(**{"quant_method": method, "bits": 4, "group_size": 8, **values}),
        stored(tensors, drop=f"{layer}.weight"),
    )


QUANTIZATION: list[Case] = [
    error("HB230", "gptq without packed tensors", quantized(quant_method="gptq", bits=4)),
    error("HB230", "fp8 without such tensors", quantized(quant_method="fp8")),
    error("HB230", "aqlm without codes", quantized(quant_method="aqlm")),
    error("HB230", "fp8 without scales", all_of(quantized(quant_method="fp8"), stored({"x": ("F8_E4M3", [1])}))),
    error("HB230", "told by a side file", put("hf_quant_config.json", {"quantization": {"quant_algo": "FP8"}})),
    passes(
        "HB230",
        "fp8",
        all_of(quantized(quant_method="fp8"), stored({"x": ("F8_E4M3", [1]), "x.weight_scale": ("F32", [1])})),
    ),
    passes("HB230", "gptq", all_of(quantized(quant_method="gptq"), stored({"model.layers.0.x.qweight": ("I32", [1])}))),
    passes("HB230", "none", same),
    error("HB231", "packed tensors", stored({"model.layers.0.x.qweight": ("I32", [1])})),
    warning("HB231", "floats of 8 bits", stored({"x": ("F8_E4M3", [1])})),
    error("HB231", "whole numbers", stored({f"{ATTENTION}.q_proj.weight": ("U8", [8, 4])})),
    passes("HB231", "plain tensors", same),
    error("HB237", "AWQ under GPTQ", packed("gptq", [8, 1])),
    error("HB237", "GPTQ under AWQ", packed("awq", [1, 8], version="gemm")),
    error("HB237", "four bits under eight", packed("gptq", [1, 8], bits=8)),
    error("HB237", "other groups", packed("gptq", [1, 8], group_size=4)),
    error("HB237", "a text as group_size", packed("gptq", [1, 8], group_size="x")),
    error("HB237", "groups of nothing", packed("gptq", [1, 8], group_size=0)),
    passes("HB237", "GPTQ", packed("gptq", [1, 8])),
    passes("HB237", "one group", packed("gptq", [1, 8], group_size=-1)),
    passes("HB237", "AWQ", packed("awq", [8, 1], version="gemm")),
    passes("HB237", "another layout", packed("gptq", [4, 2], checkpoint_format="marlin")),
    passes("HB237", "other bits for single layers", packed("gptq", [2, 8], dynamic={"q_proj": {"bits": 8}})),
    error("HB236", "five", quantized(quant_method="gptq", bits=5)),
    error("HB236", "a text", quantized(quant_method="awq", bits="4")),
    error("HB236", "none", quantized(quant_method="gptq")),
    passes("HB236", "four", quantized(quant_method="gptq", bits=4)),
    passes("HB236", "another method", quantized(quant_method="fp8")),
    passes("HB236", "plain tensors", same),
    error("HB232", "another method", quantized(quant_method="fp8"), quantization="gguf"),
    error("HB232", "a method for packed files", same, quantization="gptq"),
    error("HB232", "no method", same, quantization="gtpq"),
    passes("HB232", "another kernel", quantized(quant_method="gptq"), quantization="gptq_marlin"),
    passes("HB232", "while loading", same, quantization="bitsandbytes"),
    passes("HB232", "nothing asked for", quantized(quant_method="fp8")),
    error("HB233", "nobody's", quantized(quant_method="gtpq")),
    warning("HB233", "none named", quantized(bits=4)),
    warning("HB233", "an empty object", quantized()),
    error("HB233", "an empty object for packed tensors", all_of(quantized(), stored({"x.qweight": ("I32", [1])}))),
    warning("HB233", "capital letters", quantized(quant_method="GPTQ", bits=4)),
    passes("HB233", "bitsandbytes without a name", quantized(load_in_4bit=True)),
    passes("HB233", "null", config(quantization_config=None)),
    info("HB234", "ModelOpt", put("hf_quant_config.json", {"quantization": {"quant_algo": "FP8"}})),
    error("HB234", "nobody's", put("hf_quant_config.json", {"quantization": {"quant_algo": "FP3"}})),
    passes(
        "HB234",
        "told by config.json",
        all_of(
            quantized(quant_method="modelopt"), put("hf_quant_config.json", {"quantization": {"quant_algo": "FP8"}})
        ),
    ),
]

CASES = [*TEXT, *NAMES, *SIZES, *ROPE, *TENSORS, *QUANTIZATION]
