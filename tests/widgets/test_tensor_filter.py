"""The filter finds what a plain search finds, however a query was arrived at."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hfbench.models.columns import TensorColumns
from hfbench.widgets import tensor_filter
from hfbench.widgets.tensor_filter import Hits, Query, TensorFilter

PIECES = st.sampled_from(["a", "b", "A", "layers", ".", "0", "1", "10", "mlp", "Σ", "İ", "ß", "\n", " ", "*", "模"])
NAMES = st.lists(st.lists(PIECES, max_size=6).map("".join), max_size=40)
QUERIES = st.lists(PIECES, max_size=5).map("".join)


def columns_of(names: list[str]) -> TensorColumns:
    columns = TensorColumns()
    columns.add_shard("only", [(name, "F32", (index,), 0, 4 * index) for index, name in enumerate(names)])
    return columns


def naive(names: list[str], query: str) -> list[int]:
    """Every word as a pattern of its own; a word in small letters ignores the case."""

    def hit(name: str) -> bool:
        for word in query.split():
            parts = [part for part in word.split("*") if part]
            exact = any(part != part.lower() for part in parts)
            pattern = ".*".join(map(re.escape, parts))
            if not re.search(pattern, name if exact else name.lower(), re.DOTALL):
                return False
        return True

    return [row for row, name in enumerate(names) if hit(name)]


def last(found: TensorFilter, query: str, order: range | list[int]) -> Hits:
    *_, hits = found.run(Query.parse(query), order, -1)
    assert hits.complete
    return hits


@settings(max_examples=200, deadline=None)
@given(NAMES, st.lists(QUERIES, min_size=1, max_size=6), st.booleans())
def test_hits_are_those_of_a_naive_filter(names: list[str], queries: list[str], backwards: bool) -> None:
    columns = columns_of(names)
    found = TensorFilter(columns)
    rows = range(len(names))
    order = rows[::-1] if backwards else rows
    for query in queries:
        hits = last(found, query, order)
        wanted = naive(names, query)
        assert list(hits.rows) == (wanted[::-1] if backwards else wanted)
        if query.split() and Query.parse(query).terms:
            assert hits.bytes == sum(4 * row for row in wanted)


@given(NAMES, QUERIES)
def test_typing_and_deleting_a_query_shows_what_typing_it_at_once_shows(names: list[str], query: str) -> None:
    found = TensorFilter(columns_of(names))
    keys = [query[:end] for end in range(len(query) + 1)]
    for typed in keys + keys[::-1]:
        assert list(last(found, typed, range(len(names))).rows) == naive(names, typed)


def test_slices_join_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_filter, "SLICE", 7)
    names = [f"model.layers.{row % 5}.W{row}" for row in range(100)]
    found = TensorFilter(columns_of(names))
    for query in ("layers.3", "layers.3 w1", "layers.3 w", "W9", "w*9"):
        assert list(last(found, query, range(100)).rows) == naive(names, query)


def test_a_deleted_letter_costs_no_search() -> None:
    names = [f"layers.{row}" for row in range(1000)]
    found = TensorFilter(columns_of(names))
    before = last(found, "layers.1", range(1000))
    last(found, "layers.12", range(1000))
    assert next(found.run(Query.parse("layers.1"), range(1000), 0)) is before


def test_a_dense_and_a_sparse_search_agree() -> None:
    names = [f"x{row:05}" for row in range(60_000)]
    found = TensorFilter(columns_of(names))
    assert list(last(found, "x", range(60_000)).rows) == list(range(60_000))
    assert list(last(found, "59999", range(60_000)).rows) == [59_999]
    assert list(last(found, "00001", range(60_000)).rows) == [1]
