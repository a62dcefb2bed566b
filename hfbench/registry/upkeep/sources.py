"""Models as they lie on a disk: in a Hugging Face cache, a tree of folders, or one folder. Read, never written to."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hfbench.errors import MissingError, UsageError
from hfbench.registry.errors import Refusal
from hfbench.registry.names import COMMIT, check_name, path_trouble
from hfbench.registry.plain import plain_text

CACHED = re.compile(r"(model|dataset)s--(?P<namespace>.+?)--(?P<name>.+)")
PASSED_OVER = {".git", ".cache", ".huggingface", "__pycache__"}
BROKEN = "it is no file, or its link is broken"
MODEL_FILES = ("config.json", "params.json", "model.safetensors", "model.safetensors.index.json", "README.md")


@dataclass(frozen=True, slots=True)
class Revision:
    """The files of one revision by their path. `commit` is the one it is known by, or empty; `refs` lead to it."""

    commit: str
    files: dict[str, Path]
    refs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Source:
    """A repository to be brought in."""

    kind: str
    namespace: str
    name: str
    revisions: tuple[Revision, ...]
    left: tuple[str, ...] = field(default=())
    """What is not brought in, and why."""


Read = Callable[[Path, str, str, str], Source]


def sources(folder: Path, repo: str = "") -> list[Source]:
    """The repositories that a folder holds: a cache by its layout; with `repo` the folder is that one; else a tree of
    namespace/name. MissingError when there is no folder, UsageError when nothing in it is a repository."""
    if not folder.is_dir():
        raise MissingError("there is no folder", where=folder, remedy="name a Hugging Face cache or a folder of models")
    cached = [(match, path) for path in sorted(folder.iterdir()) if (match := CACHED.fullmatch(path.name))]
    if (match := CACHED.fullmatch(folder.name)) and (folder / "snapshots").is_dir():
        cached = [(match, folder)]
    if cached and not repo:
        there = [(match, path) for match, path in cached if path.is_dir()]
        return [_named(_cached, path, match[1], match["namespace"], match["name"]) for match, path in there]
    if repo:
        namespace, slash, name = repo.partition("/")
        if not slash:
            raise UsageError(f"{repo!r} is no name of a repository", remedy="write namespace/name")
        _require_named(namespace, name)
        return [_plain(folder, namespace, name)]
    found = [
        _named(_plain, model, "model", space.name, model.name)
        for space in _folders(folder)
        for model in _folders(space)
        if any((model / name).exists() for name in MODEL_FILES) or any(model.glob("*.safetensors"))
    ]
    if not found:
        raise UsageError(
            "holds no cache and no folders of the form namespace/name with models",
            where=folder,
            remedy="for the folder of one model, give --repo namespace/name",
        )
    return found


def _named(read: Read, folder: Path, kind: str, namespace: str, name: str) -> Source:
    """A repository among several: of one that no hub can have, the reason; the others are brought in."""
    try:
        _require_named(namespace, name)
        return read(folder, namespace, name, kind)
    except (UsageError, OSError) as error:
        found = error.found if isinstance(error, UsageError) else error.strerror or str(error)
        return Source(kind, namespace, name, (), (plain_text(f"{folder.name}: {found}"),))


def _cached(home: Path, namespace: str, name: str, kind: str) -> Source:
    """A repository of the cache with every snapshot that is there."""
    refs: dict[str, list[str]] = {}
    for path in sorted((home / "refs").rglob("*")):
        if path.is_file():
            commit = path.read_text("utf-8", "replace").strip()
            refs.setdefault(commit, []).append(str(path.relative_to(home / "refs")))
    left: list[str] = []
    revisions = []
    for snapshot in sorted((home / "snapshots").iterdir() if (home / "snapshots").is_dir() else ()):
        if not COMMIT.fullmatch(snapshot.name):
            left.append(plain_text(f"{home.name}/{snapshot.name}: its name is no commit"))
            continue
        if snapshot.is_symlink() or not snapshot.is_dir():
            left.append(f"{home.name}/{snapshot.name}: it is no folder")
            continue
        files = dict(_files(snapshot, home, left))
        if files:
            revisions.append(Revision(snapshot.name, files, tuple(refs.get(snapshot.name, ()))))
    return Source(kind, namespace, name, tuple(revisions), tuple(left))


def _plain(folder: Path, namespace: str, name: str, kind: str = "model") -> Source:
    left: list[str] = []
    files = dict(_files(folder, folder, left))
    if not files:
        raise UsageError("holds no files", where=folder, remedy="name the folder of a model")
    return Source(kind, namespace, name, (Revision("", files, ("main",)),), tuple(left))


def _files(folder: Path, inside: Path, left: list[str]) -> Iterator[tuple[str, Path]]:
    """Paths and the real files behind them; what cannot be brought in is left out, with the reason."""
    real, seen = inside.resolve(), dict[str, str]()
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in PASSED_OVER)
        for name in sorted(names):
            path = Path(where) / name
            shown = str(path.relative_to(folder))
            target, trouble = _target(path, real)
            trouble = trouble or path_trouble(shown) or _twin(shown, seen)
            if trouble:
                left.append(plain_text(f"{inside.name}/{shown}: {trouble}"))
            elif not name.endswith(".incomplete"):
                yield shown, target


def _target(path: Path, inside: Path) -> tuple[Path, str]:
    """The file a path leads to, and why it is none to bring in."""
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):  # RuntimeError for links that lead to each other
        return path, BROKEN
    if not target.is_file():
        return target, BROKEN
    return target, "" if inside in target.parents else "its link leads outside"


def _twin(path: str, seen: dict[str, str]) -> str:
    """Why a path cannot lie beside those before it: one of them, or a folder, differs from it in its case alone."""
    parts = path.split("/")
    for count in range(1, len(parts) + 1):
        start = "/".join(parts[:count])
        if (other := seen.setdefault(start.casefold(), start)) != start:
            return f"it differs from {other} only in its case"
    return ""


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def _require_named(namespace: str, name: str) -> None:
    try:
        check_name(namespace, "namespace")
        check_name(name, "repository")
    except Refusal as error:
        raise UsageError(error.found) from error
