"""The table of configuration classes, read from source, and what filling up says against the classes themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hfbench.models import runtimes
from hfbench.models.explain import classes
from hfbench.models.explain.classes import InstalledTable, ShippedTable, class_table
from hfbench.models.explain.filling import Filled, Replaced, fill
from hfbench.models.explain.rows import json_text
from hfbench.models.explain.scan import scan_defaults

SOURCE = {
    "configuration_utils.py": """
class PreTrainedConfig(Base):
    architectures: list = None
    return_dict: bool = True
    def __post_init__(self, **kwargs):
        self.anything = 1
class Other:
    x: int = 1
""",
    "generation/configuration_utils.py": """
class GenerationConfig:
    @staticmethod
    def _get_default_generation_params():
        return {"top_k": 50, "do_sample": False}
""",
    "models/toy/configuration_toy.py": """
class ToyConfig(PreTrainedConfig):
    model_type = "toy"
    attribute_map = {"hidden_size": "width"}
    sub_configs_defaults = {"text_config": AutoConfig, "eye": SubConfigSpec(config_class=EyeConfig)}
    kinds: ClassVar[list] = []
    width: int = 4 * 8
    ratio: float = interval(min=0.0)(default=0.5)
    names: list = field(default_factory=lambda: ["a"])
    odd: int = compute()
    depth: int | None = None
    text_config: dict | None = None
    eye: dict | None = None
    def __post_init__(self, **kwargs):
        if self.depth is None:
            self.depth = self.width // 2
        super().__post_init__(**kwargs)
class EyeConfig(PreTrainedConfig):
    side: int = 7
class NarrowToyConfig(ToyConfig):
    width: int = 16
""",
    "models/auto/configuration_auto.py": "CONFIG_MAPPING_NAMES = {'toy': 'ToyConfig', 'narrow': 'NarrowToyConfig'}\n",
}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder laid out as the transformers package."""
    for name, text in SOURCE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def toy(package: Path) -> InstalledTable:
    names = runtimes.Names(
        runtime="transformers",
        version="9.9.9",
        read="today",
        config_classes={"toy": "ToyConfig", "narrow": "NarrowToyConfig", "eye": "EyeConfig"},
    )
    return InstalledTable(names, package)


def test_a_class_is_read_from_source_with_what_it_takes_over(package: Path) -> None:
    table = toy(package)
    kind = table.of_type("narrow")
    assert kind is not None
    assert kind.fields == {
        "width": 16,
        "ratio": 0.5,
        "names": ["a"],
        "odd": None,
        "depth": None,
        "text_config": None,
        "eye": None,
        "return_dict": True,
    }
    assert (kind.unspelled, kind.names, kind.parts) == (
        frozenset({"odd"}),
        {"hidden_size": "width"},
        {"text_config": "auto:", "eye": "EyeConfig"},
    )
    assert table.generation == {"top_k": 50, "do_sample": False}


def test_a_class_from_source_fills_up_like_any_other(package: Path) -> None:
    table = toy(package)
    kind = table.of_type("toy")
    assert kind is not None
    made = {each.path: each for each in fill({"hidden_size": 10, "text_config": {"model_type": "eye"}}, kind, table)}
    assert ("width",) not in made
    assert made["depth",] == Filled(("depth",), 5, "ToyConfig", "width // 2")
    assert made["odd",] == Filled(("odd",), None, "ToyConfig", known=False)
    assert made["text_config", "side"] == Filled(("text_config", "side"), 7, "EyeConfig")
    assert made["eye",] == Filled(("eye",), {}, "ToyConfig", "every default of EyeConfig")
    assert made["return_dict",].owner == "PreTrainedConfig"


def test_an_installed_package_of_another_version_is_read_in_place_of_the_table(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = runtimes.Names(runtime="transformers", version="9.9.9", read="today", config_classes={"toy": "ToyConfig"})
    monkeypatch.setattr(classes, "known", lambda runtime: other)
    monkeypatch.setattr(classes, "installed_root", lambda runtime: package)
    class_table.cache_clear()
    try:
        table = class_table()
        assert (table.title, table.of_type("toy") is not None) == ("transformers 9.9.9", True)
        (package / "configuration_utils.py").write_text("def broken(")
        class_table.cache_clear()
        assert isinstance(class_table(), ShippedTable)
        assert class_table().title != "transformers 9.9.9"
    finally:
        class_table.cache_clear()


def test_the_shipped_table_holds_every_class_it_names() -> None:
    table = ShippedTable(runtimes.shipped("transformers"))
    missing = {name for name in table.names.config_classes.values() if table.find(name) is None}
    assert len(missing) < 10, sorted(missing)
    assert table.find("NoSuchConfig") is None


@pytest.mark.slow
def test_the_shipped_table_is_what_the_installed_source_says() -> None:
    root = runtimes.installed_root("transformers")
    table = ShippedTable(runtimes.shipped("transformers"))
    if root is None or class_table().title != table.title:
        pytest.skip("another transformers is installed, or none")
    fresh = scan_defaults(root)
    assert fresh["generation"] == table.generation
    assert all(json.loads(json.dumps(each)) == table.told(name) for name, each in fresh["classes"].items())


TRUTH = """
import json, sys, warnings
warnings.filterwarnings("ignore")
from transformers import AutoConfig, logging
from hfbench.models.explain.classes import class_table
from hfbench.models.explain.filling import Filled, fill
logging.set_verbosity(100)
table, wrong, checked = class_table(), {}, 0

def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return str(value).removeprefix("torch.") if type(value).__module__ == "torch" else value

for model_type in table.names.config_classes:
    kind = table.of_type(model_type)
    try:
        config = AutoConfig.for_model(model_type)
    except Exception:
        continue
    for each in fill({}, kind, table) if kind else ():
        if not each.known or each.how.startswith("every default"):
            continue
        found = config
        for part in each.path:
            found = found[part] if isinstance(found, dict) else getattr(found, part)
        checked += 1
        if plain(found) != each.value:
            wrong[f"{kind.name}: {'.'.join(each.path)}"] = [repr(each.value), repr(found)]
print(json.dumps({"checked": checked, "wrong": wrong}))
"""


@pytest.mark.slow
def test_what_is_filled_in_is_what_every_class_of_transformers_says_itself() -> None:
    pytest.importorskip("transformers")
    if not isinstance(class_table(), ShippedTable) or not runtimes.known("transformers").installed:
        pytest.skip("the table is of another version")
    done = subprocess.run([sys.executable, "-c", TRUTH], capture_output=True, text=True, timeout=280, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["wrong"] == {}
    assert found["checked"] > 10_000


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(["llama", "qwen2", "gpt2", "deepseek_v3", "gemma3_text", "nemotron_h", "llava", "t5", "gpt_oss"]),
    st.dictionaries(
        st.sampled_from(["hidden_size", "num_hidden_layers", "sliding_window", "rope_scaling", "rope_parameters",
                         "layer_types", "text_config", "head_dim", "rope_theta", "num_attention_heads"]),
        st.none() | st.integers() | st.floats() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)
        | st.dictionaries(st.sampled_from(["type", "rope_type", "factor", "full_attention"]), st.none() | st.integers()
                          | st.dictionaries(st.text(max_size=2), st.integers(), max_size=2), max_size=3),
        max_size=6,
    ),
)  # fmt: skip
def test_values_of_any_type_are_filled_up_without_trouble(model_type: str, config: dict[str, Any]) -> None:
    table = class_table()
    kind = table.of_type(model_type)
    assert kind is not None
    for each in fill(config, kind, table):
        assert isinstance(each, (Filled, Replaced))
        json_text(each.value)
