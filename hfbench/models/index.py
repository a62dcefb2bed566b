"""The index of a sharded checkpoint: which file is said to hold which tensor."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from hfbench.models.columns import TensorColumns
from hfbench.models.json_text import JsonError, JsonObject, parse_object, read_object
from hfbench.models.problem import ModelError, Problem, counted, listed, quoted

SAFETENSORS_INDEX = "model.safetensors.index.json"
CONSOLIDATED_INDEX = "consolidated.safetensors.index.json"

MOST_SHARDS = 10_000
"""Files that one index may name."""

QUOTES = 4
"""Around the name and the file of one entry."""

_FILES = re.compile(rb'": "([^"]*)"')
_GAP = re.compile(rb'\s*"[^"]*": "[^"]*"(,\s*)"')


class BadIndex(ModelError):
    """An index cannot be read at all."""


@dataclass(frozen=True, slots=True)
class Index:
    """What an index says. Only files that are safe paths inside the folder are named.

    The entries are kept as text: an index that agrees with the headers need not be taken apart.
    """

    name: str
    shards: tuple[str, ...]
    """The files named, each once, by name."""
    total_size: int | None
    """Bytes of all tensors as the index claims them; often wrong or absent in the wild."""
    total_parameters: int | None
    problems: tuple[Problem, ...]
    text: bytes = b""
    """What stands between the brackets of weight_map, empty when `entries` holds it."""
    entries: dict[str, str] = field(default_factory=dict)

    def weight_map(self) -> dict[str, str]:
        """The file of each tensor; BadIndex when the text is not JSON after all."""
        if not self.text:
            return self.entries
        try:
            read = parse_object(b"{" + self.text + b"}")
        except JsonError as error:
            raise BadIndex("index_bad", error.found, where=self.name, remedy=error.remedy) from None
        return read.value


def read_index(folder: Path, name: str = SAFETENSORS_INDEX) -> Index:
    """The index of a folder; BadIndex when it is no index, problems for single entries that are wrong."""
    text: bytes = b""
    files: tuple[str, ...] = ()

    def parse(raw: bytes) -> JsonObject:
        nonlocal text, files
        begin, end, files = _usual_entries(raw)
        text = raw[begin:end]
        return parse_object(raw[:begin] + raw[end:])

    try:
        read = read_object(folder / name, folder, parse=parse)
    except JsonError as error:
        code = error.code if error.fault in ("lfs_pointer", "file") else "index_bad"
        raise BadIndex(code, error.found, where=name, remedy=error.remedy) from None
    entries = read.value.get("weight_map")
    if not isinstance(entries, dict):
        found = "weight_map is not an object" if "weight_map" in read.value else "there is no weight_map"
        raise BadIndex("index_bad", found, where=name, remedy="fetch the index again")
    problems = [Problem(severity="warning", where=name, found=note.found, code="index_text") for note in read.notes]
    entries = _safe_entries(entries, name, problems)
    shards = files or tuple(sorted(set(entries.values())))
    if len(shards) > MOST_SHARDS:
        raise _too_many(len(shards))
    metadata = read.value.get("metadata")
    if name == SAFETENSORS_INDEX and not isinstance(metadata, dict):
        found = "metadata is no object" if "metadata" in read.value else "there is no metadata"
        found += ": transformers stops there, vLLM reads the weights"
        problems.append(Problem(severity="warning", where=name, found=found, code="index_metadata"))
    return Index(
        name,
        shards,
        _total(metadata, "total_size", name, problems),
        _total(metadata, "total_parameters", name, problems),
        tuple(problems),
        text,
        entries,
    )


def missing_shards(index: Index, present: Iterable[str], bytes_present: int | None) -> list[Problem]:
    """Every file that the index names and that is not there, with its tensors and the bytes lost.

    `bytes_present` are the tensor bytes of the files that are there, None when they are not all known.
    """
    there = set(present)
    gone = [shard for shard in index.shards if shard not in there]
    if not gone:
        return []
    held = Counter(index.weight_map().values())
    lost = index.total_size - bytes_present if index.total_size and bytes_present is not None else 0
    size = f"; {lost:,} bytes are missing in all" if lost > 0 else ""
    if index.total_size is None:
        size = "; the index has no total_size, so the bytes lost are not known"
    share = f" of {len(index.shards)} files" if len(index.shards) > 1 else ""
    in_all = f" ({len(gone)}{share} missing{size})"
    problems: list[Problem] = []
    for shard in gone:
        tensors = counted(held[shard], "tensor")
        found = f"missing; {index.name} puts {tensors} into it{'' if problems else in_all}"
        remedy = "fetch the file again"
        problems.append(Problem(severity="error", where=shard, found=found, remedy=remedy, code="shard_missing"))
    return problems


def misplaced(index: Index, columns: TensorColumns) -> list[Problem]:
    """Where the index and the headers that were read disagree."""
    if index.text and _spells(index.text, columns):
        return []
    weight_map = index.weight_map()
    shard_of = dict(zip(columns.names, map(columns.shards.__getitem__, columns.shard_ids), strict=True))
    read = set(columns.shards)
    ghosts, elsewhere = [], []
    for tensor, shard in weight_map.items():
        found = shard_of.get(tensor)
        if found is None and shard in read:
            ghosts.append(tensor)
        elif found is not None and found != shard:
            elsewhere.append(tensor)
    unlisted = [tensor for tensor in shard_of if tensor not in weight_map]
    problems = []
    if index.text and index.text.count(b'"') != QUOTES * len(weight_map):
        found = "a tensor stands twice in weight_map; the last entry counts"
        problems.append(Problem(severity="warning", where=index.name, found=found, code="index_text"))
    if ghosts:
        found = f"names {counted(len(ghosts), 'tensor')} that the files do not hold: {listed(ghosts)}"
        problems.append(Problem(severity="error", where=index.name, found=found, code="index_tensor_absent"))
    if elsewhere:
        found = f"puts {counted(len(elsewhere), 'tensor')} into another file than the headers do: {listed(elsewhere)}"
        problems.append(Problem(severity="error", where=index.name, found=found, code="index_wrong_shard"))
    if unlisted:
        found = f"does not list {counted(len(unlisted), 'tensor')} that the files hold: {listed(unlisted)}"
        problems.append(Problem(severity="warning", where=index.name, found=found, code="index_unlisted"))
    return problems


def _usual_entries(raw: bytes) -> tuple[int, int, tuple[str, ...]]:
    """Where the entries of weight_map stand, and the files they name, when quotes alone part names from files.

    Any other spelling gives (0, 0, ()), and the text is parsed as JSON.
    """
    other: tuple[int, int, tuple[str, ...]] = (0, 0, ())
    key = raw.find(b'"weight_map"')
    begin = raw.find(b"{", key) + 1
    end = raw.find(b"}", begin)
    if key < 0 or not 0 < begin < end or b"\\" in raw:
        return other
    found = _FILES.findall(raw, begin, end)
    if QUOTES * len(found) != raw.count(b'"', begin, end):
        return other
    files = sorted(set(found))
    if len(files) > MOST_SHARDS:
        raise _too_many(len(files))
    if not all(file.isascii() and file.endswith(b".safetensors") for file in files):
        return other
    names = tuple(file.decode() for file in files)
    return other if any(_refusal(name, "") for name in names) else (begin, end, names)


def _too_many(files: int) -> BadIndex:
    return BadIndex("index_bad", f"names {files:,} files, more than {MOST_SHARDS:,}")


def _spells(text: bytes, columns: TensorColumns) -> bool:
    """True when the entries, in the order of the files or sorted by name, are letter by letter what was read."""
    gap = _GAP.match(text)
    between = f'"{gap[1].decode()}"' if gap else '","'
    said = text[text.index(b'"') + 1 : text.rindex(b'"')]
    rows = range(len(columns))
    if said.startswith(_spelled(columns, between, rows[:1])) and said == _spelled(columns, between, rows):
        return True
    by_name = sorted(rows, key=columns.names.__getitem__)
    return said == _spelled(columns, between, by_name)


def _spelled(columns: TensorColumns, between: str, order: Sequence[int]) -> bytes:
    """The entries of an index as its usual writers spell them, without the first and the last quote."""
    after = [f'": "{shard}{between}' for shard in columns.shards]
    pieces = [""] * (2 * len(order))
    whole = order == range(len(columns))
    pieces[::2] = columns.names if whole else [columns.names[row] for row in order]
    shards = columns.shard_ids if whole else [columns.shard_ids[row] for row in order]
    pieces[1::2] = [after[shard] for shard in shards]
    return "".join(pieces).removesuffix(between).encode("utf-8", "surrogatepass")


def _safe_entries(weight_map: dict[str, Any], name: str, problems: list[Problem]) -> dict[str, str]:
    if set(map(type, weight_map.values())) - {str}:
        wrong = [file for file in weight_map.values() if not isinstance(file, str)]
        found = f"weight_map gives {quoted(wrong[0])} in place of a file name (entries of this kind: {len(wrong):,})"
        problems.append(Problem(severity="error", where=name, found=found, code="index_bad"))
        weight_map = {tensor: file for tensor, file in weight_map.items() if isinstance(file, str)}
    refused = {file: problem for file in set(weight_map.values()) if (problem := _refusal(file, name))}
    problems += refused.values()
    return {key: file for key, file in weight_map.items() if file not in refused} if refused else weight_map


def _refusal(file: str, index: str) -> Problem | None:
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts or "\\" in file:
        code, found = "index_path_escape", f"weight_map leads outside the model's folder: {quoted(file)}"
    elif not path.parts or "\0" in file or not _encodable(file):
        code, found = "index_bad", f"weight_map gives {quoted(file)} in place of a file name"
    else:
        return None
    return Problem(severity="error", where=index, found=found, remedy="do not load this model", code=code)


def _encodable(file: str) -> bool:
    """False for a name with a lone surrogate, which no file can have."""
    try:
        os.fsencode(file)
    except UnicodeEncodeError:
        return False
    return True


def _total(metadata: object, key: str, name: str, problems: list[Problem]) -> int | None:
    value = metadata.get(key) if isinstance(metadata, dict) else None
    if value is None or (type(value) is int and value >= 0):
        return value
    if type(value) is float and value >= 0 and value.is_integer():
        return int(value)
    found = f"{key} is {quoted(value)}, not a number"
    problems.append(Problem(severity="warning", where=name, found=found, code=f"index_{key}"))
    return None
