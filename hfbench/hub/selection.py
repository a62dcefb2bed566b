"""What of a model is fetched when it is opened without its weights: small files whole, of weights the headers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hfbench.hub.facts import HubFile
from hfbench.hub.refusals import Asked, HubError
from hfbench.models.files import kind_of
from hfbench.models.problem import counted, listed
from hfbench.units import show_bytes

LARGEST = {"tokenizer": 128 << 20, "index": 64 << 20, "config": 4 << 20, "code": 1 << 20, "other": 1 << 20}
"""Bytes up to which a file of a kind is fetched whole."""
TEXTS = ("readme.md", "license", "license.txt", "license.md", "notice")
WITH_HEADER = (".safetensors", ".gguf")
MOST_WHOLE, MOST_HEADERS = 500, 2000
MOST_WHOLE_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Selection:
    """The files of a revision by what is fetched of them. `notes` tell what was left that is usually fetched."""

    whole: tuple[HubFile, ...]
    headers: tuple[HubFile, ...]
    left: tuple[HubFile, ...]
    notes: tuple[str, ...] = ()


def select(files: Sequence[HubFile], asked: Asked) -> Selection:
    """Configurations, tokenizers, indices, code and the README whole, of safetensors and GGUF files the header.

    HubError for a repository with more of them than any model has.
    """
    headers = [each for each in files if each.path.lower().endswith(WITH_HEADER) and each.size]
    if len(headers) > MOST_HEADERS:
        raise HubError(f"has {len(headers):,} files of weights, more than {MOST_HEADERS:,}", where=asked.where)
    small = [each for each in files if _is_small(each)]
    whole, room = list[HubFile](), MOST_WHOLE_BYTES
    for each in sorted(small, key=lambda file: ("/" in file.path, file.size)):
        if len(whole) < MOST_WHOLE and each.size <= room:
            whole.append(each)
            room -= each.size
    taken = {each.path for each in (*whole, *headers)}
    left = [each for each in files if each.path not in taken]
    usual = [each for each in left if kind_of(each.path) in ("config", "tokenizer", "index")]
    notes = []
    if usual:
        size = show_bytes(sum(each.size for each in usual))
        names = listed([each.path for each in usual])
        notes.append(f"{counted(len(usual), 'file')} of {size} too large to fetch for a look: {names}")
    return Selection(tuple(whole), tuple(headers), tuple(left), tuple(notes))


def _is_small(file: HubFile) -> bool:
    kind, base = kind_of(file.path), file.path.rpartition("/")[2].lower()
    if kind == "weights":
        return file.size == 0
    return file.size <= LARGEST[kind] and (kind != "other" or base in TEXTS or base.endswith((".model", ".txt")))
