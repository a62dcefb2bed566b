"""What a tensor table shows: filter, order and groups over columns that may still grow."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from time import monotonic

from hfbench.models.columns import Shape, TensorColumns, TensorInfo
from hfbench.widgets.tensor_filter import SLICE, Hits, Query, TensorFilter
from hfbench.widgets.tensor_groups import TensorGroups
from hfbench.widgets.tensor_order import Sort, natural, order_rows
from hfbench.widgets.tensor_widths import TensorWidths

ORDERS: tuple[tuple[Sort, bool], ...] = (
    (Sort.FILE, False),
    (Sort.NAME, False),
    (Sort.NAME, True),
    (Sort.SIZE, True),
    (Sort.SIZE, False),
)
"""The orders `o` walks through: what by, and whether descending."""

_PAGE = 100

Work = Generator[None, None, None]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: a tensor, or a group of `count` tensors of `size` bytes each."""

    name: str
    dtype: str
    shape: Shape
    size: int
    count: int
    row: int
    """The tensor's row in the columns; of a group, its first that is shown."""
    group: int = -1
    """The group's number, or -1 for a tensor."""
    unfolded: bool = False
    inside: bool = False
    """A member below its unfolded group."""


class TensorRows:
    """An indexable view of tensor columns.

    Changes only start work, which `step` carries on in short pieces; until the first page of the answer is there,
    the view is that of before. `changes` counts every change of what an index shows; rows added at the end do not.
    """

    def __init__(self, columns: TensorColumns | None = None, *, grouped: bool = False) -> None:
        self.columns = columns if columns is not None else TensorColumns()
        self.grouped = grouped
        self.sort, self.descending = ORDERS[0]
        self.query = Query.parse("")
        self.changes = 0
        self.widths = TensorWidths()
        self._measured = 0
        self._total_bytes = 0
        self._filter = TensorFilter(self.columns)
        self._groups = TensorGroups(self.columns)
        self._order: tuple[tuple[int, Sort, bool], Sequence[int]] | None = None
        self._hits = Hits(range(0), complete=True)
        self._shown: tuple[str, Sort, bool] | None = None
        """Query and order of the tensors listed now; None while they are grouped."""
        self._counts: Counter[int] = Counter()
        self._first_hit: dict[int, int] = {}
        self._shown_groups: list[int] | None = None
        self._unfolded: dict[int, list[int]] = {}
        self._starts: list[int] = []
        self._work: Work | None = None
        self._stale = False
        self._restart(grown=True)

    @property
    def total(self) -> int:
        """Tensors whose shards are read."""
        return self._measured

    @property
    def total_bytes(self) -> int:
        """Bytes of all of them."""
        return self._total_bytes

    @property
    def shown(self) -> int:
        """Tensors that match the filter."""
        return len(self._hits.rows)

    @property
    def bytes(self) -> int:
        """Bytes of the tensors that match."""
        return self._hits.bytes

    @property
    def busy(self) -> bool:
        """Whether `step` has more to do."""
        return self._work is not None

    def set_filter(self, text: str) -> None:
        """Show the tensors that match `text`: words joined by AND, `*` for anything, capitals mind the case."""
        self.query = Query.parse(text)
        self._restart()

    def set_order(self, sort: Sort, descending: bool) -> None:
        """Order tensors, or groups by their name and their bytes in all."""
        self.sort, self.descending = sort, descending
        self._restart()

    def next_order(self) -> None:
        """The next of ORDERS."""
        at = ORDERS.index((self.sort, self.descending)) if (self.sort, self.descending) in ORDERS else -1
        self.set_order(*ORDERS[(at + 1) % len(ORDERS)])

    def set_grouped(self, grouped: bool) -> None:
        """Gather tensors that differ only in numbers, or list each."""
        self.grouped = grouped
        self._restart()

    def grow(self) -> None:
        """Take in rows added to the columns; work under way is finished first, so that a flood cannot starve it."""
        if self.busy:
            self._stale = True
        else:
            self._restart(grown=True)

    def step(self, seconds: float) -> bool:
        """Work for about `seconds`; True while there is more to do."""
        until = monotonic() + seconds
        while self._work is not None:
            try:
                next(self._work)
            except StopIteration:
                self._work = None
                if self._stale:
                    self._restart(grown=True)
            if monotonic() >= until:
                break
        return self.busy

    def settle(self) -> None:
        """Finish the work at hand."""
        while self.step(1.0):
            pass

    def toggle(self, index: int) -> bool:
        """Unfold or fold the group at `index`; False when there is no group of several tensors."""
        line = self[index]
        if line.group < 0 or line.count < 2:
            return False
        if line.unfolded:
            del self._unfolded[line.group]
        else:
            self._unfolded[line.group] = self._sorted_members(line.group)
        self._lay_groups()
        return True

    def tensor(self, index: int) -> TensorInfo:
        """The tensor at `index`; of a group, its first."""
        return self.columns[self[index].row]

    def __len__(self) -> int:
        if self._shown_groups is None:
            return len(self._hits.rows)
        return len(self._shown_groups) + sum(map(len, self._unfolded.values()))

    def __getitem__(self, index: int) -> Line:
        if not 0 <= index < len(self):
            raise IndexError(index)
        if self._shown_groups is None:
            return self._tensor_line(self._hits.rows[index])
        if not self._unfolded:
            return self._group_line(self._shown_groups[index])
        at = bisect_right(self._starts, index) - 1
        group, below = self._shown_groups[at], index - self._starts[at]
        return self._tensor_line(self._unfolded[group][below - 1], inside=True) if below else self._group_line(group)

    def _restart(self, *, grown: bool = False) -> None:
        """Begin anew. What a key asked for is answered from the rows there are, before others are taken in."""
        self._stale = not grown and len(self.columns.shard_ids) > self._measured
        self._work = self._build(grown)

    def _build(self, grown: bool) -> Work:
        if grown:
            yield from self._measure()
        count = self._measured
        before = self._order[0] if self._order else None
        # Groups are ordered themselves; their members are sorted when one is unfolded.
        wanted = (count, Sort.FILE, False) if self.grouped else (count, self.sort, self.descending)
        if self._order is None or self._order[0] != wanted:
            order = yield from order_rows(self.columns, *wanted)
            self._order = wanted, order
            if before is None or before[1:] != wanted[1:] or wanted[1:] != ORDERS[0]:
                self._filter.forget()
        if self.grouped:
            yield from self._groups.extend(count)
        published = False
        for hits in self._filter.run(self.query, self._order[1], self._total_bytes):
            if not self.grouped and (hits.complete or published or len(hits.rows) >= _PAGE):
                if not published:
                    self._publish(hits)
                published = True
            if not hits.complete:
                yield
        if self.grouped:
            yield from self._publish_groups(hits)

    def _measure(self) -> Work:
        """Take in rows whose shard is complete: the reader appends the shard numbers last."""
        ready = len(self.columns.shard_ids)
        for begin in range(self._measured, ready, SLICE):
            end = min(begin + SLICE, ready)
            if self.widths.extend(self.columns, begin, end):
                self.changes += 1
            self._total_bytes += sum(self.columns.sizes[begin:end])
            self._measured = end
            if end < ready:
                yield

    def _publish(self, hits: Hits) -> None:
        """Show other hits. In the order of the file, those of the same query only go on where they ended."""
        shown = (self.query.text, self.sort, self.descending)
        goes_on = shown == self._shown and shown[1:] == ORDERS[0] and len(hits.rows) >= len(self._hits.rows)
        self._hits, self._shown = hits, shown
        self._shown_groups = None
        self._unfolded = {}
        self.changes += not goes_on

    def _publish_groups(self, hits: Hits) -> Work:
        counts: Counter[int] = Counter()
        first_hit: dict[int, int] = {}
        ids = self._groups.ids
        if not self.query.terms:
            counts = self._groups.totals.copy()
        else:
            for begin in range(0, len(hits.rows), SLICE):
                rows = hits.rows[begin : begin + SLICE]
                groups = [ids[row] for row in rows]
                counts.update(groups)
                first_hit = dict(zip(reversed(groups), reversed(rows), strict=True)) | first_hit
                yield
        kept = [group for group in self._unfolded if group in counts]
        self._hits, self._counts, self._first_hit, self._shown = hits, counts, first_hit, None
        self._shown_groups = self._sorted_groups(counts)
        self._unfolded = {group: self._sorted_members(group) for group in kept}
        self._lay_groups()

    def _sorted_groups(self, counts: Counter[int]) -> list[int]:
        groups = sorted(counts)
        if self.sort is Sort.NAME:
            groups.sort(key=lambda group: natural(self._groups.patterns[group]), reverse=self.descending)
        elif self.sort is Sort.SIZE:
            groups.sort(key=lambda group: counts[group] * self._groups.size(group), reverse=self.descending)
        return groups

    def _sorted_members(self, group: int) -> list[int]:
        members = self._groups.members(group, self._hits.rows)
        if self.sort is Sort.NAME:
            members.sort(key=lambda row: natural(self.columns.names[row]), reverse=self.descending)
        return members

    def _lay_groups(self) -> None:
        shown = self._shown_groups or []
        lengths = (1 + len(self._unfolded.get(group, ())) for group in shown)
        self._starts = [0, *accumulate(lengths)][:-1] if self._unfolded else []
        self.changes += 1

    def _tensor_line(self, row: int, *, inside: bool = False) -> Line:
        columns = self.columns
        return Line(
            columns.names[row],
            columns.dtypes[columns.dtype_ids[row]],
            columns.shapes[columns.shape_ids[row]],
            columns.sizes[row],
            1,
            row,
            inside=inside,
        )

    def _group_line(self, group: int) -> Line:
        count = self._counts[group]
        row = self._first_hit.get(group, self._groups.firsts[group])
        if count == 1:
            return self._tensor_line(row)
        groups = self._groups
        return Line(
            groups.patterns[group],
            groups.dtype(group),
            groups.shape(group),
            groups.size(group),
            count,
            row,
            group,
            group in self._unfolded,
        )
