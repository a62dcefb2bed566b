"""Names of runtimes: read out of source without importing it, shipped with their versions."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from hfbench.models import runtimes
from hfbench.models.runtime_scan import scan_transformers, scan_vllm, shipped_tables
from hfbench.models.runtimes import RUNTIMES, known, rules, shipped
from hfbench.models.source_tables import tables_in

TABLES = """
import os
FIRST = OrderedDict([("a", "A"), ("b", ("B1", "B2"))])
FIRST.update({"c": "C" if have() else None})
SECOND = OrderedDict(**{"d": "D"}, **FIRST)
THIRD: dict[str, str] = Lazy(e="E", **{"f-g": "F"})
FOURTH = {**THIRD, **{k: v for k, v in FIRST.items()}}
NAMES = {"z", "y"}
HIDDEN = os.system("false")
NUMBER = -1.5
"""


def test_tables_are_read_and_what_is_no_table_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text(TABLES)
    found = tables_in(path, ["FIRST", "SECOND", "THIRD", "FOURTH", "NAMES", "HIDDEN", "NUMBER", "NOWHERE"])
    assert found == {
        "FIRST": {"a": "A", "b": ["B1", "B2"], "c": "C"},
        "SECOND": {"d": "D", "a": "A", "b": ["B1", "B2"], "c": "C"},
        "THIRD": {"e": "E", "f-g": "F"},
        "FOURTH": {"e": "E", "f-g": "F"},
        "NAMES": ["y", "z"],
        "NUMBER": -1.5,
    }


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_every_runtime_is_shipped_with_its_version_and_day(runtime: runtimes.Runtime) -> None:
    names = shipped(runtime)
    assert names.version
    assert names.read >= "2026-11-30"
    assert "LlamaForCausalLM" in names.architectures


@pytest.mark.parametrize("name", ["rope", "quantization", "dtypes", "context"])
def test_rules_kept_as_data_tell_their_version_and_day(name: str) -> None:
    assert rules(name)["version"]
    assert rules(name)["read"]


def test_every_rope_type_with_required_keys_is_a_known_one() -> None:
    rope = rules("rope")
    assert set(rope["required"]) == set(rope["types"]["transformers"])


def test_names_of_the_installed_transformers_equal_those_shipped() -> None:
    spec = find_spec("transformers")
    if spec is None or spec.origin is None or version("transformers") != shipped("transformers").version:
        pytest.skip("another transformers is installed")
    told = json.loads((runtimes.DATA / "transformers.json").read_text())
    fresh = shipped_tables("transformers", Path(spec.origin).parent)
    assert fresh == {key: value for key, value in told.items() if key in fresh}, (
        "run: python -m hfbench.models.runtime_scan transformers FOLDER VERSION DATE"
    )


def test_the_refresh_imports_neither_transformers_nor_torch() -> None:
    before = set(sys.modules)
    known.cache_clear()
    known("transformers")
    assert not {"transformers", "torch", "vllm"} & (set(sys.modules) - before)


def package(root: Path, model_type: str) -> Path:
    """A transformers of another version, as far as the reader looks at it."""
    auto = root / "transformers" / "models" / "auto"
    auto.mkdir(parents=True)
    (root / "transformers" / "__init__.py").write_text("raise SystemExit('imported')\n")
    (auto / "configuration_auto.py").write_text(f"CONFIG_MAPPING_NAMES = {{'{model_type}': 'NewConfig'}}\n")
    (auto / "modeling_auto.py").write_text(
        f"MODEL_MAPPING_NAMES = {{'{model_type}': ('NewModel', 'X')}}\n"
        f"MODEL_FOR_CAUSAL_LM_MAPPING_NAMES = OrderedDict([('{model_type}', 'NewForCausalLM')])\n"
    )
    (auto / "tokenization_auto.py").write_text("TOKENIZER_MAPPING_NAMES = {}\n")
    dist = root / "transformers-9.9.9.dist-info"
    dist.mkdir()
    (dist / "METADATA").write_text("Metadata-Version: 2.1\nName: transformers\nVersion: 9.9.9\n")
    return root / "transformers"


def test_a_package_of_another_version_gives_its_own_names(tmp_path: Path) -> None:
    found = scan_transformers(package(tmp_path, "brandnew"))
    assert found["config_classes"] == {"brandnew": "NewConfig"}
    assert found["base_models"] == {"brandnew": "NewModel"}
    assert found["task_models"] == {"brandnew": "NewForCausalLM"}
    assert set(found["architectures"]) == {"NewModel", "X", "NewForCausalLM"}


def test_an_installed_package_of_another_version_is_read_in_place_of_what_is_shipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = package(tmp_path, "brandnew")
    monkeypatch.setattr(runtimes, "_installed", lambda runtime: (root, "9.9.9"))
    known.cache_clear()
    try:
        names = known("transformers")
    finally:
        known.cache_clear()
    assert (names.version, names.read, names.installed) == ("9.9.9", "today", True)
    assert names.config_classes == {"brandnew": "NewConfig"}


def test_a_package_that_cannot_be_read_keeps_the_shipped_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtimes, "_installed", lambda runtime: (tmp_path, "9.9.9"))
    known.cache_clear()
    try:
        assert known("vllm") == replace(shipped("vllm"), unread="9.9.9")
    finally:
        known.cache_clear()


def test_vllms_registry_is_read(tmp_path: Path) -> None:
    for folder in ("transformers_utils", "model_executor/models", "tokenizers", "config"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "transformers_utils/config.py").write_text(
        "_CONFIG_REGISTRY: dict = LazyConfigDict(kimi='KimiConfig')\n"
    )
    (tmp_path / "model_executor/models/registry.py").write_text(
        "_TEXT = {'AForCausalLM': ('a', 'B')}\n"
        "_VLLM_MODELS = {**_TEXT}\n"
        "_PREVIOUSLY_SUPPORTED_MODELS = {'Old': '0.9'}\n"
    )
    (tmp_path / "tokenizers/registry.py").write_text("")
    (tmp_path / "config/model.py").write_text("")
    found = scan_vllm(tmp_path)
    assert found["config_classes"] == {"kimi": "KimiConfig"}
    assert found["architectures"] == {"AForCausalLM": "B"}
    assert found["previous"] == {"Old": "0.9"}
