"""From what a user writes for a model to the folder that holds it, without the network."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hfbench.errors import HfbenchError, UsageError
from hfbench.exits import Exit
from hfbench.models.files import kind_of
from hfbench.models.problem import counted, quoted
from hfbench.paths import demo_model, expand, remote_root
from hfbench.text import did_you_mean

DEFAULT_REVISION = "main"
CACHED = "models--"
"""How the folders of model repositories begin in a cache."""

DEMO = "demo"
"""Stands for the folder `hfbench demo` makes, where no folder of that name is in the way."""

LONGEST_REF = 64

REPO = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(?:/[A-Za-z0-9_][\w.-]{0,95})?")
"""A repository as hubs spell it: `org/name`, or a name alone."""
_REVISION = re.compile(r"[\w.-]+(?:/[\w.-]+)*")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_ENDPOINT = re.compile(r"[A-Za-z0-9][\w.-]{0,62}")


@dataclass(frozen=True, slots=True)
class Location:
    """Where a reference led. `repo`, `revision` and `commit` are None for a local folder; `remote` is a model of a hub
    whose weights were left there.

    `only` is the file of weights that was named in place of its folder; empty for a folder and for an index.
    """

    given: str
    folder: Path
    source: Literal["local", "cache", "remote"]
    repo: str | None = None
    revision: str | None = None
    commit: str | None = None
    only: str = ""
    note: str = ""
    """What was taken in place of what was given, where that is another thing."""

    @property
    def name(self) -> str:
        """What to call the model: the repository, with its endpoint where it is still there, or the folder's name."""
        if self.source == "remote":
            return self.given
        return self.repo or self.folder.absolute().name or str(self.folder)


class NotFound(HfbenchError):
    """The reference leads nowhere on this machine; `code` names the kind of problem that `check` tells it as."""

    exit = Exit.USAGE
    code = "not_there"


@dataclass(frozen=True, slots=True)
class HubReference:
    """`ENDPOINT:repo@revision`, taken apart; `endpoint` is empty where none was named."""

    endpoint: str
    repo: str
    revision: str

    def __str__(self) -> str:
        at = f"@{self.revision}" if self.revision != DEFAULT_REVISION else ""
        return f"{self.endpoint}:{self.repo}{at}" if self.endpoint else f"{self.repo}{at}"


def _not_found(found: str, *, where: object, remedy: str = "", code: str = "not_there") -> NotFound:
    error = NotFound(found, where=where, remedy=remedy)
    error.code = code
    return error


class NotCached(NotFound):
    """A repository or a revision of it is not in the cache. `repo` and `revision` tell what could be fetched."""

    code = "repo_not_cached"

    def __init__(self, found: str, *, where: object, remedy: str, repo: str, revision: str) -> None:
        self.repo, self.revision = repo, revision
        super().__init__(found, where=where, remedy=remedy)


def resolve(text: str, *, cache_dir: Path | None = None) -> Location:
    """The folder of a reference: a local path, else `demo`, else `repo[@revision]` in the Hugging Face cache, else
    `ENDPOINT:repo[@revision]` where it was opened or fetched.

    A path may also be a repository's folder of a cache, an index, or a file of weights, whose folder is then taken.

    UsageError when it can be neither; NotFound, or NotCached for a repository, when nothing is there.
    """
    given = text.strip()
    if not given or "\0" in given:
        raise UsageError("no model was named", remedy="give a folder or a repository such as org/name")
    path = expand(given)
    if _exists(path):
        return _local(given, path)
    if given == DEMO:
        return Location(given, _demo_folder(), "local")
    if (named := hub_reference(given)) is None:
        raise _no_such_folder(path, given)
    cache = cache_dir or cache_folder()
    return _on_hub(given, named, cache) if named.endpoint else _in_cache(given, named.repo, named.revision, cache)


def hub_reference(text: str) -> HubReference | None:
    """`[ENDPOINT:]repo[@revision]` taken apart, None for what is neither. UsageError for what is no revision."""
    named, at, revision = text.strip().partition("@")
    endpoint, colon, repo = named.rpartition(":")
    if _looks_like_path(named) or not REPO.fullmatch(repo) or (colon and not _ENDPOINT.fullmatch(endpoint)):
        return None
    if at and (not _REVISION.fullmatch(revision) or ".." in revision):
        raise UsageError(f"{quoted(revision)} is not a revision", where=repo, remedy="write repo@branch or repo@commit")
    return HubReference(endpoint, repo, revision or DEFAULT_REVISION)


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
    return CACHED + repo.replace("/", "--")


def commit_of(repo_folder: Path, revision: str) -> str | None:
    """The commit that a branch, tag or commit means in the cache, None when the cache does not know."""
    ref = repo_folder / "refs" / revision
    try:
        commit = _said(ref) if ref.is_file() else revision
    except (OSError, ValueError):
        return None
    return commit if _COMMIT.fullmatch(commit) and os.path.isdir(repo_folder / "snapshots" / commit) else None


