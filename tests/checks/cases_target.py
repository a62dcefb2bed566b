"""What a target leads to, when it is no folder of a model, and what the rules of references must say of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from small_model import POSSIBLE_COMMIT, make

from hfbench.models.problem import Severity
from hfbench.models.remote_mark import Held, RemoteFile, RemoteMark, write_mark


@dataclass(frozen=True)
class Place:
    """Where `hfbench check` is run: what it is given, in which folder, with which cache."""

    given: str
    cwd: Path
    cache: Path | None = None


@dataclass(frozen=True)
class TargetCase:
    """`severity` is what the rule must find at the place, None when it must find nothing."""

    id: str
    why: str
    prepare: Callable[[Path], Place]
    severity: Severity | None

    def __str__(self) -> str:
        return f"{self.id}-{self.why.replace(' ', '-')}"


def cached(folder: Path) -> Path:
    """A Hugging Face cache with org/tiny at main, whose files are links to blobs."""
    whole = make(folder / "whole")
    repo = folder / "hub" / "models--org--tiny"
    snapshot = repo / "snapshots" / POSSIBLE_COMMIT
    for each in (repo / "blobs", repo / "refs", snapshot):
        each.mkdir(parents=True)
    for file in whole.iterdir():
        (repo / "blobs" / file.name).write_bytes(file.read_bytes())
        (snapshot / file.name).symlink_to(f"../../blobs/{file.name}")
    (repo / "refs" / "main").write_text(POSSIBLE_COMMIT)
    return folder / "hub"


def from_cache(given: str, edit: Callable[[Path], object] = lambda repo: None) -> Callable[[Path], Place]:
    """A reference into the cache after an edit of its repository."""

    def prepare(folder: Path) -> Place:
        hub = cached(folder)
        edit(hub / "models--org--tiny")
        return Place(given, folder, hub)

    return prepare


def from_folder(given: str, make_it: Callable[[Path], object] = make) -> Callable[[Path], Place]:
    """A path, relative to the folder in which it is made."""

    def prepare(folder: Path) -> Place:
        make_it(folder / given)
        return Place(given, folder)

    return prepare


def _text_only(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("x")


def _beside_cache(folder: Path) -> Place:
    make(folder / "org" / "tiny")
    return Place("org/tiny", folder, cached(folder))


def _the_cache(folder: Path) -> Place:
    return Place(str(cached(folder)), folder)


def _the_repository(folder: Path) -> Place:
    return Place(str(cached(folder) / "models--org--tiny"), folder)


def _opened(held: Held) -> Callable[[Path], Place]:
    """A model of a hub with so much of its weights."""

    def prepare(folder: Path) -> Place:
        model = make(folder / "opened")
        weights = model / "model.safetensors"
        raw = weights.read_bytes()
        if held == "header":
            weights.write_bytes(raw[: 8 + int.from_bytes(raw[:8], "little")])
        files = {"model.safetensors": RemoteFile(len(raw), held)}
        write_mark(model, RemoteMark("lab:org/tiny", "lab", "http://lab", "org/tiny", "main", POSSIBLE_COMMIT, files))
        return Place(str(model), folder)

    return prepare


CASES: list[TargetCase] = [
    TargetCase("HB801", "nothing of that name", from_folder("./gone", lambda path: None), "error"),
    TargetCase("HB801", "a model", from_folder("model"), None),
    TargetCase("HB802", "no file", from_folder("empty", Path.mkdir), "error"),
    TargetCase("HB802", "a model", from_folder("model"), None),
    TargetCase("HB803", "another repository", from_cache("org/other"), "error"),
    TargetCase("HB803", "the repository", from_cache("org/tiny"), None),
    TargetCase("HB804", "no main", from_cache("org/tiny", lambda repo: (repo / "refs" / "main").unlink()), "error"),
    TargetCase("HB804", "another branch", from_cache("org/tiny@next"), "error"),
    TargetCase(
        "HB804",
        "a branch that leads elsewhere",
        from_cache("org/tiny", lambda repo: (repo / "refs" / "main").write_text("../../..")),
        "error",
    ),
    TargetCase(
        "HB804",
        "a line break behind the commit",
        from_cache("org/tiny", lambda repo: (repo / "refs" / "main").write_text(POSSIBLE_COMMIT + "\n")),
        "error",
    ),
    TargetCase("HB801", "the cache itself", _the_cache, "error"),
    TargetCase("HB804", "the repository's folder", _the_repository, None),
    TargetCase("HB804", "main", from_cache("org/tiny"), None),
    TargetCase("HB804", "the commit", from_cache(f"org/tiny@{POSSIBLE_COMMIT}"), None),
    TargetCase("HB805", "no model in it", from_folder("org/name", _text_only), "error"),
    TargetCase("HB805", "a model that is cached too", _beside_cache, "info"),
    TargetCase("HB805", "a model", from_folder("org/tiny"), None),
    TargetCase("HB805", "named as a path", from_folder("./org/tiny"), None),
    TargetCase(
        "HB806", "one part", from_cache("org/tiny", lambda repo: (repo / "blobs" / "x.incomplete").touch()), "info"
    ),
    TargetCase("HB806", "whole files", from_cache("org/tiny"), None),
    TargetCase("HB807", "headers alone", _opened("header"), "info"),
    TargetCase("HB807", "all of it here", _opened("whole"), None),
]
