"""Finds every declared action: no list to edit when one is added."""

from __future__ import annotations

import os
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

from hfbench.actions.base import Spec
from hfbench.errors import UsageError
from hfbench.text import did_you_mean

ACTIONS_PATH = "HFBENCH_ACTIONS"
"""Environment variable: further folders with action files, separated by `:`."""


class DuplicateAction(UsageError):
    """Two files declare one name."""

    def __init__(self, name: str, first: Path, second: Path) -> None:
        super().__init__(f"the action {name!r} is declared twice, in {first} and in {second}", remedy="rename one")


class UnknownAction(UsageError):
    """No action has that name."""

    def __init__(self, name: str, known: dict[str, Spec]) -> None:
        super().__init__(
            f"unknown action {name!r}", remedy=did_you_mean(name, known) or f"known: {', '.join(sorted(known))}"
        )


def declared_in(module: ModuleType) -> list[Spec]:
    """The actions a module declares itself, not those it imports."""
    specs = [getattr(value, "spec", None) for value in vars(module).values() if isinstance(value, type)]
    return [spec for spec in specs if isinstance(spec, Spec) and spec.cls.__module__ == module.__name__]


def discover(package: ModuleType) -> dict[str, Spec]:
    """Every action declared in a package, by dotted name; DuplicateAction names both files."""
    found: dict[str, Spec] = {}
    for module in sorted(iter_modules(package.__path__), key=lambda each: each.name):
        for spec in declared_in(import_module(f"{package.__name__}.{module.name}")):
            if other := found.get(spec.name):
                raise DuplicateAction(spec.name, other.file, spec.file)
            found[spec.name] = spec
    return dict(sorted(found.items()))


@lru_cache(maxsize=1)
def actions() -> dict[str, Spec]:
    """All actions of this installation, the user's own folders included, by name."""
    import hfbench.actions as package

    for folder in filter(None, os.environ.get(ACTIONS_PATH, "").split(os.pathsep)):
        if folder not in package.__path__:
            package.__path__.append(folder)
    return discover(package)


def find(name: str) -> Spec:
    """The action of that name; UnknownAction offers the nearest."""
    known = actions()
    if name not in known:
        raise UnknownAction(name, known)
    return known[name]
