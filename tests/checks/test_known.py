"""What the runtimes know, asked by the name of a class."""

from __future__ import annotations

import pytest

from hfbench.checks.known import type_of_architecture


@pytest.mark.parametrize(
    ("name", "model_type"),
    [
        ("LlamaForCausalLM", "llama"),
        ("LlamaForSequenceClassification", "llama"),
        ("Qwen3MoeForCausalLM", "qwen3_moe"),
        ("GPT2LMHeadModel", "gpt2"),
        ("NobodysForCausalLM", None),
    ],
)
def test_a_class_belongs_to_the_type_of_its_name(name: str, model_type: str | None) -> None:
    assert type_of_architecture(name) == model_type
