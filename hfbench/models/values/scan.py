"""Measures every tensor of a checkpoint: threads read and count, the calling one puts their tallies together."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from hfbench.models.checkpoint import Checkpoint
from hfbench.models.remote_mark import refuse_headers_only
from hfbench.models.values.codes import code_of
from hfbench.models.values.crew import Counted, Crew, Piece, threads_here
from hfbench.models.values.decode import load_numpy
from hfbench.models.values.facts import ValueScan
from hfbench.models.values.listing import Listing
from hfbench.models.values.tally import Tally

STRETCH = 2**23
"""Bytes a thread takes at once, of one tensor or of many small ones."""


@dataclass(slots=True)
class Begun:
    """A tensor of which some pieces were counted."""

    left: int
    """Bytes still to come."""
    tally: Tally = field(default_factory=Tally)
    trouble: str = ""


def scan_values(
    checkpoint: Checkpoint, done: Callable[[int, int], None] = lambda done, total: None, *, threads: int | None = None
) -> ValueScan:
    """The figures of every tensor; `done` is told the bytes behind and their total, some times a second.

    A file that gives out makes the tensors unmeasured that it owes; the others are measured all the same.
    MissingError without numpy. The memory it takes does not depend on the sizes of tensors.
    """
    refuse_headers_only(checkpoint.folder, "reading values")
    load_numpy()
    return _Scan(checkpoint).made(done, threads or threads_here())


class _Scan:
    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint, self.columns = checkpoint, checkpoint.columns
        self.codes = [code_of(dtype) for dtype in self.columns.dtypes]
        self.listing = Listing()
        self.begun: dict[int, Begun] = {}
        self.behind = 0

    def made(self, done: Callable[[int, int], None], threads: int) -> ValueScan:
        began = time.monotonic()
        rows = self.rows()
        total = sum(map(self.columns.sizes.__getitem__, rows))
        done(0, total)
        with Crew(self.checkpoint, handfuls(self.pieces(rows)), threads) as crew:
            for found in crew.results():
                for counted in found:
                    self.add(counted)
                done(self.behind, total)
        return self.listing.scan(bytes=self.behind, seconds=time.monotonic() - began)

    def rows(self) -> list[int]:
        """The tensors to read in the order of the files; those without values to read are listed at once."""
        columns, found = self.columns, []
        for row in sorted(range(len(columns)), key=self.place):
            code = self.codes[columns.dtype_ids[row]]
            if code is None:
                self.listing.miss(self.place(row), columns[row], f"{columns[row].dtype} values are packed")
            elif not columns.sizes[row]:
                self.listing.measure(self.place(row), columns[row], code, Tally())
            else:
                found.append(row)
        return found

    def place(self, row: int) -> tuple[int, int]:
        return self.columns.shard_ids[row], self.columns.begins[row]

    def pieces(self, rows: Iterable[int]) -> Iterator[Piece]:
        for row in rows:
            tensor, code = self.columns[row], self.codes[self.columns.dtype_ids[row]]
            assert code, "the others are not to be read"
            for begin in range(tensor.begin, tensor.end, STRETCH):
                yield Piece(row, tensor.shard, code, begin, min(begin + STRETCH, tensor.end))

    def add(self, counted: Counted) -> None:
        """Take in a piece, and list its tensor when it was the last."""
        row, size = counted.piece.row, counted.piece.end - counted.piece.begin
        begun = self.begun.setdefault(row, Begun(self.columns.sizes[row]))
        begun.left -= size
        begun.tally.add(counted.tally)
        begun.trouble = begun.trouble or counted.trouble
        self.behind += size
        if begun.left:
            return
        del self.begun[row]
        if begun.trouble:
            self.listing.miss(self.place(row), self.columns[row], begun.trouble)
        else:
            self.listing.measure(self.place(row), self.columns[row], counted.piece.code, begun.tally)


def handfuls(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Pieces in lists of about one stretch each."""
    hand, size = list[Piece](), 0
    for piece in pieces:
        hand.append(piece)
        size += piece.end - piece.begin
        if size >= STRETCH:
            yield hand
            hand, size = [], 0
    if hand:
        yield hand
