"""Lists the models of this machine cheaply; what needs a file opened is found out entry by entry."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from hfbench.errors import HfbenchError
from hfbench.models.checkpoint import open_checkpoint
from hfbench.models.config import CONFIG, read_config
from hfbench.models.files import MEGATRON_TRACKER
from hfbench.models.problem import Problem, Severity, worst
from hfbench.models.reference import DEFAULT_REVISION, cache_folder, cached_revisions, commit_of
from hfbench.models.summary import share_by_dtype
from hfbench.paths import expand

State = Literal["", "ok", "!", "x"]

MOST_ENTRIES = 5_000
"""Models listed below one root."""

_STATES: dict[Severity | None, State] = {"error": "x", "warning": "!"}
_MARKS = frozenset({CONFIG, "params.json", "adapter_config.json", MEGATRON_TRACKER})
MEGATRON = "Megatron"
"""In the place of a type: which model a Megatron checkpoint holds is told by its pickled arguments."""

_WEIGHTS = (".safetensors", ".gguf")
ENGINE = "hfbench-engine.json"
"""The manifest of an engine, which may hold weights and is no model."""


@dataclass(frozen=True, kw_only=True)
class ModelEntry:
    """One model of a list. `type`, `parameters` and `state` are known once `describe` has looked."""

    name: str
    folder: Path
    source: Literal["local", "cache", "remote"]
    bytes: int
    """Sizes of the files at the top of the folder, links followed."""
    type: str | None = None
    parameters: int | None = None
    state: State = ""
    """ok, ! for a warning, x for an error, empty when not yet looked at."""
    problem: str = ""
    reference: str = ""
    """What to write to mean this model."""


def list_local(roots: Iterable[Path]) -> list[ModelEntry]:
    """Models at, in, or one level below (org/name) each root. Roots that do not exist hold none."""
    found: dict[Path, ModelEntry] = {}
    for root in roots:
        for entry in _below(expand(str(root))):
            found.setdefault(entry.folder, entry)
    return sorted(found.values(), key=lambda entry: entry.name.lower())


def list_cache(cache_dir: Path | None = None) -> list[ModelEntry]:
    """Model repositories of a Hugging Face cache, one entry each: main, else the first revision there."""
    cache = cache_dir or cache_folder()
    entries = [_cached(each) for each in _folders(cache) if each.name.startswith("models--")]
    return sorted(entries, key=lambda entry: entry.name.lower())


def describe(entry: ModelEntry) -> ModelEntry:
    """The entry with type, parameters and state, from the configuration and all headers of its folder."""
    if entry.state == "x":
        return entry
    if is_megatron(entry.folder):
        return replace(entry, type=MEGATRON, bytes=_size_below(entry.folder), state="ok")
    try:
        config, checkpoint = read_config(entry.folder), open_checkpoint(entry.folder)
    except HfbenchError as error:
        return replace(entry, state="x", problem=str(error))
    shares = share_by_dtype(checkpoint.columns)
    problems = (*config.problems, *checkpoint.problems)
    return replace(
        entry,
        type=config.model_type,
        parameters=sum(share.elements for share in shares.values()) if len(checkpoint.columns) else None,
        state=_STATES.get(worst(problems), "ok"),
        problem=_first(problems),
    )


def is_model(folder: Path) -> bool:
    """True when a name at the top of the folder is that of a configuration or of weights, and it is no engine."""
    names = _names(folder)
    return ENGINE not in names and any(name in _MARKS or name.endswith(_WEIGHTS) for name in names)


def is_engine(folder: Path) -> bool:
    """True for the folder of an engine that hfbench built."""
    return ENGINE in _names(folder)


def is_megatron(folder: Path) -> bool:
    """True for the top of a Megatron checkpoint that is no Hugging Face folder as well."""
    names = _names(folder)
    return MEGATRON_TRACKER in names and CONFIG not in names


def _size_below(folder: Path) -> int:
    """Bytes of a checkpoint whose files lie in folders: of an iteration, of a rank."""
    return _size(folder) + sum(_size(Path(at)) for child in _folders(folder) for at, *_ in os.walk(child))


def _below(root: Path) -> Iterator[ModelEntry]:
    left = MOST_ENTRIES
    if is_model(root):
        yield _local(root, root.absolute().name)
        return
    for child in _folders(root):
        inner = [child] if is_model(child) else [each for each in _folders(child) if is_model(each)]
        for folder in inner:
            left -= 1
            if left < 0:
                return
            yield _local(folder, folder.relative_to(root).as_posix())


def _local(folder: Path, name: str) -> ModelEntry:
    return ModelEntry(name=name, folder=folder, source="local", bytes=_size(folder), reference=str(folder))


def _cached(repo_folder: Path) -> ModelEntry:
    name = repo_folder.name.removeprefix("models--").replace("--", "/", 1)
    try:
        known = cached_revisions(repo_folder)
    except OSError as error:
        return _unusable(name, repo_folder, f"cannot be read ({error.strerror})")
    revision = DEFAULT_REVISION if commit_of(repo_folder, DEFAULT_REVISION) else next(iter(known), None)
    commit = commit_of(repo_folder, revision) if revision else None
    if commit is None:
        return _unusable(name, repo_folder, "no complete revision is in the cache")
    snapshot = repo_folder / "snapshots" / commit
    reference = name if revision == DEFAULT_REVISION else f"{name}@{revision}"
    return ModelEntry(name=name, folder=snapshot, source="cache", bytes=_size(snapshot), reference=reference)


def _unusable(name: str, folder: Path, problem: str) -> ModelEntry:
    return ModelEntry(name=name, folder=folder, source="cache", bytes=0, state="x", problem=problem, reference=name)


def _folders(parent: Path) -> list[Path]:
    try:
        with os.scandir(parent) as entries:
            return [Path(each.path) for each in entries if not each.name.startswith(".") and each.is_dir()]
    except OSError:
        return []  # a root that is not there, or not ours to read, holds no models


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _size(folder: Path) -> int:
    total = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    total += entry.stat().st_size if entry.is_file() else 0
                except OSError:
                    continue  # a dangling link has no size; `describe` tells of it
    except OSError:
        return total
    return total


def _first(problems: Iterable[Problem]) -> str:
    severe = sorted(problems, key=lambda problem: ("error", "warning", "info").index(problem.severity))
    return str(severe[0]) if severe and severe[0].severity != "info" else ""
