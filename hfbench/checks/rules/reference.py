"""Where the target led: the local disk, the Hugging Face cache, or nowhere."""

from __future__ import annotations

import os
from collections.abc import Iterator

from hfbench.checks.base import Found, passed_on, rule
from hfbench.checks.subject import Subject
from hfbench.models.files import kind_of
from hfbench.models.problem import counted
from hfbench.models.remote_mark import read_mark


@rule("HB801", "not-there", on="reference", codes=("not_there", "folder_unreadable"))
def not_there(subject: Subject) -> Iterator[Found]:
    """The target does not exist or cannot be read.

    Why: transformers and vLLM say "invalid repository ID or local directory" for this and for much else.
    Remedy: check the spelling and the working directory.
    """
    yield from passed_on(subject, "not_there", "folder_unreadable")


@rule("HB802", "folder-empty", on="reference", codes=("folder_empty",))
def folder_empty(subject: Subject) -> Iterator[Found]:
    """The folder is empty.

    Why: a download never began, or its target was another folder.
    Remedy: fetch the model again.
    """
    yield from passed_on(subject, "folder_empty")


@rule("HB803", "repository-not-cached", on="reference", codes=("repo_not_cached",))
def repository_not_cached(subject: Subject) -> Iterator[Found]:
    """The repository is not in the cache.

    Why: without the network it cannot be loaded, and runtimes report an invalid repository ID instead.
    Remedy: fetch it with hf download.
    """
    yield from passed_on(subject, "repo_not_cached")


@rule("HB804", "revision-not-cached", on="reference", codes=("revision_not_cached",))
def revision_not_cached(subject: Subject) -> Iterator[Found]:
    """The repository is in the cache, but not under the revision asked for.

    Why: a cache filled by commit has no refs/main, so loading offline fails though all files are there.
    Remedy: ask for a revision that is cached, as repo@commit.
    """
    yield from passed_on(subject, "revision_not_cached")


@rule("HB805", "local-folder-shadows-repository", on="reference", codes=("local_shadows_repo",))
def local_folder_shadows_repository(subject: Subject) -> Iterator[Found]:
    """A local folder has the name of a Hub repository.

    Why: transformers and vLLM take the folder and never ask the Hub, whatever the folder holds.
    Remedy: rename the folder, or run in another one.
    """
    yield from passed_on(subject, "local_shadows_repo")


@rule("HB806", "unfinished-download", severity="info", on="reference")
def unfinished_download(subject: Subject) -> Iterator[Found]:
    """The cache holds parts of downloads that did not end.

    Why: a file of the model may be missing; what is missing is told by other rules.
    Remedy: run hf download again.
    """
    repo = subject.location.folder.parent.parent
    if subject.location.source != "cache" or not os.path.isdir(repo / "blobs"):
        return
    parts = sorted(each.name for each in (repo / "blobs").iterdir() if each.name.endswith(".incomplete"))
    if parts:
        yield Found(message=f"{len(parts)} unfinished in the blobs", file=parts[0], evidence={"files": parts[:20]})


@rule("HB807", "weights-on-hub", severity="info", on="reference")
def weights_on_hub(subject: Subject) -> Iterator[Found]:
    """The weights were left on a hub, and their headers are all that was judged.

    Why: values that are not finite, and pickles that would run code, are not seen before the files are here.
    Remedy: fetch the model, and check it again.
    """
    mark = read_mark(subject.folder)
    left = [name for name in mark.files if kind_of(name) == "weights" and not mark.holds(name)] if mark else []
    if mark and left:
        message = f"{counted(len(left), 'file')} of weights not looked into: values and pickles were not judged"
        remedy = f"hfbench pull {mark.reference} fetches them"
        yield Found(message=message, file=left[0], remedy=remedy, evidence={"files": left[:20]})
