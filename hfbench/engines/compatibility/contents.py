"""Rules about the engine's own files: the manifest's seal, what lies in the folder, and the checkpoint behind it."""

from __future__ import annotations

import os
from pathlib import Path

from hfbench.engines.compatibility.rule import Case, Row, mismatch, noted, ok, rule, unknown
from hfbench.engines.files import Looked, look_at_source
from hfbench.models.problem import counted, listed
from hfbench.units import show_bytes

BUILD = "build it again: hfbench engine build"
FETCH = "copy the engine here again, or build it again"


@rule("seal", "seal", "the fields of a manifest are those that were written when the engine was built")
def seal(case: Case) -> Row:
    """The manifest was not edited."""
    written, found = case.manifest.seal[:12], "the manifest"
    if case.sealed:
        return ok(written, "the same")
    if not written:
        return mismatch("", "none", f"{found} has no seal: it was written or edited by hand", BUILD)
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


@rule("source", "source", "an engine answers for the checkpoint it was built from; one of compile reads its weights")
def source(case: Case) -> Row | None:
    """The checkpoint is still what it was."""
    told = case.manifest.source
    reads = case.manifest.builder == "compile"
    folder = Path(told.folder)
    built = told.revision[:12] or told.config_sha256[:12] or told.given
    if not told.folder or not os.path.isdir(folder):  # Path.is_dir() raises for a name that is too long
        if reads:
            found = "the checkpoint that it reads its weights from is not on this machine"
            return mismatch(built, "not here", found, f"put it back as {told.folder or told.given}, or {BUILD}")
        return noted(built, "not here", "the checkpoint is not on this machine, so that nobody can compare it")
    weights, hashed = look_at_source(folder, told.files)
    changed = [*weights]
    if changed and reads:
        found = f"the weights that it reads have changed since: {listed(changed)}"
        return mismatch(built, "changed", found, BUILD)
    if told.config_sha256 and _config_hash(folder) != told.config_sha256:
        changed.insert(0, "config.json")
    if changed:
        found = f"the checkpoint has changed since: {listed(changed)}"
        return noted(built, "changed", found, BUILD)
    return ok(built, "the same" if hashed else "of the same sizes, not hashed")


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
