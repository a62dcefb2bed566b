"""Families as tables: found without a list, whole in themselves, and told apart."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from hfbench.convert.boxes import Copy, TensorSpec, uncovered
from hfbench.convert.families.registry import families, family_of
from hfbench.convert.megatron.arguments import UNUSED
from hfbench.convert.megatron.sizes import Sizes
from hfbench.errors import UsageError
from hfbench.estimate.settings import class_table

EVERY = list(families().values())
NAMES = [family.name for family in EVERY]


@pytest.mark.parametrize("family", EVERY, ids=NAMES)
def test_rows_name_sizes_that_there_are(family: object) -> None:
    sizes = Sizes(layers=1, hidden=4, heads=2, groups=1, head_dim=2, ffn=6, vocab=5, padded_vocab=8)
    for row in family.rows:  # type: ignore[attr-defined]
        assert len(sizes.shape(row.dimensions)) == len(row.dimensions), row.target
        assert len(row.transform.shapes(sizes.shape(row.dimensions), sizes)) == len(row.sources), row.target


@pytest.mark.parametrize("family", EVERY, ids=NAMES)
def test_every_element_of_every_source_has_a_place(family: object) -> None:
    sizes = Sizes(layers=1, hidden=4, heads=4, groups=2, head_dim=2, ffn=6, vocab=5, padded_vocab=8, positions=3)
    sizes = replace(sizes, experts=2, expert_ffn=4, shared_ffn=6, q_lora=3, kv_lora=5, rope_dim=2, value_dim=3)
    for row in family.rows:  # type: ignore[attr-defined]
        whole = sizes.shape(row.dimensions)
        pieces = row.transform.pieces(whole, sizes)
        for number, shape in enumerate(row.transform.shapes(whole, sizes)):
            back = [
                Copy("", each.box, "", each.source_box, each.transposed) for each in pieces if each.source == number
            ]
            assert not uncovered(TensorSpec(row.target, "BF16", shape), back), row.target


@pytest.mark.parametrize("family", EVERY, ids=NAMES)
def test_conditions_are_kinds_of_layers_or_arguments_that_are_set(family: object) -> None:
    known = {"dense", "moe", *UNUSED, *family.fixed, *dict(family.keys), "untie_embeddings_and_output_weights"}  # type: ignore[attr-defined]
    for row in family.rows:  # type: ignore[attr-defined]
        for condition in row.when.split():
            assert condition.removeprefix("not:") in known, row.target


@pytest.mark.parametrize("family", EVERY, ids=NAMES)
def test_keys_are_those_of_the_class(family: object) -> None:
    """A key that transformers' class does not have would be a default forever."""
    for kind in family.model_types:  # type: ignore[attr-defined]
        cls = class_table().of_type(kind)
        assert cls is not None
        for _, key in family.keys:  # type: ignore[attr-defined]
            if key != "head_dim":  # not declared by all, and looked for by their layers
                assert cls.names.get(key, key) in cls.fields, (kind, key)


def test_no_model_type_belongs_to_two() -> None:
    kinds = [kind for family in EVERY for kind in family.model_types]
    assert len(kinds) == len(set(kinds)) >= 14


def test_parts_of_composite_models_are_told() -> None:
    with pytest.raises(UsageError, match="'gemma3' joins a language model with others"):
        family_of({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text"}})


def test_patterns_of_dropped_tensors_match_their_layers_alone() -> None:
    drops = {drop.pattern: drop.expression for family in EVERY for drop in family.drops}
    mask = drops["transformer.h.{n}.attn.bias"]
    assert mask.match("transformer.h.11.attn.bias")
    assert not re.match(mask, "transformer.h.11.attn.c_attn.bias")
    assert drops["*rotary_emb.inv_freq"].match("model.layers.0.self_attn.rotary_emb.inv_freq")
