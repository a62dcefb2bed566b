"""The small files of a model's folder, which go along with its weights."""

from __future__ import annotations

from pathlib import Path

from hfbench.convert.output_folder import MANIFEST
from hfbench.convert.stream.manifest import FINISHED
from hfbench.models.files import list_files
from hfbench.models.problem import counted, listed

MOST_SMALL = 256 << 20
"""Bytes of a file that goes along; larger ones are told."""

MANIFESTS = frozenset({FINISHED, MANIFEST})
"""Of what was written into the folder before: they say nothing of what is written now."""

CARRIED = ("config", "tokenizer", "other", "code")
"""Kinds of files that go along to another format."""


def carried_files(folder: Path) -> dict[str, Path | bytes]:
    """Configuration, tokenizer, chat template, code and licence, by name: what goes along to another format."""
    return {
        each.name: each.path
        for each in list_files(folder)
        if each.kind in CARRIED
        and not each.problem
        and each.bytes <= MOST_SMALL
        and each.name not in MANIFESTS
        and not each.name.startswith("mp_rank_")
    }


def all_but_weights(folder: Path) -> tuple[dict[str, Path | bytes], list[str]]:
    """Every file that is neither weights nor their index, by name, and what is said of those too large to go along."""
    found: dict[str, Path | bytes] = {}
    left: list[str] = []
    for file in list_files(folder):
        if file.kind in ("weights", "index") or file.name in MANIFESTS:
            continue
        if file.problem or file.bytes > MOST_SMALL:
            left.append(file.name)
        else:
            found[file.name] = file.path
    return found, [f"{counted(len(left), 'file')} stayed behind: {listed(left)}"] if left else []
