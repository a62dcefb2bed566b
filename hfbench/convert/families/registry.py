"""Finds every family in this folder: no list to edit when one is added."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from hfbench.convert.families.table import Family
from hfbench.errors import UsageError
from hfbench.models.problem import quoted

PARTS = ("text_config", "llm_config", "language_config", "thinker_config")
"""Where configurations of composite models keep that of their language model."""


@lru_cache(maxsize=1)
def families() -> dict[str, Family]:
    """All families by name."""
    import hfbench.convert.families as package

    found: dict[str, Family] = {}
    for module in sorted(each.name for each in iter_modules(package.__path__)):
        for value in vars(import_module(f"{package.__name__}.{module}")).values():
            if isinstance(value, Family) and found.setdefault(value.name, value) is not value:
                raise ValueError(f"two families are called {value.name}")
    return found


def family_of(config: Mapping[str, Any]) -> Family:
    """The family of a configuration by its model_type; UsageError names those that are supported."""
    kind = config.get("model_type")
    by_type = {model_type: family for family in families().values() for model_type in family.model_types}
    if isinstance(kind, str) and kind in by_type:
        return by_type[kind]
    known = ", ".join(sorted(by_type))
    if config.get("auto_map"):
        told = f"the model type {quoted(kind)} runs code of its own, which is neither executed nor known"
        raise UsageError(told, remedy=f"supported are {known}")
    if any(isinstance(config.get(part), Mapping) for part in PARTS):
        told = f"the model type {quoted(kind)} joins a language model with others"
        raise UsageError(told, remedy="save its language model by itself; supported are " + known)
    if kind is None:
        raise UsageError("config.json gives no model_type", remedy=f"supported are {known}")
    raise UsageError(f"the model type {quoted(kind)} is none of those supported", remedy=f"they are {known}")
