"""Finds every declared action: no list to edit when one is added."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

from hfbench.actions.base import Spec
from hfbench.actions.index import ACTIONS_PATH, declared_actions
from hfbench.errors import UsageError
from hfbench.text import did_you_mean


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


class BrokenFile(UsageError):
    """A file of the user's action folders that cannot be loaded; everything else still works."""


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """The actions by name, and the user's files that could not be loaded."""

    actions: dict[str, Spec]
    broken: tuple[BrokenFile, ...] = ()


class ByName(Mapping[str, Spec]):
    """All actions, each loaded when it is looked up."""

    def __getitem__(self, name: str) -> Spec:
        if spec := look_up(name):
            return spec
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*_modules(), *users_own().actions}))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def declared_in(module: ModuleType) -> list[Spec]:
    """The actions a module declares itself, not those it imports."""
    specs = [getattr(value, "spec", None) for value in vars(module).values() if isinstance(value, type)]
    return [spec for spec in specs if isinstance(spec, Spec) and spec.cls.__module__ == module.__name__]


def discover(package: ModuleType) -> dict[str, Spec]:
    """Every action declared in a package, by dotted name; DuplicateAction names both files."""
    found: dict[str, Spec] = {}
    for module in sorted(iter_modules(package.__path__), key=lambda each: each.name):
        _add(found, declared_in(import_module(f"{package.__name__}.{module.name}")))
    return dict(sorted(found.items()))


def catalogue() -> Catalogue:
    """All actions of this installation and of the user's folders; a broken file of the user's is told, not fatal."""
    return _load(os.environ.get(ACTIONS_PATH, ""))


def users_own() -> Catalogue:
    """The actions of the user's folders alone, none of hfbench's own loaded; DuplicateAction when one has its name."""
    return _load_own(os.environ.get(ACTIONS_PATH, ""))


def actions() -> dict[str, Spec]:
    """All actions of this installation, the user's own folders included, by name."""
    return catalogue().actions


def look_up(name: str) -> Spec | None:
    """The action of that name, if there is one; of hfbench's own files it loads the one that declares it."""
    if name in (own := users_own().actions):
        return own[name]
    if (module := _modules().get(name)) is None:
        return None
    return next(spec for spec in declared_in(import_module(f"hfbench.actions.{module}")) if spec.name == name)


def find(name: str) -> Spec:
    """The action of that name; UnknownAction offers the nearest, BrokenFile tells why it may be missing."""
    if spec := look_up(name):
        return spec
    known = catalogue()
    if known.broken and not did_you_mean(name, known.actions):
        raise known.broken[0]
    raise UnknownAction(name, known.actions)


@lru_cache(maxsize=8)
def _load(folders: str) -> Catalogue:
    import hfbench.actions as package

    own = _load_own(folders)
    return Catalogue(actions=dict(sorted((discover(package) | own.actions).items())), broken=own.broken)


@lru_cache(maxsize=8)
def _load_own(folders: str) -> Catalogue:
    found, broken = dict[str, Spec](), list[BrokenFile]()
    for folder in filter(None, folders.split(os.pathsep)):
        broken += _add_folder(found, Path(folder))
    for name in found.keys() & _modules().keys():
        raise DuplicateAction(name, Path(__file__).with_name(f"{_modules()[name]}.py"), found[name].file)
    return Catalogue(actions=found, broken=tuple(broken))


@cache
def _modules() -> dict[str, str]:
    """The module of each action of hfbench's own."""
    return {entry.name: entry.module for entry in declared_actions()}


def _add_folder(found: dict[str, Spec], folder: Path) -> list[BrokenFile]:
    """Add the actions of a folder's files, each a module of a package made for the folder; what cannot be loaded."""
    if not folder.is_dir():
        return [BrokenFile("is not a folder", where=folder, remedy=f"mend {ACTIONS_PATH}")]
    package = _package_of(folder)
    broken = []
    for module in sorted(iter_modules([str(folder)]), key=lambda each: each.name):
        file = folder / f"{module.name}.py"
        try:
            specs = declared_in(import_module(f"{package}.{module.name}"))
        except (Exception, SystemExit) as error:  # anything may happen in a file that is not ours
            broken.append(BrokenFile(f"cannot be loaded: {_told(error)}", where=file, remedy="mend or remove the file"))
        else:
            _add(found, specs)
    return broken


def _package_of(folder: Path) -> str:
    """The name of the package that stands for a folder, so that its files never hide modules of hfbench."""
    name = f"hfbench_actions_{os.fsencode(folder.absolute()).hex()}"
    if name not in sys.modules:
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    return name


def _add(found: dict[str, Spec], specs: list[Spec]) -> None:
    for spec in specs:
        if other := found.get(spec.name):
            raise DuplicateAction(spec.name, other.file, spec.file)
        found[spec.name] = spec


def _told(error: BaseException) -> str:
    """An error of somebody's file on one line, with the line number where there is one."""
    first = (str(error).strip() or "no message").splitlines()[0]
    return f"{type(error).__name__}: {first}"


__all__ = [
    "ACTIONS_PATH",
    "BrokenFile",
    "ByName",
    "Catalogue",
    "DuplicateAction",
    "UnknownAction",
    "actions",
    "catalogue",
    "find",
    "look_up",
    "users_own",
]
