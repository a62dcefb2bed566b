"""The view behind the tensor table: order, groups, growth, and work cut into pieces."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hfbench.models.columns import Row, TensorColumns
from hfbench.widgets.tensor_order import Sort, natural
from hfbench.widgets.tensor_rows import ORDERS, TensorRows


def row(name: str, size: int = 4, dtype: str = "F32", shape: tuple[int, ...] = (1,)) -> Row:
    return (name, dtype, shape, 0, size)


def view(*rows: Row, grouped: bool = False) -> TensorRows:
    columns = TensorColumns()
    columns.add_shard("a", rows)
    rows_of = TensorRows(columns, grouped=grouped)
    rows_of.settle()
    return rows_of


def names(rows: TensorRows) -> list[str]:
    return [rows[index].name for index in range(len(rows))]


def moe(layers: int = 3, experts: int = 4) -> list[Row]:
    return [
        row("model.embed.weight", 100),
        *(
            row(f"model.layers.{layer}.mlp.experts.{expert}.{part}.weight", 8, shape=(2, 1))
            for layer in range(layers)
            for expert in range(experts)
            for part in ("up", "down")
        ),
        row("lm_head.weight", 100),
    ]


def test_natural_order_counts_numbers_as_numbers() -> None:
    rows = view(*(row(f"layers.{number}.w") for number in (10, 2, 1)))
    rows.set_order(Sort.NAME, False)
    rows.settle()
    assert names(rows) == ["layers.1.w", "layers.2.w", "layers.10.w"]


def test_biggest_first_keeps_file_order_among_equals() -> None:
    rows = view(row("a", 1), row("b", 9), row("c", 1), row("d", 9))
    rows.set_order(Sort.SIZE, True)
    rows.settle()
    assert names(rows) == ["b", "d", "a", "c"]


@given(st.lists(st.tuples(st.text(max_size=5), st.integers(0, 2**40)), max_size=30), st.sampled_from(ORDERS))
def test_every_order_shows_every_tensor_once_and_in_order(
    tensors: list[tuple[str, int]], order: tuple[Sort, bool]
) -> None:
    rows = view(*(row(name, size) for name, size in tensors))
    rows.set_order(*order)
    rows.settle()
    lines = [rows[index] for index in range(len(rows))]
    assert sorted(line.row for line in lines) == list(range(len(tensors)))
    sort, descending = order
    keys = {
        Sort.FILE: lambda line: line.row,
        Sort.NAME: lambda line: natural(line.name),
        Sort.SIZE: lambda line: line.size,
    }
    ordered = [keys[sort](line) for line in lines]
    assert all(a >= b if descending else a <= b for a, b in pairwise(ordered))


def test_o_walks_through_all_orders_and_back() -> None:
    rows = view(row("a"))
    seen = []
    for _ in ORDERS:
        rows.next_order()
        seen.append((rows.sort, rows.descending))
    assert seen == [*ORDERS[1:], ORDERS[0]]


def test_groups_count_tensors_equal_in_pattern_dtype_shape_and_bytes() -> None:
    rows = view(*moe(), row("model.layers.9.mlp.experts.0.up.weight", 8, dtype="F8_E4M3", shape=(2, 1)), grouped=True)
    lines = [rows[index] for index in range(len(rows))]
    assert [(line.name, line.dtype, line.count, line.size) for line in lines] == [
        ("model.embed.weight", "F32", 1, 100),
        ("model.layers.*.mlp.experts.*.up.weight", "F32", 12, 8),
        ("model.layers.*.mlp.experts.*.down.weight", "F32", 12, 8),
        ("lm_head.weight", "F32", 1, 100),
        ("model.layers.9.mlp.experts.0.up.weight", "F8_E4M3", 1, 8),
    ]
    assert sum(line.count * line.size for line in lines) == rows.total_bytes


def test_an_unfolded_group_shows_its_members_below_it() -> None:
    rows = view(*moe(layers=1, experts=2), grouped=True)
    assert rows.toggle(1)
    assert names(rows) == [
        "model.embed.weight",
        "model.layers.*.mlp.experts.*.up.weight",
        "model.layers.0.mlp.experts.0.up.weight",
        "model.layers.0.mlp.experts.1.up.weight",
        "model.layers.*.mlp.experts.*.down.weight",
        "lm_head.weight",
    ]
    assert not rows.toggle(2)
    assert not rows.toggle(0)
    assert rows.toggle(1)
    assert len(rows) == 4


def test_a_filter_counts_only_members_that_match() -> None:
    rows = view(*moe(), grouped=True)
    rows.set_filter("layers.2. up")
    rows.settle()
    [line] = [rows[index] for index in range(len(rows))]
    assert (line.name, line.count, rows.shown, rows.bytes) == ("model.layers.*.mlp.experts.*.up.weight", 4, 4, 32)
    assert rows.tensor(0).name == "model.layers.2.mlp.experts.0.up.weight"
    rows.toggle(0)
    assert names(rows)[1:] == [f"model.layers.2.mlp.experts.{expert}.up.weight" for expert in range(4)]


def test_a_group_with_one_match_is_that_tensor() -> None:
    rows = view(*moe(), grouped=True)
    rows.set_filter("layers.1. experts.3. down")
    rows.settle()
    assert names(rows) == ["model.layers.1.mlp.experts.3.down.weight"]
    assert not rows.toggle(0)


def test_groups_are_ordered_by_their_bytes_in_all() -> None:
    rows = view(*moe(layers=20), grouped=True)
    rows.set_order(Sort.SIZE, True)
    rows.settle()
    assert [(rows[index].count * rows[index].size) for index in range(len(rows))] == [640, 640, 100, 100]


def test_rows_added_later_join_the_view_under_its_filter() -> None:
    columns = TensorColumns()
    rows = TensorRows(columns)
    rows.set_filter("down")
    for shard in range(3):
        columns.add_shard(f"s{shard}", moe(layers=1))
        rows.grow()
        rows.settle()
        assert (rows.shown, rows.total) == (4 * (shard + 1), 10 * (shard + 1))
    rows.set_filter("")
    rows.settle()
    assert rows.bytes == rows.total_bytes == 3 * (200 + 8 * 8)


def test_a_shard_half_read_is_not_shown() -> None:
    """The reader appends names first and shard numbers last, perhaps from another thread."""
    columns = TensorColumns()
    columns.add_shard("a", [row("whole")])
    columns.names.append("half")
    rows = TensorRows(columns)
    rows.settle()
    assert names(rows) == ["whole"]


def test_growth_during_work_is_taken_in_when_it_is_done() -> None:
    columns = TensorColumns()
    columns.add_shard("a", [row(f"layers.{number}") for number in range(120_000)])
    rows = TensorRows(columns)
    rows.settle()
    rows.set_order(Sort.NAME, True)
    assert rows.busy
    columns.add_shard("b", [row("layers.999999")])
    rows.grow()
    rows.settle()
    assert rows.total == len(rows) == 120_001
    assert rows[0].name == "layers.999999"


def test_the_view_of_before_stays_until_a_page_of_the_answer_is_there() -> None:
    rows = view(*(row(f"layers.{number}") for number in range(200_000)))
    rows.set_order(Sort.NAME, True)
    assert rows.busy
    assert len(rows) == 200_000
    assert rows[0].name == "layers.0"
    rows.settle()
    assert rows[0].name == "layers.199999"


def test_no_tensors_at_all_is_a_view_too() -> None:
    rows = TensorRows(grouped=True)
    rows.set_filter("x")
    rows.settle()
    assert (len(rows), rows.shown, rows.total, rows.bytes) == (0, 0, 0, 0)