def _said(ref: Path) -> str:
    """What a ref says, to the letter, as huggingface_hub takes it; no more is read than a commit is long."""
    with ref.open("rb") as file:
        return file.read(LONGEST_REF).decode("ascii")


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
    return _snapshot(given, folder, repo, revision)


def _on_hub(given: str, named: HubReference, cache: Path) -> Location:
    """A model of an endpoint: as a whole in the cache, else without its weights where it was opened."""
    fetched, opened = cache / cached_name(named.repo), remote_root() / named.endpoint / cached_name(named.repo)
    commit = commit_of(opened, named.revision)
    if commit is not None:
        shadow, whole = opened / "snapshots" / commit, fetched / "snapshots" / commit
        if _holds_weights(whole):
            return Location(given, whole, "cache", named.repo, named.revision, commit)
        return Location(given, _readable_folder(shadow), "remote", named.repo, named.revision, commit)
    if commit_of(fetched, named.revision) is not None:
        note = f"{named.repo} of the cache is taken, which does not say what hub it came from"
        return _snapshot(given, fetched, named.repo, named.revision, note)
    raise NotCached(
        "is neither open nor in the cache here",
        where=str(named),
        remedy=f"hfbench hub open {named} looks at it without its weights, hfbench pull {named} fetches them",
        repo=named.repo,
        revision=named.revision,
    )


def _holds_weights(snapshot: Path) -> bool:
    """Whether a snapshot of the cache has a whole set of weights: a fetch may have left some out, or broken off."""
    from hfbench.models.weights import choose_weights  # most references need none of it

    if not os.path.isdir(snapshot):
        return False
    chosen = choose_weights(snapshot)
    lost = any(each.problem for each in chosen.shards) or any(each.severity == "error" for each in chosen.problems)
    return bool(chosen.shards or chosen.unopened) and not lost


def _snapshot(given: str, folder: Path, repo: str, revision: str, note: str = "") -> Location:
    """The snapshot of a revision in the folder of a repository."""
    commit = commit_of(folder, revision)
    if commit is None:
        known = ", ".join(cached_revisions(folder)[:5])
        found = f"the revision {quoted(revision)} is not in the cache at {folder}"
        remedy = f"cached are: {known}; write {repo}@REVISION" if known else f"fetch it with: hf download {repo}"
        if (spaced := _spaced_commit(folder, revision)) is not None:
            found += f": refs/{revision} has a line break or a space beside its commit, and huggingface_hub keeps them"
            remedy = f"write {spaced} into the file and nothing else, or give {repo}@{spaced[:12]} in full"
        error = NotCached(found, where=repo, remedy=remedy, repo=repo, revision=revision)
        error.code = "revision_not_cached"
        raise error
    snapshot = _readable_folder(folder / "snapshots" / commit)
    return Location(given, snapshot, "cache", repo, revision, commit, note=note)


def _spaced_commit(folder: Path, revision: str) -> str | None:
    """The commit of a ref that would be one without the white space around it."""
    ref = folder / "refs" / revision
    try:
        commit = _said(ref).strip() if ref.is_file() else ""  # a FIFO would hold us
    except (OSError, ValueError):
        return None
    return commit if _COMMIT.fullmatch(commit) and os.path.isdir(folder / "snapshots" / commit) else None


def _local(given: str, path: Path) -> Location:
    """A path that is there: a folder, a repository's folder of a cache, an index or a file of weights."""
    name, parent = path.absolute().name, path.absolute().parent
    if os.path.isdir(path):
        if name.startswith(CACHED) and os.path.isdir(path / "snapshots"):
            repo = name.removeprefix(CACHED).replace("--", "/", 1)
            return _snapshot(given, path, repo, DEFAULT_REVISION, f"the snapshot of {DEFAULT_REVISION} is taken")
        return Location(given, _readable_folder(path), "local")
    if os.path.islink(path) and not os.path.exists(path):
        raise _not_found("this link leads to nothing", where=path)
    kind = kind_of(name)
    if kind not in ("index", "weights"):
        raise UsageError("this is a file, and none of weights", where=path, remedy=f"give the folder: {parent}")
    only = name if kind == "weights" else ""
    return Location(given, parent, "local", only=only, note=f"the folder of {quoted(name)} is taken")


def _readable_folder(path: Path) -> Path:
    try:
        names = os.listdir(path)
    except OSError as error:
        raise _not_found(
            f"the folder cannot be read ({error.strerror})", where=path, code="folder_unreadable"
        ) from None
    if not names:
        raise _not_found("the folder is empty", where=path, code="folder_empty")
    cached = sorted(each for each in names if each.startswith(CACHED))
    if cached and not any(kind_of(each) in ("config", "weights", "index") for each in names):
        repo = cached[0].removeprefix(CACHED).replace("--", "/", 1)
        found = f"this is a Hugging Face cache of {counted(len(cached), 'model')}, not a model"
        raise _not_found(found, where=path, remedy=f"name a repository: {repo} --cache-dir {path}")
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
