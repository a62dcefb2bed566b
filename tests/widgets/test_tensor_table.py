"""The tensor table on a screen: what it shows at each size, and what its keys do."""

from __future__ import annotations

import re
from time import perf_counter

import pytest
from textual.pilot import Pilot

from hfbench.models.columns import TensorColumns
from hfbench.widgets.tensor_table import TensorTable

SIZES = [(80, 24), (40, 10), (120, 40)]


def columns(count: int = 600) -> TensorColumns:
    found = TensorColumns()
    found.add_shard(
        "one",
        [
            (f"model.layers.{row // 6}.mlp.experts.{row % 6}.down_proj.weight", "F8_E4M3", (7168, 2048), 0, 7168 * 2048)
            for row in range(count)
        ],
    )
    found.add_shard("two", [("lm_head.weight", "BF16", (129280, 7168), 0, 2 * 129280 * 7168)])
    return found


async def done(pilot: Pilot[None]) -> None:
    """The table has done its work, which a timer carries on in slices, and has painted it."""
    table = pilot.app.query_one(TensorTable)
    while table.rows.busy:
        await pilot.pause(0.01)
    await pilot.pause()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("grouped", [False, True])
async def test_every_line_shows_name_and_bytes_with_unit_at_any_size(stage, size, grouped) -> None:
    async with stage(TensorTable(columns(), grouped=grouped), size=size) as pilot:
        await done(pilot)
        picture = pilot.app.picture()
        assert "bytes" in picture[0]
        assert all(re.search(r"\d [MG]iB[ \u2581-\u2588]*$", line) for line in picture[1:] if line.strip())
        assert picture[1].startswith("> ")
        assert all(len(line) == size[0] for line in picture)


async def test_wide_tables_show_dtype_and_shape_too(stage) -> None:
    async with stage(TensorTable(columns())) as pilot:
        await done(pilot)
        line = pilot.app.picture()[1]
        assert line.split() == [">", *line.split()[1:2], "F8_E4M3", "7168x2048", "14.0", "MiB"]


@pytest.mark.parametrize(
    ("keys", "row"),
    [
        (["down", "down", "up"], 1),
        (["j", "j", "k"], 1),
        (["pagedown"], 22),
        (["pagedown", "pageup"], 0),
        (["end"], 600),
        (["end", "down"], 600),
        (["end", "home", "up"], 0),
    ],
)
async def test_keys_move_the_cursor_and_it_is_always_seen(stage, keys, row) -> None:
    table = TensorTable(columns())
    async with stage(table) as pilot:
        await done(pilot)
        await pilot.press(*keys)
        await done(pilot)
        assert table.cursor == row
        marked = [line for line in pilot.app.picture() if line.startswith(">")]
        assert len(marked) == 1
        assert table.current is not None
        assert table.current.name.rsplit(".", 2)[-2] in marked[0]


async def test_enter_opens_a_tensor_and_unfolds_a_group(stage) -> None:
    table = TensorTable(columns(), grouped=True)
    async with stage(table) as pilot:
        await done(pilot)
        await pilot.press("enter")
        await done(pilot)
        assert len(table.rows) == 602
        assert pilot.app.heard_of(TensorTable.Chosen) == []
        await pilot.press("down", "enter")
        [chosen] = pilot.app.heard_of(TensorTable.Chosen)
        assert chosen.tensor.name == "model.layers.0.mlp.experts.0.down_proj.weight"
        await pilot.press("up", "enter")
        await done(pilot)
        assert len(table.rows) == 2


async def test_g_groups_o_orders_and_b_puts_the_biggest_first(stage) -> None:
    table = TensorTable(columns())
    async with stage(table) as pilot:
        await done(pilot)
        await pilot.press("b")
        await done(pilot)
        assert "bytes▼" in pilot.app.picture()[0]
        assert "lm_head" in pilot.app.picture()[1]
        await pilot.press("g")
        await done(pilot)
        assert "601" not in pilot.app.picture()[1]
        assert "600 × 14.0 MiB" in pilot.app.picture()[1]
        await pilot.press("o", "o", "o")
        await done(pilot)
        assert "Name▲" in pilot.app.picture()[0].replace("Pattern / ", "")


async def test_the_filter_tells_what_matches(stage) -> None:
    table = TensorTable(columns())
    async with stage(table) as pilot:
        await done(pilot)
        await pilot.press("end")
        table.filter = "layers.99. down"
        await done(pilot)
        last = pilot.app.heard_of(TensorTable.RowsChanged)[-1]
        assert (last.shown, last.total, last.bytes) == (6, 601, 6 * 7168 * 2048)
        assert table.cursor == 0
        table.filter = "nothing like it"
        await done(pilot)
        assert "no tensor matches the filter; / changes it" in pilot.app.picture()[2]
        await pilot.press("enter", "down", "end")


