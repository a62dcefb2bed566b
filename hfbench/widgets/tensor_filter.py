"""The incremental filter of the tensor table: queries, and their hits found a slice at a time."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from hfbench.models.columns import TensorColumns

SLICE = 5_000
"""Rows looked at between two chances to paint: 1 to 3 ms."""

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
class _Answer:
    """What was found for one query in the first `scanned` rows of the order; rows added later are looked at later."""

    query: Query
    hits: Hits
    scanned: int = 0


@dataclass(slots=True)
class _Blob:
    """The names of one slice in one text, and where each begins."""

    text: str
    lower: str | None
    starts: array[int]


@dataclass(slots=True)
class TensorFilter:
    """Finds hits slice by slice and keeps those of shorter queries, so that typing narrows and backspace is free."""

    columns: TensorColumns
    _stack: list[_Answer] = field(default_factory=list)
    _blobs: dict[int, _Blob] = field(default_factory=dict)

    def forget(self) -> None:
        """Drop kept hits: the order of the rows changed. Rows added at its end change nothing that was found."""
        self._stack.clear()

    def run(self, query: Query, order: Rows, everything: int) -> Iterator[Hits]:
        """The hits of `query` among `order`, growing; the last one yielded is complete.

        `everything` is the sum of bytes of all rows, the answer for a query without words.
        """
        if not query.terms:
            yield Hits(order, everything, complete=True)
            return
        stack = self._stack
        while stack and not query.text.startswith(stack[-1].query.text):
            stack.pop()
        kept = stack[-1] if stack else None
        if kept is not None and kept.query.text == query.text:
            answer = kept
        else:
            answer = _Answer(query, Hits(array("I")))
            if kept is not None and 2 * len(kept.hits.rows) < kept.scanned:  # else looking at all anew is quicker
                for begin in range(0, len(kept.hits.rows), SLICE):
                    self._take(answer, kept.hits.rows[begin : begin + SLICE])
                    yield answer.hits
                answer.scanned = kept.scanned
        while answer.scanned < len(order):
            end = min((answer.scanned // SLICE + 1) * SLICE, len(order))
            self._take(answer, order[answer.scanned : end])
            answer.scanned = end
            yield answer.hits
        answer.hits.complete = True
        if answer is not kept:
            stack.append(answer)
        yield answer.hits

    def _take(self, answer: _Answer, part: Rows) -> None:
        """Add what matches in a part to the answer."""
        found, rows = self._scan(answer.query, part), answer.hits.rows
        assert isinstance(rows, array), "only a query without words shows the order itself"
        answer.hits.complete = False
        rows.extend(found)
        sizes = self.columns.sizes
        whole = isinstance(part, range) and part.step == 1 and len(found) == len(part)
        answer.hits.bytes += sum(sizes[part[0] : part[-1] + 1] if whole else map(sizes.__getitem__, found))

    def _scan(self, query: Query, part: Rows) -> Rows:
        first = query.terms[0]
        needle = max(first.parts, key=len)
        found = self._search(needle, first.exact, part)
        if found is None:
            found = self._holding(part, needle, first.exact)
        for term in query.terms:
            if len(term.parts) > 1:
                names = self.columns.names
                found = [row for row in found if term.matches(names[row])]
            elif term is not first:
                found = self._holding(found, term.parts[0], term.exact)
        return found

    def _holding(self, part: Rows, needle: str, exact: bool) -> Rows:
        """The rows whose names hold the text. List comprehensions: `compress` and `map` take a third longer."""
        names = self.columns.names
        if isinstance(part, range) and part.step == 1 and exact:
            inside = names[part.start : part.stop]
            return [row for row, name in zip(part, inside, strict=True) if needle in name]
        if exact:
            return [row for row in part if needle in names[row]]
        return [row for row in part if needle in names[row].lower()]

    def _search(self, needle: str, exact: bool, part: Rows) -> Rows | None:
        """Hits found in the joined names of a slice; None where joining cannot be used."""
        if not isinstance(part, range) or part.step != 1 or part.start % SLICE or "\n" in needle:
            return None
        blob = self._blob(part)
        text = blob.text if exact else blob.lower
        if text is None:
            return None
        if text is blob.text and text.count(needle, 0, _SAMPLE) > _DENSE:
            return self._holding(part, needle, exact=True)
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
                array("L", accumulate(map((1).__add__, map(len, names[:-1])), initial=0)),
            )
            self._blobs[part.start] = kept
        return kept
