"""What a model may say of its plan: a template and flags, never a program, a path or anything that expands."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_model import config, make, put

from hfbench.engines.runtimes.subject import read_served
from hfbench.engines.trtllm.metadata import Named, read_metadata
from hfbench.errors import UsageError


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A small llama."""
    return make(tmp_path / "model")


def named(model: Path) -> Named:
    """What the model says."""
    return read_metadata(read_served(str(model)).subject)


def test_a_model_that_says_nothing_names_nothing(model: Path) -> None:
    assert named(model) == Named()
    put("README.md", "---\nlicense: mit\n---\ntrtllm_config: fp8\n")(model)
    assert named(model) == Named()


def test_the_configuration_comes_before_the_card(model: Path) -> None:
    put("README.md", "---\ntrtllm_config: fp8\n---\n")(model)
    assert named(model) == Named(template="fp8", source="README.md: trtllm_config")
    config(trtllm_config={"template": "dense-bf16", "build": {"fast_build": True, "max_num_tokens": 64}})(model)
    found = named(model)
    assert found.template == "dense-bf16"
    assert found.settings == {"fast_build": "true", "max_num_tokens": "64"}


@pytest.mark.parametrize(
    "wish",
    [
        5,
        ["fp8"],
        "../../etc/passwd",
        "/tmp/x.toml",
        {"template": 5},
        {"templates": "fp8"},
        {"build": {"model_cls_file": "evil.py"}},
        {"build": {"input_timing_cache": "/etc/shadow"}},
        {"build": {"--lora-dir": "/"}},
        {"build": {"max_batch_size": 5}},
        {"build": {"gemm_plugin": {"a": 1}}},
        {"build": [1]},
    ],
)
def test_what_would_read_or_run_something_else_is_refused(model: Path, wish: object) -> None:
    config(trtllm_config=wish)(model)
    with pytest.raises(UsageError, match=r"config.json: trtllm_config"):
        named(model)


@pytest.mark.parametrize(
    "front",
    [
        "a: &a [x, x]\nb: *a\ntrtllm_config: fp8",
        "trtllm_config: !!python/object/apply:os.system [echo]",
        "trtllm_config: [",
    ],
)
def test_a_card_that_expands_or_constructs_is_refused(model: Path, front: str) -> None:
    put("README.md", f"---\n{front}\n---\n")(model)
    with pytest.raises(UsageError, match=r"README.md"):
        named(model)
