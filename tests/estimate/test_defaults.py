"""What configuration classes declare, against the classes themselves."""

from __future__ import annotations

from typing import Any

import pytest

from hfbench.estimate.absent import ABSENT
from hfbench.estimate.family import families
from hfbench.estimate.settings import HEAD_DIM_BESIDE, Settings, class_table

NOT_IN_TRANSFORMERS = {"baichuan", "chatglm", "internlm2", "kimi_k2", "kimi_k3", "mimo", "minicpm", "qwen"}


def test_every_family_of_transformers_has_its_class() -> None:
    assert {kind for kind in families() if class_table().of_type(kind) is None} == NOT_IN_TRANSFORMERS


def test_a_name_is_read_as_the_class_reads_it() -> None:
    assert Settings({"model_type": "gpt2", "num_hidden_layers": 3}).layers == 3
    assert Settings({"model_type": "gpt2", "n_layer": 3}).layers == 3
    assert Settings({"model_type": "gpt2"}).layers == 12
    assert Settings({"model_type": "llama", "n_layer": 3}).layers == 32
    assert Settings({"model_type": "not_in_transformers", "n_layer": 3}).layers == 3


def test_a_width_of_experts_that_is_left_out_is_not_that_of_the_dense_layers() -> None:
    assert Settings({"model_type": "deepseek_v3", "intermediate_size": 1}).size(
        "moe_intermediate_size", "intermediate_size"
    ) == 2048  # fmt: skip


def test_heads_that_the_class_does_not_read_count_nothing() -> None:
    gpt2 = Settings({"model_type": "gpt2", "head_dim": 7, "num_key_value_heads": 1})
    assert (gpt2.head_dim, gpt2.kv_heads) == (64, 12)
    assert Settings({"model_type": "qwen2", "head_dim": 7}).head_dim == 7
    assert Settings({"model_type": "not_in_transformers", "head_dim": 7}).head_dim == 7


def test_a_nested_object_is_read_by_its_own_class() -> None:
    llava = Settings({"model_type": "llava", "text_config": {"model_type": "qwen2", "vocab_size": 7}})
    text = llava.section("text_config")
    assert (text.kind, text.vocab, text.layers) == ("qwen2", 7, 32)
    assert llava.section("vision_config").size("image_size") == 336
    assert Settings({"model_type": "llava", "text_config": {}}).section("text_config").kind == "llama"


def test_what_the_file_leaves_to_its_class_is_told() -> None:
    told = Settings({"model_type": "llama", "hidden_size": 64}).assumed("layers", "hidden", "vocab")
    assert told == ("num_hidden_layers", "vocab_size")
    assert Settings({"model_type": "not_in_transformers"}).assumed("layers") == ()


@pytest.fixture
def transformers() -> Any:
    """The package, when it is the one that the table was read from."""
    found = pytest.importorskip("transformers")
    if class_table().title != f"transformers {found.__version__}":
        pytest.skip(f"the table is of {class_table().title}")
    return found


@pytest.mark.slow
def test_fields_are_those_of_the_classes(transformers: Any) -> None:
    wrong = {}
    for kind in set(families()) - NOT_IN_TRANSFORMERS:
        told, cls = class_table().of_type(kind), transformers.CONFIG_MAPPING[kind]
        assert told is not None
        for field in cls.__dataclass_fields__.values():
            name = told.names.get(field.name, field.name)
            if (
                name in told.fields
                and isinstance(field.default, (int, float, str))
                and told.fields[name] != field.default
            ):
                wrong[f"{kind}.{name}"] = (told.fields[name], field.default)
    assert wrong == {}


@pytest.mark.slow
def test_nested_objects_that_are_absent_are_those_of_the_classes(transformers: Any) -> None:
    for (kind, part), told in ABSENT.items():
        real = getattr(transformers.CONFIG_MAPPING[kind](), part)
        assert {name: getattr(real, name) for name in told} == dict(told)
    for kind in set(families()) - NOT_IN_TRANSFORMERS:
        for part, spec in transformers.CONFIG_MAPPING[kind].sub_configs_defaults.items():
            sizes = {name for name, value in spec.init_kwargs.items() if type(value) is int} - {
                "vocab_size",
                "projection_dim",
            }
            assert sizes <= set(ABSENT.get((kind, part), {})), (kind, part)


@pytest.mark.slow
def test_layers_look_for_undeclared_head_sizes_only_where_it_is_said(transformers: Any) -> None:
    for kind in HEAD_DIM_BESIDE & set(families()):
        assert "head_dim" not in transformers.CONFIG_MAPPING[kind].__dataclass_fields__
