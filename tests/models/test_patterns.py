"""Names that differ only in their numbers are one group."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hfbench.models.columns import TensorColumns
from hfbench.models.patterns import Patterns, fold, group_by_pattern


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("model.layers.3.mlp.experts.12.w1.weight", "model.layers.*.mlp.experts.*.w1.weight"),
        ("0.auto_model.layer.1", "*.auto_model.layer.*"),
        ("7", "*"),
        ("1.2.3", "*.*.*"),
        ("w1", "w1"),
        ("3d.conv", "3d.conv"),
        ("layers.3x.w", "layers.3x.w"),
        ("h.4\n", "h.4\n"),
        ("", ""),
    ],
)
def test_only_parts_that_are_numbers_are_folded(name: str, pattern: str) -> None:
    assert fold(name) == pattern


def test_a_group_tells_rows_bytes_and_what_is_common() -> None:
    columns = TensorColumns()
    columns.add_shard(
        "a", [("l.0.w", "F32", (2,), 0, 8), ("l.0.s", "F32", (1,), 8, 12), ("l.1.w", "F32", (2,), 12, 20)]
    )
    columns.add_shard("b", [("l.2.s", "BF16", (1,), 0, 2)])
    weights, scales = group_by_pattern(columns)
    assert (weights.pattern, list(weights.rows), weights.count, weights.bytes) == ("l.*.w", [0, 2], 2, 16)
    assert (weights.dtype, weights.shape) == ("F32", (2,))
    assert (scales.dtype, scales.shape, scales.bytes) == ("mixed", (1,), 6)


@settings(deadline=None)
@given(st.lists(st.lists(st.from_regex(r"\A[a-c0-9.]{0,6}\Z"), max_size=5), max_size=4))
def test_groups_taken_in_parts_hold_every_row_once(parts: list[list[str]]) -> None:
    columns, patterns = TensorColumns(), Patterns()
    for number, names in enumerate(parts):
        columns.add_shard(str(number), [(name, "U8", (1,), 0, 1) for name in names])
        patterns.take(columns)
    groups = patterns.groups(columns)
    assert sorted(row for group in groups for row in group.rows) == list(range(len(columns)))
    assert all(fold(columns.names[row]) == group.pattern for group in groups for row in group.rows)
    assert groups == group_by_pattern(columns)
