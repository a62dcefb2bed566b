"""Files put together again from stretches of xorbs, whole or from any byte to any other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Event

from hfbench.registry.xet.hashes import file_hash
from hfbench.registry.xet.shards import Term
from hfbench.registry.xet.xorbs import Chunk, XorbIndex, read_range

STRIDE = 64
"""Chunks unpacked at a time: 4 MiB as clients cut them."""

Indexes = Mapping[bytes, XorbIndex]


class TermError(ValueError):
    """Stretches that do not fit the xorbs they name."""


def check_terms(terms: Sequence[Term], indexes: Indexes) -> None:
    """TermError unless every stretch lies in its xorb and is as long as it says."""
    for term in terms:
        chunks = indexes[term.xorb].chunks
        if term.end > len(chunks):
            raise TermError(f"a stretch ends at chunk {term.end:,}, its xorb has {len(chunks):,}")
        length = sum(chunk.length for chunk in chunks[term.start : term.end])
        if length != term.length:
            raise TermError(f"a stretch claims {term.length:,} bytes, its chunks have {length:,}")


def hash_of_terms(terms: Sequence[Term], indexes: Indexes, stop: Event | None = None) -> bytes:
    """The name of the file these stretches make, from hashes of chunks that were verified: nothing is unpacked.

    TermError once the event is set.
    """

    def chunks() -> Iterator[Chunk]:
        for term in terms:
            if stop is not None and stop.is_set():
                raise TermError("it was given up")
            yield from indexes[term.xorb].chunks[term.start : term.end]

    return file_hash((chunk.hash, chunk.length) for chunk in chunks())


def rebuilt(
    terms: Sequence[Term], indexes: Indexes, path_of: Callable[[bytes], Path], *, start: int = 0, end: int | None = None
) -> Iterator[bytes]:
    """The bytes `start` to `end` of a file, the last not included, in pieces of a chunk.

    FileNotFoundError or XorbError where a xorb is gone or damaged; of a whole file the caller compares the hash.
    """
    at, hashed = 0, start > 0 or end is not None
    for term in terms:
        below, at = at, at + term.length
        if at <= start:
            continue
        if end is not None and below >= end:
            return
        upto = at if end is None else end
        yield from _stretch(term, indexes[term.xorb], path_of(term.xorb), below, start, upto, hashed=hashed)


def _stretch(
    term: Term, index: XorbIndex, path: Path, at: int, start: int, end: int, *, hashed: bool
) -> Iterator[bytes]:
    """What of one stretch, which begins at byte `at` of the file, lies between `start` and `end`."""
    with path.open("rb") as file:
        place = term.start
        while place < term.end and at < end:
            length = index.chunks[place].length
            if at + length <= start:  # before the range: not even read
                place, at = place + 1, at + length
                continue
            upto = min(place + STRIDE, term.end)
            for data in read_range(file, index, place, upto, hashed=hashed):
                if at >= end:
                    return
                piece = data[max(start - at, 0) : end - at]
                at += len(data)
                yield piece
            place = upto
