"""Differences as rows: statuses in order of weight, metrics by row, and the way through a pipe."""

from __future__ import annotations

import marshal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hfbench.models.diff.facts import DtypeChange, ModelDiff, Rename, ShapeChange, Tensor, ValueDiff
from hfbench.widgets.diff_table import DiffTable
from hfbench.widgets.differences import Differences, differences_of, unpacked


def comparison(**parts: Any) -> ModelDiff:
    """A result with nothing in it but these parts."""
    empty = dict.fromkeys(
        (
            *("added", "removed", "unread", "renamed", "clashes", "shape", "dtype", "tolerances"),
            *("config", "generation", "tokenizer", "template", "notes", "problems"),
        ),
        (),
    )
    given = {**empty, "values": None, "counts": {}, **parts}
    return ModelDiff(a="a", b="b", tensors_a=0, tensors_b=0, compared=0, **given)


def value(name: str, verdict: Any = "differ", **more: Any) -> ValueDiff:
    return ValueDiff(name=name, dtype="F32", shape=(2,), verdict=verdict, **more)


def rows(found: Differences) -> list[tuple[str, str, str, str]]:
    return [(each.dtype, each.name, *found.sides[each.shape[0]]) for each in found.columns]


def test_rows_stand_by_weight_and_tell_both_sides() -> None:
    found = differences_of(
        comparison(
            added=(Tensor(name="n", dtype="F32", shape=(3,)),),
            removed=(Tensor(name="g", dtype="BF16", shape=()),),
            shape=(ShapeChange(name="s", a=(2, 1), b=(1, 2), dtype="F32"),),
            dtype=(DtypeChange(name="d", a="F32", b="BF16", shape=(2,)),),
            renamed=(Rename(a="module.r", b="r", rule="module.=", by="wrapper"),),
        )
    )
    assert rows(found) == [
        ("removed", "g", "BF16 scalar", ""),
        ("added", "n", "", "F32 3"),
        ("shape", "s", "F32 2x1", "F32 1x2"),
        ("dtype", "d", "F32 2", "BF16 2"),
        ("renamed", "module.r", "", "module.="),
    ]
    assert list(found.columns.sizes) == [2, 12, 8, 4, 0]
    assert found.renames == {4: ("r", 0)}
    assert found.rules == ("module.=",)
    assert found.metric("max_abs", 0) is None


def test_values_come_with_the_farthest_first_and_say_all_of_a_row() -> None:
    found = differences_of(
        comparison(
            values=(
                value("same", "equal", max_abs=0.0),
                value("little", max_abs=1.0, relative_l2=0.1),
                value("much", max_abs=0.5, relative_l2=0.9, nonfinite=3),
                value("module.r", "close", max_abs=0.1, note="scaled by s"),
            ),
            dtype=(DtypeChange(name="module.r", a="F32", b="BF16", shape=(2,)),),
            renamed=(Rename(a="module.r", b="r", rule="", by="bytes"),),
        )
    )
    assert [(status, name) for status, name, _, _ in rows(found)] == [
        ("dtype close renamed", "module.r"),
        ("differ", "much"),
        ("differ", "little"),
        ("equal", "same"),
    ]
    assert [found.metric("max_abs", row) for row in range(4)] == [0.1, 0.5, 1.0, 0.0]
    assert found.metric("cosine", 1) is None
    assert (found.nonfinite, found.notes) == ({1: 3}, {0: "scaled by s"})


def test_a_tensor_of_one_side_takes_nothing_of_another_with_its_name() -> None:
    found = differences_of(
        comparison(
            added=(Tensor(name="x", dtype="F32", shape=(1,)),),
            values=(value("x", max_abs=7.0),),
            renamed=(Rename(a="x", b="y", rule="x=y", by="rule"),),
        )
    )
    assert [(status, found.metric("max_abs", row)) for row, (status, *_) in enumerate(rows(found))] == [
        ("added", None),
        ("differ renamed", 7.0),
    ]
    assert found.renames == {1: ("y", 0)}


def test_the_rows_of_a_status_are_cut_out_of_all() -> None:
    tensors = tuple(Tensor(name=f"t{n}", dtype="F32", shape=(n,)) for n in range(5))
    found = differences_of(comparison(removed=tensors[:2], added=tensors[2:]))
    part, first = found.part("added")
    assert (first, [each.name for each in part]) == (2, ["t2", "t3", "t4"])
    assert [found.sides[each.shape[0]][1] for each in part] == ["F32 2", "F32 3", "F32 4"]
    assert found.part("") == (found.columns, 0)


NAMES = st.text(max_size=6)
TENSORS = st.lists(
    st.builds(Tensor, name=NAMES, dtype=st.sampled_from(["F32", "F4"]), shape=st.just((2, 4))), max_size=4
)
VALUES = st.lists(
    st.builds(
        value,
        NAMES,
        st.sampled_from(["equal", "close", "differ", "unknown"]),
        max_abs=st.none() | st.floats(0, 9),
        nonfinite=st.integers(0, 2),
        note=st.sampled_from(["", "a note"]),
    ),
    max_size=5,
    unique_by=lambda each: each.name,
)


@settings(deadline=None)
@given(TENSORS, TENSORS, st.none() | VALUES)
def test_what_went_through_a_pipe_is_the_same(
    added: list[Tensor], removed: list[Tensor], values: list[ValueDiff] | None
) -> None:
    told = None if values is None else tuple(values)
    before = differences_of(comparison(added=tuple(added), removed=tuple(removed), values=told))
    after = unpacked(marshal.loads(marshal.dumps(before.packed())))
    assert rows(after) == rows(before)
    assert after.spans == before.spans
    assert {name: bytes(each) for name, each in after.metrics.items()} == {
        name: bytes(each) for name, each in before.metrics.items()
    }
    assert (after.nonfinite, after.notes, after.renames, after.rules) == (
        before.nonfinite,
        before.notes,
        before.renames,
        before.rules,
    )
    assert [each.bytes for each in after.columns] == [each.bytes for each in before.columns]


def test_a_row_that_differs_by_nan_comes_first() -> None:
    names = [f"model.layers.{n}.self_attn.q_proj.weight" for n in (3, 5)]
    found = differences_of(
        comparison(
            values=(
                value(names[0], max_abs=1.18, relative_l2=0.02, cosine=0.99),
                value(names[1], max_abs=0.0, relative_l2=0.0, cosine=1.0, nonfinite=3),
            )
        )
    )
    assert [each.name for each in found.columns] == names[::-1]
    assert found.nonfinite == {0: 3}


async def test_the_table_tells_nan_in_place_of_a_figure_and_rows_of_a_group_apart(stage: Any) -> None:
    names = [f"model.layers.{n}.self_attn.q_proj.weight" for n in (3, 5)]
    values = (
        value(names[0], max_abs=1.18, relative_l2=0.02, cosine=0.99),
        value(names[1], max_abs=0.0, relative_l2=0.0, cosine=1.0, nonfinite=3),
    )
    table = DiffTable()
    async with stage(table) as pilot:
        table.show_differences(differences_of(comparison(values=values)))
        while table.rows.busy:
            await pilot.pause(0.01)
        await pilot.pause()
        lines = [line for line in pilot.app.picture() if "q_proj.weight" in line]
        assert [".5." in line for line in lines] == [True, False]
        assert [".3." in line for line in lines] == [False, True]
        assert "NaN/Inf" in lines[0]
        assert "1.18" in lines[1]
