"""Columns: rows in, the same rows out."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hfbench.models.columns import TensorColumns, TensorInfo

sizes = st.integers(0, 2**40)
rows = st.lists(
    st.tuples(
        st.text(max_size=5),
        st.sampled_from(["F32", "BF16", "U8"]),
        st.lists(sizes, max_size=3).map(tuple),
        sizes,
        sizes,
    ).map(lambda row: (*row[:4], row[3] + row[4])),
    max_size=6,
)


@settings(deadline=None)
@given(st.lists(rows, max_size=4))
def test_rows_come_out_as_they_went_in(shards: list[list[tuple[str, str, tuple[int, ...], int, int]]]) -> None:
    columns = TensorColumns()
    expected = []
    for number, part in enumerate(shards):
        columns.add_shard(f"shard {number}", part)
        expected += [TensorInfo(*row, f"shard {number}") for row in part]
    assert list(columns) == expected
    assert len(columns) == len(expected)


def test_a_shard_in_parts_is_one_shard() -> None:
    columns = TensorColumns()
    columns.add_rows("a", ["x"], [("F32", (2,), 8)], [0], [0])
    columns.add_rows("a", ["y"], [("U8", (), 1), ("F32", (2,), 8)], [1], [8])
    assert columns.shards == ["a"]
    assert columns[1] == TensorInfo("y", "F32", (2,), 8, 16, "a")
    assert (columns[1].bytes, columns[1].elements) == (8, 2)
