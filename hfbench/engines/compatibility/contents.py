"""Rules about the engine's own files: the manifest's seal, what lies in the folder, and the checkpoint behind it."""

from __future__ import annotations

import os
from pathlib import Path

from hfbench.engines.compatibility.rule import Case, Row, mismatch, noted, ok, rule, unknown
from hfbench.engines.files import Looked
from hfbench.models.problem import counted, listed
from hfbench.units import show_bytes

REBUILD = "build it again: hfbench engine build"
FETCH = "copy the engine here again, or build it again"


@rule("seal", "seal", "the fields of a manifest are those that were written when the engine was built")
def seal(case: Case) -> Row:
    """The manifest was not edited."""
    written, found = case.manifest.seal[:12], "the manifest"
    if case.sealed:
        return ok(written, "the same")
    if not written:
        return mismatch("", "none", f"{found} has no seal: it was written or edited by hand", REBUILD)
    edited = f"{found} was edited after the engine was built: nothing in it can be relied on"
    return mismatch(written, "another", edited, "undo the edit, or build it again: hfbench engine build")


@rule("files", "files", "every file is there, with its size and its SHA-256")
def files(case: Case) -> Row:
    """The files are those that were built."""
    wanted = case.manifest.files
    total = sum(each.size for each in wanted)
    built = f"{counted(len(wanted), 'file')}, {show_bytes(total)}"
    looked = case.files
    for state, sentence in _FAULTS.items():
        if names := [each.name for each in looked if each.state == state]:
            of_one = next(each for each in looked if each.state == state)
            here = of_one.here if len(names) == 1 else counted(len(names), "file")
            return mismatch(built, here, f"{sentence}: {listed(names)}", FETCH)
    if late := [each.name for each in looked if each.state == "not hashed"]:
        found = f"sizes are right; nobody has hashed {listed(late)} since it changed last"
        return unknown(built, "sizes are right", found, "hfbench engine check hashes it without --no-hash")
    return ok(built, "the same")


_FAULTS: dict[Looked, str] = {
    "missing": "not there",
    "unreadable": "cannot be read",
    "size": "of another size",
    "content": "of the right size with other content",
}


@rule("source", "source", "an engine answers for the checkpoint it was built from, and loads without it")
def source(case: Case) -> Row | None:
    """The checkpoint is still what it was."""
    told = case.manifest.source
    folder = Path(told.folder) if told.folder else None
    built = told.revision[:12] or told.config_sha256[:12] or told.given
    if folder is None or not folder.is_dir():
        return noted(built, "not here", "the checkpoint is not on this machine, so that nobody can compare it")
    wanted = [*told.files]
    changed = [each.name for each in wanted if _size(folder / each.name) != each.size]
    if told.config_sha256 and _config_hash(folder) != told.config_sha256:
        changed.insert(0, "config.json")
    if changed:
        found = f"the checkpoint has changed since: {listed(changed)}"
        return noted(built, "changed", found, REBUILD)
    return ok(built, "the same")


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


def _config_hash(folder: Path) -> str:
    """SHA-256 of the configuration, empty when it cannot be read."""
    import hashlib

    from hfbench.models.files import read_bytes
    from hfbench.models.json_text import MOST_BYTES
    from hfbench.models.problem import ModelError

    try:
        return hashlib.sha256(read_bytes(folder / "config.json", MOST_BYTES, folder)).hexdigest()
    except ModelError:
        return ""
