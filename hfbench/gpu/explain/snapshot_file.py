"""Snapshots of torch's allocator in files: read without running anything, and written bounded in size."""

from __future__ import annotations

import io
import json
import os
import pickle
from pathlib import Path
from typing import Any, NoReturn

from hfbench.errors import HfbenchError
from hfbench.gpu.explain.segments import BadSnapshot, Segment, Snapshot, read_raw
from hfbench.units import show_bytes

MOST_FILE_BYTES = 2**30
"""Read of one file at most: with recorded history snapshots grow without a bound."""
MOST_WRITTEN_BLOCKS = 100_000
"""Blocks written of one snapshot, those of the largest segments first: some 3 MB of JSON."""
MOST_WRITTEN_SEGMENTS = 20_000
KIND = "hfbench.memory-snapshot"


class _ContainersOnly(pickle.Unpickler):
    """Dictionaries, lists, tuples, numbers and text: all a snapshot is made of. A class or function is refused."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, and a snapshot needs no code")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise pickle.UnpicklingError("it refers to objects outside the file")


def read_snapshot(path: Path) -> Snapshot:
    """A snapshot from the pickle that torch dumps, or from JSON; BadSnapshot for anything else."""
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise BadSnapshot("is not a file", where=path)
        if size > MOST_FILE_BYTES:
            remedy = "dump it with _record_memory_history(enabled=None), which leaves the history out"
            raise BadSnapshot(
                f"has {show_bytes(size)}, {show_bytes(MOST_FILE_BYTES)} are read", where=path, remedy=remedy
            )
        data = path.read_bytes()
    except OSError as error:
        raise HfbenchError(error.strerror or "cannot be read", where=path) from error
    return read_raw(_parsed(data, path), path)


def _parsed(data: bytes, where: Path) -> Any:
    remedy = "give what torch.cuda.memory._dump_snapshot wrote, or the same as JSON"
    if data.lstrip()[:1] in (b"{", b"[") and not data.startswith(b"\x80"):
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise BadSnapshot(f"is no JSON: {error}", where=where, remedy=remedy) from error
    try:
        return _ContainersOnly(io.BytesIO(data)).load()
    except MemoryError as error:
        raise BadSnapshot("claims more than memory holds", where=where, remedy=remedy) from error
    except Exception as error:  # a damaged pickle raises whatever its bytes happen to ask for
        raise BadSnapshot(f"is no snapshot: {error}"[:300], where=where, remedy=remedy) from error


def snapshot_data(snapshot: Snapshot) -> dict[str, Any]:
    """A snapshot as JSON data that `read_snapshot` reads back to the same sums, with blocks of the largest segments."""
    ordered = sorted(snapshot.segments, key=lambda each: -each.total)
    left, listed = MOST_WRITTEN_BLOCKS, []
    for segment in ordered[:MOST_WRITTEN_SEGMENTS]:
        whole = len(segment.blocks) <= left
        left -= len(segment.blocks) if whole else 0
        listed.append(_segment_data(segment, blocks=whole))
    listed += _together(ordered[MOST_WRITTEN_SEGMENTS:])
    refused = snapshot.refusals
    traces = [
        [{"action": "oom", "size": refused[device].size, "device_free": refused[device].device_free}]
        if device in refused
        else []
        for device in range(max(refused, default=-1) + 1)
    ]
    return {
        "kind": KIND,
        "segments": listed,
        "device_traces": traces,
        "allocator_settings": {} if snapshot.expandable is None else {"expandable_segments": snapshot.expandable},
    }


def write_snapshot(path: Path, snapshot: Snapshot) -> None:
    """Write it as one JSON file that appears whole."""
    unseen = path.with_name(f".{path.name}.new")
    unseen.write_text(json.dumps(snapshot_data(snapshot), separators=(",", ":")), encoding="utf-8")
    os.replace(unseen, path)


def _segment_data(segment: Segment, *, blocks: bool) -> dict[str, Any]:
    return {
        "device": segment.device,
        "total_size": segment.total,
        "allocated_size": segment.allocated,
        "free_size": segment.free,
        "largest_free": segment.largest_free,
        "stream": segment.stream,
        "segment_type": "large" if segment.large else "small",
        "segment_pool_id": list(segment.pool),
        "is_expandable": segment.expandable,
        "blocks": [list(block) for block in segment.blocks] if blocks else [],
    }


def _together(segments: list[Segment]) -> list[dict[str, Any]]:
    """The smallest segments as one of each kind: their sums stay right."""
    alike: dict[tuple[int, bool, tuple[int, int], bool, bool, bool], list[Segment]] = {}
    for each in segments:
        kind = (each.device, each.large, each.pool, each.expandable, each.split, each.free == 0)
        alike.setdefault(kind, []).append(each)
    return [
        _segment_data(
            Segment(
                device=device,
                total=sum(each.total for each in group),
                allocated=sum(each.allocated for each in group),
                free=sum(each.free for each in group),
                largest_free=max(each.largest_free for each in group),
                large=large,
                pool=pool,
                expandable=expandable,
            ),
            blocks=False,
        )
        for (device, large, pool, expandable, _, _), group in alike.items()
    ]
