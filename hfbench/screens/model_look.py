"""Looks at one entry of the list of models: type, size, state, and what its configuration says."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from hfbench.models.files import open_regular
from hfbench.models.problem import ModelError, worst
from hfbench.screens.background import unforeseen

if TYPE_CHECKING:
    from hfbench.models.catalog import ModelEntry
    from hfbench.models.config import ModelConfig
    from hfbench.models.facts import ModelSummary
    from hfbench.models.stream import Frame

# Readers are imported by the functions that read, which run in a thread: the first frame needs none of them.

LARGE_HEADER = 2 * 2**20
"""Bytes of one header above which parsing it here would be felt at the keys: a child process does it."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """An entry that was looked at. `config` is None where even that could not be read."""

    entry: ModelEntry
    config: ModelConfig | None = None


def look_at(entry: ModelEntry) -> Look:
    """The entry with what its folder tells; nothing is raised for what is wrong with it."""
    from hfbench.models.catalog import describe
    from hfbench.models.config import read_config

    if entry.state == "x":
        return Look(entry=entry)
    try:
        described = _by_child(entry) if has_large_header(entry.folder) else describe(entry)
        return Look(entry=described, config=read_config(entry.folder))
    except Exception as error:  # one folder must not keep the others from being looked at
        return Look(entry=replace(entry, state="x", problem=str(unforeseen(error))))


def has_large_header(folder: Path) -> bool:
    """True when a safetensors file at the top of the folder claims a header that takes long to parse."""
    try:
        files = [each for each in folder.iterdir() if each.name.endswith(".safetensors")]
    except OSError:
        return False
    return any(_claimed(file, folder) > LARGE_HEADER for file in files)


def _claimed(file: Path, folder: Path) -> int:
    from hfbench.models.safetensors import PREFIX

    try:
        with open_regular(file, folder) as opened:
            return int.from_bytes(opened.read(PREFIX), "little")
    except (ModelError, OSError):
        return 0  # whoever opens it for good says what is wrong


def _by_child(entry: ModelEntry) -> ModelEntry:
    from hfbench.models.stream import Done, Failed, follow

    last: Frame | None = None
    with closing(cast("Generator[Frame, None, None]", follow(entry.folder))) as frames:
        for frame in frames:
            last = frame
    if isinstance(last, Done):
        return _of_summary(entry, last.summary())
    return replace(entry, state="x", problem=str(last.error) if isinstance(last, Failed) else "cannot be read")


def _of_summary(entry: ModelEntry, summary: ModelSummary) -> ModelEntry:
    severity = worst(summary.problems)
    return replace(
        entry,
        type=summary.model_type,
        parameters=summary.parameters if summary.tensors else None,
        state="x" if severity == "error" else "!" if severity == "warning" else "ok",
        problem=str(summary.problems[0]) if severity in ("error", "warning") else "",
    )
