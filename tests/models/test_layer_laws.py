"""The table of what layers hold: that it is what the classes build, and how it is read."""

from __future__ import annotations

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from hfbench.models.layer_laws import TABLE, laws_of
from hfbench.models.resolution.resolve import trace_model

LEARN = Path(__file__).with_name("learn_layer_laws.py")


@pytest.mark.slow
@pytest.mark.parametrize("model_type", ["llama", "qwen3_moe", "gpt2", "bert", "gemma3_text", "phi3", "mixtral"])
def test_the_table_is_what_the_classes_build(model_type: str) -> None:
    pytest.importorskip("transformers")
    spec = spec_from_file_location("learn_layer_laws", LEARN)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.learn(model_type) == json.loads(TABLE.read_text())[model_type]


@pytest.mark.parametrize(
    ("model_type", "values", "heads", "pairs"),
    [
        ("llama", {"hidden_size": 8, "num_attention_heads": 2}, 4, 2),
        ("llama", {"hidden_size": 8, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16}, 16, 1),
        ("qwen3", {"hidden_size": 8, "num_attention_heads": 2, "num_key_value_heads": 1}, 128, 1),
        ("mistral", {"hidden_size": 64, "num_attention_heads": 16}, 4, 8),
        ("mistral", {"hidden_size": 64, "num_attention_heads": 16, "num_key_value_heads": None}, 4, 16),
    ],
)
def test_silent_keys_are_filled_in_as_the_class_does(
    model_type: str, values: dict[str, Any], heads: int, pairs: int
) -> None:
    laws = laws_of(model_type)
    assert laws is not None
    sizes = laws.sizes(values)
    assert sizes.dimension("D") == heads
    assert sizes.dimension("K*D") == pairs * heads


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("num_hidden_layers", 3, "counts 3 layers, the weights hold 1"),
        ("vocab_size", 10, "vocab_size is 10, the embedding has 16 rows"),
        ("model_type", "gpt2", "no tensor is called transformer.h.N"),
    ],
)
def test_a_model_of_other_tensors_loads_nowhere(single: Path, key: str, value: Any, told: str) -> None:
    path = single / "config.json"
    values = json.loads(path.read_text()) | {key: value}
    if key == "model_type":
        values |= {"architectures": ["GPT2LMHeadModel"]}
    path.write_text(json.dumps(values))
    found = trace_model(str(single))
    assert found.loads_nowhere
    assert told in found.runtimes["transformers"].reason
    assert told in found.runtimes["vllm"].reason
    assert [each.state for each in found.steps if each.step == "tensors"] == ["error"]
