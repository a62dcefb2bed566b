"""The Config tab: every key explained, defaults apart, values whole, and every odd configuration."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from pages import brought_to_front, text

from hfbench.paths import cache_root
from hfbench.screens.model import ModelScreen
from hfbench.screens.model_tabs.base import Detail
from hfbench.screens.model_tabs.config import MOST_ROWS, ConfigTab
from hfbench.screens.model_tabs.whole import Whole
from hfbench.widgets.record_table import RecordTable

QWEN: dict[str, Any] = {
    "model_type": "qwen2",
    "architectures": ["Qwen2ForCausalLM"],
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_hidden_layers": 2,
    "vocab_size": 151936,
    "sliding_window": 4096,
    "use_sliding_window": False,
    "layers_left_alone": [f"model.layers.{number}.mlp" for number in range(400)],
}


async def to(pilot: Any, tab: ConfigTab, key: str, file: str = "config.json") -> None:
    """Put the cursor on a key."""
    assert tab.query_one(RecordTable).move_to(f"{file}\0{key}")
    await pilot.pause()


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_key_under_the_cursor_is_explained(
    bench: Any, until: Any, picture: Any, make_model: Any, size: tuple[int, int]
) -> None:
    async with bench(str(make_model(config=QWEN))).run_test(size=size) as pilot:
        tab = await brought_to_front(pilot, until, ConfigTab)
        await to(pilot, tab, "hidden_size")
        await until(pilot, lambda: "Width of the residual stream" in text(picture, pilot))
        assert "config.json 9 keys" in text(picture, pilot)
        assert "defaults of Qwen2Config, transformers" in text(picture, pilot)


async def test_the_heading_counts_what_the_view_of_defaults_lists(
    bench: Any, until: Any, picture: Any, make_model: Any
) -> None:
    async with bench(str(make_model(config=QWEN))).run_test(size=(120, 40)) as pilot:
        tab = await brought_to_front(pilot, until, ConfigTab)
        await until(pilot, lambda: "of GenerationConfig" in text(picture, pilot))
        told = re.search(r"(\d+) defaults of Qwen2Config,.* (\d+) of GenerationConfig", text(picture, pilot))
        assert told
        await pilot.press("v", "v")
        await until(pilot, lambda: tab.query_one(RecordTable).total == int(told[1]) + int(told[2]))


async def test_defaults_stand_apart_with_the_class_that_assumes_them(
    bench: Any, until: Any, picture: Any, make_model: Any
) -> None:
    async with bench(str(make_model(config=QWEN))).run_test(size=(120, 40)) as pilot:
        tab = await brought_to_front(pilot, until, ConfigTab)
        await to(pilot, tab, "layer_types")
        await until(pilot, lambda: "default of Qwen2Config, transformers" in text(picture, pilot))
        rows = [line for line in picture(pilot) if " default " in line]
        assert any("num_key_value_heads" in line for line in rows)
        assert not any(" file " in line for line in rows)
        await pilot.press("v")
        await until(pilot, lambda: tab.query_one(RecordTable).total == 9)
        await pilot.press("v")
        await until(pilot, lambda: not any(line.startswith("   hidden_size") for line in picture(pilot)))
        await pilot.press("v")
        await until(pilot, lambda: tab.query_one(RecordTable).total > 9)


async def test_what_the_class_makes_of_a_value_is_warned_of(
    bench: Any, until: Any, picture: Any, make_model: Any
) -> None:
    async with bench(str(make_model(config=QWEN))).run_test(size=(80, 24)) as pilot:
        tab = await brought_to_front(pilot, until, ConfigTab)
        await to(pilot, tab, "sliding_window")
        told = "! Qwen2Config makes it null: sliding_window if use_sliding_window else None"
        await until(pilot, lambda: told in text(picture, pilot))
        assert "sliding_window ! 4096 file" in text(picture, pilot)


async def test_search_finds_keys_by_what_they_mean_and_where_they_are_from(
    bench: Any, until: Any, make_model: Any
) -> None:
    async with bench(str(make_model(config=QWEN))).run_test(size=(80, 24)) as pilot:
        tab = await brought_to_front(pilot, until, ConfigTab)
        table = tab.query_one(RecordTable)
        await pilot.press("slash", *"residual stream", "enter")
        await until(pilot, lambda: table.shown == 1 and table.current == "config.json\0hidden_size")
        await pilot.press("slash", "escape", "slash", *"gen default temp", "enter")
        await until(pilot, lambda: table.current == "generation_config.json\0temperature")


async def test_enter_shows_a_long_value_whole_and_it_scrolls(
    bench: Any, until: Any, picture: Any, make_model: Any
) -> None:
    async with bench(str(make_model(config=QWEN))).run_test(size=(80, 24)) as pilot:
        tab = await brought_to_front(pilot, until, ConfigTab)
        await to(pilot, tab, "layers_left_alone")
        await pilot.press("enter")
        await until(pilot, lambda: '"model.layers.0.mlp"' in text(picture, pilot))
        whole = tab.query_one(Whole)
        await until(pilot, lambda: whole.max_scroll_y > 50)
        await pilot.press("tab", "end")
        await until(pilot, lambda: "meaning not explained yet from config.json" in text(picture, pilot))
        assert '"model.layers.399.mlp"]' in text(picture, pilot)
        assert tab.query_one(RecordTable).size.height >= 4
        await pilot.press("escape")
        await until(pilot, lambda: not tab.query_one(Detail).display and tab.query_one(RecordTable).has_focus)
        assert isinstance(pilot.app.screen, ModelScreen)


async def test_y_copies_key_and_whole_value(bench: Any, until: Any, make_model: Any) -> None:
    board = cache_root() / "clipboard.txt"
    config = {**QWEN, "big": "x" * 2**20}
    async with bench(str(make_model(config=config))).run_test(size=(80, 24)) as pilot:
        tab = await brought_to_front(pilot, until, ConfigTab)
        for key in ("big", "hidden_size", "num_key_value_heads"):
            await to(pilot, tab, key)
            value = {**config, "num_key_value_heads": 32}[key]
            await pilot.press("y")
            wanted = f"{json.dumps(key)}: {json.dumps(value)}"
            await until(pilot, lambda wanted=wanted: board.exists() and board.read_text() == wanted)


async def test_generation_settings_have_a_place_of_their_own(
    bench: Any, until: Any, picture: Any, make_model: Any
) -> None:
    folder = make_model(config=QWEN)
    (folder / "generation_config.json").write_text('{"temperature": 0.7, "do_sample": true}')
    async with bench(str(folder)).run_test(size=(120, 40)) as pilot:
        tab = await brought_to_front(pilot, until, ConfigTab)
        assert "generation_config.json 2 keys" in text(picture, pilot)
        await to(pilot, tab, "temperature", "generation_config.json")
        await until(pilot, lambda: "temperature 0.7 generation" in text(picture, pilot))


def deep(levels: int) -> str:
    return '{"a": ' * levels + "1" + "}" * levels


ODD = {
    "a list": ("[1, 2]", "the root is a list"),
    "null": ("null", "the root is null"),
    "nothing": ("", "the file is empty"),
    "10,000 deep": (deep(10_000), "nested too deeply"),
    "300 deep": (deep(300), "nested too deeply; only 200 levels are read"),
    "twice": ('{"model_type": "llama", "model_type": "qwen2"}', "the key 'model_type' stands twice"),
    "NaN": ('{"rope_theta": NaN}', "NaN is not JSON"),
    "control characters": ('{"a\\u001b[31m": "\\u202e\\u0000"}', '"\\u202e\\u0000"'),
    "a megabyte": (json.dumps({"a": "x" * 2**20}), '"xxxxxxx'),
    "many": (json.dumps({f"k{number}": number for number in range(4000)}), "k0"),
    "not UTF-8": (b'{"a": "\xff"}', "byte 0xff is not UTF-8"),
    "bare text": ("hello\x1b[2J", "hello\\x1b[2J"),
}


@pytest.mark.parametrize("case", ODD)
async def test_an_odd_configuration_is_shown_as_far_as_it_goes(
    bench: Any, until: Any, picture: Any, make_model: Any, case: str
) -> None:
    content, says = ODD[case]
    folder: Path = make_model(config=None)
    (folder / "config.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    async with bench(str(folder)).run_test(size=(80, 24)) as pilot:
        tab = await brought_to_front(pilot, until, ConfigTab)
        await until(pilot, lambda: says in text(picture, pilot))
        for key in ("enter", "end", "home", "v", "v", "v", "enter", "slash", "a", "escape", "o", "y"):
            await pilot.press(key)
        shown = "\n".join(picture(pilot))
        assert "Traceback" not in shown
        assert all(line.isprintable() for line in picture(pilot))
        assert tab.query_one(RecordTable).total <= MOST_ROWS + 100


async def test_a_detail_of_a_megabyte_is_cut_and_says_how_long_it_is(
    bench: Any, until: Any, picture: Any, make_model: Any
) -> None:
    async with bench(str(make_model(config={"a": "x" * 2**20, "b": math.inf}))).run_test(size=(80, 24)) as pilot:
        tab = await brought_to_front(pilot, until, ConfigTab)
        await pilot.press("enter")
        await until(pilot, lambda: tab.query_one(Whole).max_scroll_y > 50)
        await pilot.press("tab", "end")
        await until(pilot, lambda: "... (1,048,578 characters)" in text(picture, pilot))
        await to(pilot, tab, "b")
        await until(pilot, lambda: "value Infinity" in text(picture, pilot))


async def test_reading_anew_shows_what_the_file_says_now(bench: Any, until: Any, picture: Any, make_model: Any) -> None:
    folder = make_model(config=QWEN)
    async with bench(str(folder)).run_test(size=(120, 40)) as pilot:
        await brought_to_front(pilot, until, ConfigTab)
        (folder / "config.json").write_text(json.dumps({**QWEN, "hidden_size": 128}))
        await pilot.press("u")
        await until(pilot, lambda: "hidden_size 128 file" in text(picture, pilot))