async def test_a_table_without_tensors_says_so(stage) -> None:
    table = TensorTable()
    table.empty = "no weights here; press F for files"
    async with stage(table, size=(40, 10)) as pilot:
        assert "no weights here; press F for files" in pilot.app.picture()[2]
        await pilot.press("enter", "end", "g", "o", "b")


async def test_shards_read_later_appear_and_the_cursor_stays(stage) -> None:
    found = columns(30)
    table = TensorTable(found)
    async with stage(table) as pilot:
        await done(pilot)
        await pilot.press("down", "down")
        found.add_shard("three", [("late.weight", "BF16", (), 0, 2)])
        table.grow()
        await done(pilot)
        await pilot.press("end")
        assert "late.weight" in "".join(pilot.app.picture())
        assert "scalar" in "".join(pilot.app.picture())


async def test_the_scrollbar_comes_with_rows_grows_with_them_and_goes_with_a_filter(stage) -> None:
    found = columns(5)
    table = TensorTable(found)
    async with stage(table) as pilot:
        await done(pilot)
        assert not table.show_vertical_scrollbar
        for total in (106, 206):
            found.add_shard(f"of {total}", [(f"late.{row}.weight", "BF16", (1,), 0, 2) for row in range(100)])
            table.grow()
            await done(pilot)
            assert table.show_vertical_scrollbar
            assert table.vertical_scrollbar.window_virtual_size == total + 1
        await pilot.press("end")
        assert "late.99.weight" in pilot.app.picture()[-1]
        table.filter = "lm_head"
        await done(pilot)
        assert not table.show_vertical_scrollbar
        assert "lm_head" in pilot.app.picture()[1]


async def test_rows_added_while_a_filter_is_kept_are_found_without_looking_at_the_others_again(stage) -> None:
    found = columns(30)
    table = TensorTable(found)
    async with stage(table) as pilot:
        table.filter = "experts.3."
        await done(pilot)
        before = table.rows.changes
        found.add_shard("more", [("model.layers.5.mlp.experts.3.up_proj.weight", "BF16", (1,), 0, 2)])
        table.grow()
        await done(pilot)
        assert "up_proj" in pilot.app.picture()[6]
        assert table.rows.changes == before
        assert (table.rows.shown, table.rows.total) == (6, 32)


async def test_names_cannot_reach_the_terminal_as_control_characters(stage) -> None:
    found = TensorColumns()
    found.add_shard(
        "a", [("evil\x1b[2J\u202egpj.weight", "F32\x07", (1,), 0, 4), ("宽宽宽.weight", "F32", (1,) * 99, 0, 4)]
    )
    async with stage(TensorTable(found)) as pilot:
        await done(pilot)
        text = "".join(pilot.app.picture())
        assert "evil\\x1b[2J\\u202egpj.weight" in text
        assert "99 dims" in text
        assert not set(text) & set("\x1b\x07\u202e")


@pytest.mark.parametrize("theme", ["hfbench-light", "hfbench-ansi", "hfbench-contrast"])
async def test_every_theme_paints(stage, theme) -> None:
    async with stage(TensorTable(columns()), theme=theme) as pilot:
        await done(pilot)
        assert "model.layers" in pilot.app.picture()[1]


async def test_ascii_terminals_get_ascii(stage) -> None:
    table = TensorTable(columns(), grouped=True)
    async with stage(table, ascii=True, size=(60, 10)) as pilot:
        await done(pilot)
        await pilot.press("b")
        await done(pilot)
        await pilot.press("enter")
        await done(pilot)
        assert "".join(pilot.app.picture()).isascii()
        assert "bytesv" in pilot.app.picture()[0]
        assert len(table.rows) > 10


async def test_a_key_on_half_a_million_rows_leaves_work_for_later(stage) -> None:
    """The work of one key stays within its slice; the rest is done on the timer, and the answer comes."""
    table = TensorTable(columns(500_000))
    async with stage(table) as pilot:
        await done(pilot)
        begin = perf_counter()
        table.filter = "experts.3."
        took = perf_counter() - begin
        assert table.rows.busy or took < 1
        while table.rows.busy or pilot.app.heard_of(TensorTable.RowsChanged)[-1].busy:
            await pilot.pause(0.01)
        assert pilot.app.heard_of(TensorTable.RowsChanged)[-1].shown == 500_000 // 6 + (500_000 % 6 > 3)
