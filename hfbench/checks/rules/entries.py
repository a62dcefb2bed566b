"""The entries of the folder themselves: what kind they are and where their links lead."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.checks.base import Found, passed_on, rule
from hfbench.checks.subject import Subject
from hfbench.models.files import ModelFile, open_regular
from hfbench.models.magic import LOOK, is_lfs_pointer, recognise
from hfbench.models.problem import ModelError

STARTS = {"gguf": b"GGUF", "h5": b"\x89HDF\r\n\x1a\n", "npz": b"PK", "onnx": b"", "msgpack": b""}
"""How files of these formats begin; of two nothing more is known than that they are not empty and no page."""

SHORTEST_POINTER = 100
"""Bytes: a version line, a sha256 and a size."""


@rule("HB130", "git-lfs-pointer", on="weights", codes=("lfs_pointer",))
def git_lfs_pointer(subject: Subject) -> Iterator[Found]:
    """A git-lfs pointer stands in place of a file.

    Why: the repository was cloned without git-lfs; loaders only say that a header is too large or a text no JSON.
    Remedy: run git lfs pull, or fetch the file again.
    """
    yield from passed_on(subject, "lfs_pointer")
    told = {problem.where for problem in subject.problems if problem.code == "lfs_pointer"}
    for each in subject.files:
        if (
            not each.problem
            and SHORTEST_POINTER < each.bytes <= LOOK
            and each.name not in told
            and _is_pointer(subject, each)
        ):
            needed = each.kind != "other" and "/" not in each.name
            message = "this is a git-lfs pointer, not the file itself"
            yield Found(message=message, file=each.name, severity=None if needed else "info")


@rule("HB131", "not-a-plain-file", on="weights", codes=("not_regular",))
def not_a_plain_file(subject: Subject) -> Iterator[Found]:
    """A FIFO, a device, a socket or a folder has the name of a file of the model.

    Why: a loader that opens it hangs, or reads without end.
    Remedy: replace it by the file itself.
    """
    yield from passed_on(subject, "not_regular")


@rule("HB132", "broken-link", on="weights", codes=("broken_symlink",))
def broken_link(subject: Subject) -> Iterator[Found]:
    """A link leads to nothing.

    Why: the file it stood for was removed, as when the blobs of a cache are cleaned.
    Remedy: fetch the model again.
    """
    yield from passed_on(subject, "broken_symlink")


@rule("HB133", "link-outside", on="weights", codes=("link_escape",))
def link_outside(subject: Subject) -> Iterator[Found]:
    """A link leads out of the model's folder.

    Why: whoever loads the model reads a file that its author chose and that is no part of it.
    Remedy: replace the link by a copy of the file, if you trust it.
    """
    yield from passed_on(subject, "link_escape")


@rule("HB134", "unreadable-file", on="weights", codes=("unreadable", "missing"))
def unreadable_file(subject: Subject) -> Iterator[Found]:
    """A file of the model cannot be opened.

    Why: its permissions forbid it, or it is gone since the folder was listed.
    Remedy: mend the permissions, or fetch the file again.
    """
    yield from passed_on(subject, "unreadable", "missing")


@rule("HB135", "file-too-large", on="weights", codes=("too_large",))
def file_too_large(subject: Subject) -> Iterator[Found]:
    """A text file of the model is larger than any real one of its kind.

    Why: reading it would take the memory that the model needs.
    Remedy: fetch the file again.
    """
    yield from passed_on(subject, "too_large")


@rule("HB136", "not-what-its-name-says", on="weights")
def not_what_its_name_says(subject: Subject) -> Iterator[Found]:
    """A file of weights does not begin as its format does.

    Why: a download that ended at once or saved an error page leaves such a file, and every loader refuses it.
    Remedy: fetch the file again.
    """
    other = subject.weights.format in ("gguf", "other", "none", "pytorch")
    for each in subject.files:
        suffix = each.name.lower().rpartition(".")[2]
        if each.problem or "/" in each.name or suffix not in STARTS:
            continue
        head = _head(subject, each)
        if head is None or is_lfs_pointer(head) or (STARTS[suffix] and head.startswith(STARTS[suffix])):
            continue
        what = "empty" if not head else recognise(head)
        if what is None and not STARTS[suffix]:
            continue
        found = f"this is {what or f'no {suffix} file, by its first bytes'}"
        yield Found(message=found, file=each.name, severity=None if other else "warning")


def _head(subject: Subject, file: ModelFile) -> bytes | None:
    """The first bytes of a file; None where it cannot be opened, of which another rule tells."""
    try:
        with open_regular(file.path, subject.folder) as opened:
            return opened.read(LOOK)
    except (ModelError, OSError):
        return None


def _is_pointer(subject: Subject, file: ModelFile) -> bool:
    head = _head(subject, file)
    return head is not None and is_lfs_pointer(head)
