"""The defaults of configuration classes, against the classes they were read from."""

from __future__ import annotations

import tomllib
from importlib.resources import files

import pytest

from hfbench.estimate.family import families
from hfbench.estimate.settings import class_defaults

NOT_IN_TRANSFORMERS = {"baichuan", "chatglm", "internlm2", "kimi_k2", "kimi_k3", "mimo", "minicpm", "qwen"}

SWITCHED_OFF = {"sliding_window"}
"""Set to nothing by classes in which another setting switches it on."""
PER_LAYER = "gemma4"
"""Its class refuses to tell sizes that differ between layers."""


def test_every_family_of_transformers_has_defaults() -> None:
    roots = {name.partition(".")[0] for name in class_defaults()}
    assert set(families()) - roots <= NOT_IN_TRANSFORMERS


@pytest.mark.slow
def test_defaults_are_those_of_the_classes() -> None:
    transformers = pytest.importorskip("transformers")
    read = tomllib.loads((files("hfbench.estimate") / "defaults.toml").read_text("utf-8"))
    if read["version"] != f"transformers {transformers.__version__}":
        pytest.skip(f"the table is of {read['version']}")
    wrong = {}
    for kind, values in class_defaults().items():
        if "." in kind:
            continue
        config = transformers.AutoConfig.for_model(kind)
        for name, value in values.items():
            if name in SWITCHED_OFF or kind.startswith(PER_LAYER):
                continue
            found = getattr(config, name, value)
            if (list(found) if isinstance(found, tuple) else found) != value:
                wrong[f"{kind}.{name}"] = (value, found)
    assert wrong == {}
