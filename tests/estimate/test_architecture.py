"""Parameters, tensors and caches that follow from a configuration alone."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hfbench.estimate.architecture import Architecture, architecture_of
from hfbench.estimate.family import families
from hfbench.models.config import read_config

Built = Callable[[dict[str, Any]], Architecture]
ConfigOf = Callable[..., dict[str, Any]]

PUBLISHED = {
    "llama": (8_030_261_248, 291),
    "smollm2": (134_515_008, 272),
    "deepseek_v3": (671_026_404_352, 967),
    "gpt_oss": (20_914_757_184, 411),
    "gemma3": (27_009_346_304, 808),
    "qwen3_next": (79_674_391_296, 759),
}

HOSTILE = [
    None, 0, -1, 1, 7, 2**41, 2**70, 99_999, 3.5, 1e308, float("nan"), float("inf"), True, False,
    "", "x", "full_attention", [], [1], ["a"], [None], [{}], [[1]], [0, 0, 0], {}, {"a": 1},
]  # fmt: skip


@pytest.mark.parametrize(("name", "counted"), PUBLISHED.items(), ids=PUBLISHED)
def test_counts_are_those_of_the_published_models(
    built: Built, config_of: ConfigOf, name: str, counted: tuple[int, int]
) -> None:
    found = built(config_of(name))
    assert (found.parameters, found.tensors) == counted
    assert found.not_known == ()


def test_a_dense_layer_is_counted_by_hand(built: Built, config_of: ConfigOf) -> None:
    tiny = {"hidden_size": 8, "intermediate_size": 12, "num_attention_heads": 4, "num_key_value_heads": 2}
    config = config_of("llama", **tiny, num_hidden_layers=1, vocab_size=10)
    attention = 8 * 8 + 4 * 8 + 4 * 8 + 8 * 8
    assert built(config).parameters == 2 * 10 * 8 + attention + 3 * 8 * 12 + 3 * 8


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"tie_word_embeddings": True}, -128256 * 4096),
        ({"attention_bias": True}, 32 * (4096 + 1024 + 1024 + 4096)),
        ({"mlp_bias": True}, 32 * (14336 + 14336 + 4096)),
        ({"head_dim": 64}, -32 * 4096 * (2048 + 512 + 512 + 2048)),
        ({"num_key_value_heads": None}, 32 * 2 * 3072 * 4096),
        ({"architectures": ["LlamaModel"]}, -128256 * 4096),
        ({"architectures": ["LlamaForSequenceClassification"], "id2label": {"0": "a"}}, 4096 - 128256 * 4096),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)  # fmt: skip
def test_a_key_changes_the_count_by_its_own_tensors(
    built: Built, config_of: ConfigOf, changes: dict[str, Any], more: int
) -> None:
    assert built(config_of("llama", **changes)).parameters == 8_030_261_248 + more


def test_a_key_that_is_left_out_has_the_default_of_its_class(built: Built) -> None:
    mixtral = {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"]}
    assert built(mixtral).parameters == 46_702_792_704


def test_an_unknown_model_type_is_named_and_not_guessed(built: Built, config_of: ConfigOf) -> None:
    found = built(config_of("llama", model_type="brand_new"))
    assert found.parameters is None
    assert found.not_known == ("parameters: not known for model_type 'brand_new'",)
    assert found.caches is not None
    assert len(found.caches) == 32
    assert "counted from its heads" in found.guesses[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"num_kv_shared_layers": 4},
        {"global_head_dim": 512},
        {"layer_types": ["full_attention", "mamba"] * 16},
        {"layer_types": ["hybrid"] * 32},
        {"layers_block_type": ["attention", "moe"] * 16},
        {"linear_attn_config": {"full_attn_layers": [1]}},
        {"mamba_d_state": 16},
        {"is_encoder_decoder": True},
    ],
    ids=lambda value: next(iter(value)),
)
def test_uneven_layers_of_an_unknown_model_give_no_cache(built: Built, config_of: ConfigOf, changes: Any) -> None:
    found = built(config_of("llama", model_type="brand_new", **changes))
    assert found.caches is None
    assert any(reason.startswith("KV cache: ") for reason in found.not_known)


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("bamba", "some layers keep a state"),
        ("longcat_flash", "zero_expert_num changes what layers keep"),
        ("bart", "a decoder also keeps what its encoder gave"),
    ],
)
def test_what_its_class_declares_tells_that_layers_keep_more(built: Built, kind: str, reason: str) -> None:
    found = built({"model_type": kind, "num_hidden_layers": 4, "num_attention_heads": 4, "hidden_size": 64})
    assert found.caches is None
    assert any(each.startswith(f"KV cache: {reason}") for each in found.not_known)


def test_a_window_without_its_layers_is_told_beside_the_figure(built: Built, config_of: ConfigOf) -> None:
    found = built(config_of("llama", model_type="brand_new", sliding_window=512))
    assert found.caches
    assert not any(cache.window for cache in found.caches)
    assert found.guesses[0].endswith("and every layer as full, for the layers of its window are not listed")


def test_an_unknown_wrapper_of_a_known_language_model_still_has_its_cache(built: Built, config_of: ConfigOf) -> None:
    found = built({"model_type": "sees_and_hears", "llm_config": config_of("deepseek_v3")})
    assert found.parameters is None
    assert found.caches is not None
    assert {cache.kind for cache in found.caches} == {"latent_attention"}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"hidden_size": "4096"}, "hidden_size is '4096', an integer is needed"),
        ({"num_hidden_layers": -2}, "num_hidden_layers is out of range"),
        ({"num_hidden_layers": 10**9}, "1000000000 layers is out of range"),
        ({"intermediate_size": 2**50}, "intermediate_size is out of range"),
        ({"vocab_size": 0}, "vocab_size is 0"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_damaged_size_is_told_instead_of_counted(
    built: Built, config_of: ConfigOf, changes: Any, reason: str
) -> None:
    found = built(config_of("llama", **changes))
    assert found.parameters is None
    assert any(reason in each for each in found.not_known)


def test_no_configuration_means_no_figure_for_the_cache(tmp_path: Path) -> None:
    assert architecture_of(read_config(tmp_path)).not_known == ("no configuration, so no figure for the KV cache",)


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False))
def test_no_configuration_makes_it_fail_or_hang(chance: random.Random) -> None:
    """Values of any type in any place: what cannot be counted is told, never raised."""
    config = _mutated(chance)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(config))
        found = architecture_of(read_config(Path(folder)))
    assert found.parameters is None or found.parameters >= 0
    assert found.parts is not None or found.not_known


def _mutated(chance: random.Random) -> dict[str, Any]:
    """A configuration of any family with its class's sizes, some of them replaced."""
    from hfbench.estimate.settings import class_table

    table = class_table()
    kind = chance.choice(sorted(families()))
    config = {"model_type": kind, "architectures": [chance.choice(["XForCausalLM", "XModel", "X"])]}
    holders = [(config, table.of_type(kind))]
    for place, cls in holders:
        place |= cls.fields if cls else {}
        for name, told in cls.parts.items() if cls else ():
            place[name] = {}
            holders.append((place[name], table.of_part(told, {})))
    for _ in range(chance.randint(1, 4)):
        place = config
        while nested_names := [name for name, value in place.items() if isinstance(value, dict)]:
            if chance.random() < 0.4:
                break
            place = place[chance.choice(nested_names)]
        place[chance.choice([*sorted(place), "layer_types"])] = deepcopy(chance.choice(HOSTILE))
    return config
