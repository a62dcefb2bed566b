"""From what a user writes for a model to the folder that holds it, without the network."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hfbench.errors import HfbenchError, UsageError
from hfbench.models.problem import quoted
from hfbench.paths import demo_model, expand
from hfbench.text import did_you_mean

DEFAULT_REVISION = "main"
DEMO = "demo"
"""Stands for the folder `hfbench demo` makes, where no folder of that name is in the way."""

LONGEST_REF = 64

_REPO = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(?:/[A-Za-z0-9_][\w.-]{0,95})?")
_REVISION = re.compile(r"[\w.-]+(?:/[\w.-]+)*")
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Location:
    """Where a reference led. `repo`, `revision` and `commit` are None for a local folder."""

    given: str
    folder: Path
    source: Literal["local", "cache"]
    repo: str | None = None
    revision: str | None = None
    commit: str | None = None

    @property
    def name(self) -> str:
        """What to call the model: the repository, or the last part of the folder."""
        return self.repo or self.folder.absolute().name or str(self.folder)


class NotFound(HfbenchError):
    """The reference leads nowhere on this machine."""


class NotCached(NotFound):
    """A repository or a revision of it is not in the cache. `repo` and `revision` tell what could be fetched."""

    def __init__(self, found: str, *, where: object, remedy: str, repo: str, revision: str) -> None:
        self.repo, self.revision = repo, revision
        super().__init__(found, where=where, remedy=remedy)


def resolve(text: str, *, cache_dir: Path | None = None) -> Location:
    """The folder of a reference: a local folder, else `demo`, else `repo[@revision]` in the Hugging Face cache.

    UsageError when it can be neither; NotFound, or NotCached for a repository, when nothing is there.
    """
    given = text.strip()
    if not given or "\0" in given:
        raise UsageError("no model was named", remedy="give a folder or a repository such as org/name")
    path = expand(given)
    if _exists(path):
        return Location(given, _readable_folder(path), "local")
    if given == DEMO:
        return Location(given, _demo_folder(), "local")
    repo, _, revision = given.partition("@")
    if _looks_like_path(repo) or not _REPO.fullmatch(repo):
        raise _no_such_folder(path, given)
    if "@" in given and (not _REVISION.fullmatch(revision) or ".." in revision):
        raise UsageError(f"{quoted(revision)} is not a revision", where=repo, remedy="write repo@branch or repo@commit")
    return _in_cache(given, repo, revision or DEFAULT_REVISION, cache_dir or cache_folder())


def cache_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Where huggingface_hub keeps repositories: HF_HUB_CACHE, else HF_HOME/hub, else below the XDG cache."""
    env = os.environ if environment is None else environment
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if env.get(name):
            return expand(os.path.expandvars(env[name]))
    home = env.get("HF_HOME") or str(Path(env.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")
    return expand(os.path.expandvars(home)) / "hub"


def cached_name(repo: str) -> str:
    """The cache's folder name of a model repository."""
    return "models--" + repo.replace("/", "--")


def commit_of(repo_folder: Path, revision: str) -> str | None:
    """The commit that a branch, tag or commit means in the cache, None when the cache does not know."""
    ref = repo_folder / "refs" / revision
    try:
        commit = _first_line(ref) if ref.is_file() else revision
    except (OSError, ValueError):
        return None
    return commit if _COMMIT.fullmatch(commit) and os.path.isdir(repo_folder / "snapshots" / commit) else None


def _first_line(ref: Path) -> str:
    """What a ref says; a file of any size is read no further than a commit is long."""
    with ref.open("rb") as file:
        return file.read(LONGEST_REF).decode("ascii").partition("\n")[0].strip()


def cached_revisions(repo_folder: Path) -> list[str]:
    """Branches and tags of a cached repository, then the commits that no branch or tag means."""
    refs = repo_folder / "refs"
    try:
        named = sorted(each.relative_to(refs).as_posix() for each in refs.rglob("*") if os.path.isfile(each))
        snapshots = [each.name for each in (repo_folder / "snapshots").glob("*") if os.path.isdir(each)]
    except OSError:
        return []
    commits = {commit_of(repo_folder, name) for name in named}
    return named + sorted(name for name in snapshots if name not in commits)


def _demo_folder() -> Path:
    folder = demo_model()
    if not folder.is_dir():
        raise NotFound("the demo model is not made yet", where=folder, remedy="hfbench demo makes it")
    return folder


def _in_cache(given: str, repo: str, revision: str, cache: Path) -> Location:
    folder = cache / cached_name(repo)
    if not os.path.isdir(folder):
        raise NotCached(
            f"there is no such folder, and the repository is not in the cache at {cache}",
            where=repo,
            remedy="give the path of a folder, or fetch it with: hf download " + repo,
            repo=repo,
            revision=revision,
        )
    commit = commit_of(folder, revision)
    if commit is None:
        known = ", ".join(cached_revisions(folder)[:5])
        raise NotCached(
            f"the revision {quoted(revision)} is not in the cache at {folder}",
            where=repo,
            remedy=f"cached are: {known}; write {repo}@REVISION" if known else f"fetch it with: hf download {repo}",
            repo=repo,
            revision=revision,
        )
    snapshot = _readable_folder(folder / "snapshots" / commit)
    return Location(given, snapshot, "cache", repo, revision, commit)


def _readable_folder(path: Path) -> Path:
    if not os.path.isdir(path):
        if os.path.islink(path) and not os.path.exists(path):
            raise NotFound("this link leads to nothing", where=path)
        raise UsageError("this is a file", where=path, remedy=f"give the folder: {path.absolute().parent}")
    try:
        empty = not any(os.scandir(path))
    except OSError as error:
        raise NotFound(f"the folder cannot be read ({error.strerror})", where=path) from None
    if empty:
        raise NotFound("the folder is empty", where=path)
    return path


def _exists(path: Path) -> bool:
    try:
        return os.path.lexists(path)
    except (OSError, ValueError):
        return False


def _looks_like_path(text: str) -> bool:
    return text.startswith(("/", "./", "../", "~")) or text in (".", "..") or text.endswith("/") or text.count("/") > 1


def _no_such_folder(path: Path, given: str) -> NotFound:
    try:
        beside = [each.name for each in os.scandir(path.absolute().parent)][:10_000]
    except OSError:
        beside = []
    near = did_you_mean(path.name, beside)
    return NotFound("there is no such folder", where=given[:200], remedy=near or "give a folder or org/name")
