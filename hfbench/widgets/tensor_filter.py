"""The incremental filter of the tensor table: queries, and their hits found a slice at a time."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from hfbench.models.columns import TensorColumns

SLICE = 20_000
"""Rows looked at between two chances to paint: 3 to 10 ms."""

_SAMPLE = 1 << 16
_DENSE = 100

Rows = Sequence[int]


@dataclass(frozen=True, slots=True)
class Term:
    """One word of a query: parts that must occur in this order. Capitals make it mind the case."""

    parts: tuple[str, ...]
    exact: bool

    def matches(self, name: str) -> bool:
        """Whether the parts occur in `name`, one after another."""
        text, at = (name if self.exact else name.lower()), 0
        for part in self.parts:
            found = text.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        return True


@dataclass(frozen=True, slots=True)
class Query:
    """Words that must all match; `*` in a word stands for anything."""

    text: str
    terms: tuple[Term, ...]

    @classmethod
    def parse(cls, text: str) -> Query:
        """Every text is a query; one without words matches everything."""
        words = (tuple(part for part in word.split("*") if part) for word in text.split())
        return cls(text, tuple(Term(parts, any(part != part.lower() for part in parts)) for parts in words if parts))

    def matches(self, name: str) -> bool:
        """Whether every word matches `name`."""
        return all(term.matches(name) for term in self.terms)


@dataclass(slots=True)
class Hits:
    """Rows that match, in the order of the table, and the bytes of their tensors."""

    rows: Rows
    bytes: int = 0
    complete: bool = False


@dataclass(slots=True)
class _Blob:
    """The names of one slice in one text, and where each begins."""

    text: str
    lower: str | None
    starts: list[int]


@dataclass(slots=True)
class TensorFilter:
    """Finds hits slice by slice and keeps those of shorter queries, so that typing narrows and backspace is free."""

    columns: TensorColumns
    _stack: list[tuple[Query, Hits]] = field(default_factory=list)
    _blobs: dict[int, _Blob] = field(default_factory=dict)

    def forget(self) -> None:
        """Drop kept hits: the order or the number of rows changed."""
        self._stack.clear()

    def run(self, query: Query, order: Rows, everything: int) -> Iterator[Hits]:
        """The hits of `query` among `order`, growing; the last one yielded is complete.

        `everything` is the sum of bytes of all rows, the answer for a query without words.
        """
        if not query.terms:
            yield Hits(order, everything, complete=True)
            return
        while self._stack and not query.text.startswith(self._stack[-1][0].text):
            self._stack.pop()
        if self._stack and self._stack[-1][0].text == query.text:
            yield self._stack[-1][1]
            return
        source = self._stack[-1][1].rows if self._stack else order
        rows = array("I")
        hits = Hits(rows)
        for begin in range(0, len(source), SLICE):
            found = self._scan(query, source, begin)
            rows.extend(found)
            hits.bytes += sum(map(self.columns.sizes.__getitem__, found))
            yield hits
        hits.complete = True
        self._stack.append((query, hits))
        yield hits

    def _scan(self, query: Query, source: Rows, begin: int) -> Rows:
        part = source[begin : begin + SLICE]
        names, first = self.columns.names, query.terms[0]
        needle = max(first.parts, key=len)
        found = self._search(needle, first.exact, part)
        if found is None:
            if first.exact:
                found = [row for row in part if needle in names[row]]
            else:
                found = [row for row in part if needle in names[row].lower()]
        for term in query.terms:
            if len(term.parts) > 1:
                found = [row for row in found if term.matches(names[row])]
            elif term is first:
                continue
            elif term.exact:
                found = [row for row in found if term.parts[0] in names[row]]
            else:
                found = [row for row in found if term.parts[0] in names[row].lower()]
        return found

    def _search(self, needle: str, exact: bool, part: Rows) -> Rows | None:
        """Hits found in the joined names of a slice; None where joining cannot be used."""
        if not isinstance(part, range) or part.step != 1 or part.start % SLICE or "\n" in needle:
            return None
        blob = self._blob(part)
        text = blob.text if exact else blob.lower
        if text is None:
            return None
        names = self.columns.names
        if text is blob.text and text.count(needle, 0, _SAMPLE) > _DENSE:
            return [row for row in part if needle in names[row]]
        found, starts, first = [], blob.starts, part.start
        at = text.find(needle)
        while at >= 0:
            index = bisect_right(starts, at)
            found.append(first + index - 1)
            at = text.find(needle, starts[index]) if index < len(starts) else -1
        return found

    def _blob(self, part: range) -> _Blob:
        kept = self._blobs.get(part.start)
        if kept is None or len(kept.starts) != len(part):
            names = self.columns.names[part.start : part.stop]
            text = "\n".join(names)
            lower = text.lower()
            # Equal texts are shared; a few letters grow when lowered, and then positions are not those of `text`.
            kept = _Blob(
                text,
                text if lower == text else lower if len(lower) == len(text) else None,
                [0, *accumulate(len(name) + 1 for name in names[:-1])],
            )
            self._blobs[part.start] = kept
        return kept
