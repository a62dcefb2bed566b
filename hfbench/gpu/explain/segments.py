"""Segments and blocks of torch's caching allocator, and what they add up to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hfbench.errors import HfbenchError
from hfbench.gpu.explain.picture import MemoryPicture

SMALL_REQUEST = 2**20
"""Up to here a request is served from small segments (kSmallSize of c10/cuda/CUDACachingAllocator.cpp)."""
SMALL_SEGMENT = 2**21
"""What is asked of the driver for a small request (kSmallBuffer); a larger request asks for 20 MiB or more."""
MOST_BLOCKS = 5_000_000
"""Looked at in all: a snapshot whose lists are shared between segments ends here, not in hours."""
NO_POOL = (0, 0)
"""The pool id of segments that belong to no private pool."""
FREE = "inactive"


class BadSnapshot(HfbenchError):
    """A file that is no snapshot of torch's allocator."""


@dataclass(frozen=True, kw_only=True)
class Segment:
    """One stretch of memory that the allocator took from the driver. Bytes; `blocks` are (bytes, state) in order."""

    device: int
    total: int
    allocated: int
    free: int
    largest_free: int
    stream: int = 0
    large: bool = True
    pool: tuple[int, int] = NO_POOL
    expandable: bool = False
    blocks: tuple[tuple[int, str], ...] = ()

    @property
    def split(self) -> bool:
        """A part is free while another is not: the segment cannot be given back."""
        return 0 < self.free < self.total


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """An `oom` entry of the allocator's trace."""

    size: int
    device_free: int | None


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """What `torch.cuda.memory._snapshot()` tells, without stack frames and addresses."""

    segments: tuple[Segment, ...]
    refusals: Mapping[int, Refusal]
    """The last refused request of each device, where history was recorded."""
    expandable: bool | None = None
    notes: tuple[str, ...] = ()

    @property
    def devices(self) -> tuple[int, ...]:
        """Numbers of the devices it tells of, those that refused first, then by what is reserved."""
        held: dict[int, int] = dict.fromkeys(self.refusals, 0)
        for each in self.segments:
            held[each.device] = held.get(each.device, 0) + each.total
        return tuple(sorted(held, key=lambda device: (device not in self.refusals, -held[device])))

    def picture(self, device: int, request: int | None = None) -> MemoryPicture:
        """The sums over one device's segments. `request`, as an error told it, says which blocks could have served."""
        own = [each for each in self.segments if each.device == device]
        refusal = self.refusals.get(device)
        asked = refusal.size if refusal else request
        small = asked is not None and asked <= (SMALL_REQUEST if refusal else SMALL_SEGMENT)
        open_to_all = [each for each in own if each.pool == NO_POOL]
        private = [each for each in own if each.pool != NO_POOL]
        fitting = [each.largest_free for each in open_to_all if each.large is not small]
        return MemoryPicture(
            device=f"cuda:{device}",
            failed=refusal is not None,
            request=asked,
            free=refusal.device_free if refusal else None,
            allocated=sum(each.allocated for each in own),
            reserved=sum(each.total for each in own),
            largest_free=max(fitting, default=0),
            inactive_split=sum(each.free for each in open_to_all if each.split),
            private_reserved=sum(each.total for each in private),
            private_cached=sum(each.free for each in private),
            expandable=self.expandable if self.expandable is not None else any(each.expandable for each in own),
        )


def read_raw(data: Any, where: object = "") -> Snapshot:
    """A snapshot as torch makes it: a dictionary with `segments`, or the bare list of `memory_snapshot()`.

    BadSnapshot names what is wrong. Segments whose blocks do not add up are kept and told in `notes`.
    """
    listed = data.get("segments") if isinstance(data, Mapping) else data
    if not isinstance(listed, (list, tuple)):
        raise BadSnapshot(
            "holds no list of segments", where=where, remedy="give what torch.cuda.memory._dump_snapshot wrote"
        )
    segments, seen, odd = [], 0, 0
    for number, each in enumerate(listed):
        segment = _segment(each, number, where)
        seen += len(segment.blocks)
        if seen > MOST_BLOCKS:
            raise BadSnapshot(
                f"holds over {MOST_BLOCKS:,} blocks", where=where, remedy="take it with fewer tensors alive"
            )
        odd += bool(segment.blocks) and sum(size for size, _ in segment.blocks) != segment.total
        segments.append(segment)
    notes = (f"the blocks of {odd} of {len(segments)} segments do not add up to the segment",) if odd else ()
    told: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
    return Snapshot(
        segments=tuple(segments), refusals=_refusals(told), expandable=_expandable(told, segments), notes=notes
    )


def _segment(data: Any, number: int, where: object) -> Segment:
    if not isinstance(data, Mapping):
        raise BadSnapshot(f"segment {number} is no dictionary", where=where)
    total = _whole(data, "total_size", number, where)
    blocks = tuple(_blocks(data.get("blocks"), number, where))
    gaps = [size for size, state in blocks if state == FREE]
    pool = data.get("segment_pool_id")
    known = isinstance(pool, (list, tuple)) and len(pool) == 2 and all(type(part) is int for part in pool)
    return Segment(
        device=_whole(data, "device", number, where, missing=0),
        total=total,
        allocated=_whole(data, "allocated_size", number, where, missing=total - sum(gaps) if blocks else None),
        free=sum(gaps) if blocks else _whole(data, "free_size", number, where, missing=0),
        largest_free=max(gaps, default=0) if blocks else _whole(data, "largest_free", number, where, missing=0),
        stream=_whole(data, "stream", number, where, missing=0),
        large=data.get("segment_type") != "small",
        pool=(pool[0], pool[1]) if known and pool is not None else NO_POOL,
        expandable=data.get("is_expandable") is True,
        blocks=blocks,
    )


def _blocks(data: Any, number: int, where: object) -> Iterable[tuple[int, str]]:
    """As dictionaries, as torch has them, or as pairs, as hfbench writes them."""
    for block in data if isinstance(data, (list, tuple)) else ():
        pair = (block.get("size"), block.get("state")) if isinstance(block, Mapping) else block
        if not (isinstance(pair, Sequence) and len(pair) == 2 and type(pair[0]) is int and isinstance(pair[1], str)):
            raise BadSnapshot(f"a block of segment {number} has no size and state", where=where)
        if pair[0] < 0:
            raise BadSnapshot(f"a block of segment {number} has {pair[0]} bytes", where=where)
        yield pair[0], pair[1]


def _whole(data: Mapping[str, Any], name: str, number: int, where: object, missing: int | None = None) -> int:
    value = data.get(name, missing)
    if type(value) is not int or value < 0:
        raise BadSnapshot(f"{name} of segment {number} is {value!r}, a number of bytes was expected"[:200], where=where)
    return value


def _refusals(data: Mapping[str, Any]) -> dict[int, Refusal]:
    found: dict[int, Refusal] = {}
    traces = data.get("device_traces")
    for device, trace in enumerate(traces if isinstance(traces, (list, tuple)) else ()):
        for entry in trace if isinstance(trace, (list, tuple)) else ():
            if isinstance(entry, Mapping) and entry.get("action") == "oom" and type(entry.get("size")) is int:
                free = entry.get("device_free")
                found[device] = Refusal(size=entry["size"], device_free=free if type(free) is int else None)
    return found


def _expandable(data: Mapping[str, Any], segments: Sequence[Segment]) -> bool | None:
    settings = data.get("allocator_settings")
    told = settings.get("expandable_segments") if isinstance(settings, Mapping) else None
    if isinstance(told, bool):
        return told
    return True if any(each.expandable for each in segments) else None
