"""GPUs laid out: every card is named at every size, nothing is wider than its place, unknown is never zero."""

from __future__ import annotations

from typing import Any

import pytest
from gpu_readings import card
from hypothesis import given
from hypothesis import strategies as some

from hfbench.gpu.reading import Unavailable
from hfbench.gpu.telemetry import GpuProcess, Memory, Utilization, Xid
from hfbench.units import GIB
from hfbench.widgets.cells import spans_width
from hfbench.widgets.glyphs import ASCII, UNICODE
from hfbench.widgets.gpu_facts import card_facts, unknown
from hfbench.widgets.gpu_tiles import TILE_LINES, fold, grid_lines, load_line, summary

GONE = Unavailable("no permission")


def drawn(*cards: Any, width: int = 78, height: int = 14, cursor: int = 0, glyphs: Any = UNICODE) -> list[str]:
    lines = grid_lines(
        cards, {}, cursor, at=fold(len(cards), width, height), height=height, focused=True, glyphs=glyphs
    )
    assert all(spans_width(line) <= width for line in lines)
    return ["".join(text for text, _ in line) for line in lines]


@given(some.integers(1, 40), some.integers(58, 240), some.integers(3, 60), some.booleans(), some.data())
def test_no_line_is_wider_than_its_place_and_the_cursor_is_always_in_view(
    cards: int, width: int, height: int, ascii: bool, data: Any
) -> None:
    cursor = data.draw(some.integers(0, cards - 1))
    changes: list[dict[str, Any]] = [
        {},
        {"power": GONE},
        {"reason": "the GPU is lost"},
        {"throttle": ("power cap", "thermal slowdown")},
        {"name": "NVIDIA " + "long name " * 9},
        {"memory": Memory(used=GONE, reserved=GONE, free=GONE, total=GONE)},
        {"utilization": Utilization(gpu=GONE, memory=GONE)},
    ]
    devices = [card(index, **data.draw(some.sampled_from(changes))) for index in range(cards)]
    glyphs = ASCII if ascii else UNICODE
    lines = drawn(*devices, width=width, height=height, cursor=cursor, glyphs=glyphs)
    assert len(lines) <= height
    assert any(line.startswith(">") or f"> {cursor} " in line for line in lines)
    assert not ascii or "\n".join(lines).isascii()


@pytest.mark.parametrize(("cards", "width", "height", "tiles"), [(8, 78, 13, 0), (2, 78, 13, 2), (8, 118, 29, 3)])
def test_tiles_fold_to_rows_where_they_do_not_fit(cards: int, width: int, height: int, tiles: int) -> None:
    at = fold(cards, width, height)
    assert (at.columns, at.lines) == ((tiles, TILE_LINES) if tiles else (1, 1))
    text = "\n".join(drawn(*map(card, range(cards)), width=width, height=height))
    assert text.count("61.0/141 GiB") == text.count("512/700 W") == text.count("97%") == cards


def test_of_more_cards_than_lines_the_rest_is_counted() -> None:
    lines = drawn(*map(card, range(32)), cursor=20, height=12)
    assert len(lines) == 12
    assert lines[-1].strip() == "and 22 more GPUs: arrows reach them"


def test_an_unknown_value_is_never_zero() -> None:
    nothing = Memory(used=GONE, reserved=GONE, free=GONE, total=GONE)
    blind = card(0, memory=nothing, power=GONE, power_limit=GONE, utilization=Utilization(gpu=GONE, memory=GONE))
    for lines in (drawn(blind, height=13), drawn(*[blind] * 8)):
        assert "n/a/n/a GiB" in "\n".join(lines)
        assert " 0 W" not in "\n".join(lines)
        assert " 0%" not in "\n".join(lines)
    assert load_line([None, 0.0, 100.0], 9, UNICODE) == " ▁█"


def test_the_worst_is_said_first_and_work_only_of_a_card_that_is_well() -> None:
    process = GpuProcess(pid=7, kinds=("compute",), memory=GIB, user="ann", command="python", job="")
    ours = GpuProcess(pid=8, kinds=("compute",), memory=GIB, user="ann", command="python", job="abc")
    assert summary(card(0, processes=(process, ours, process)), UNICODE) == ("ok · 1 job · 2 processes", "ok")
    assert summary(card(0, throttle=("power cap",), processes=(ours,)), UNICODE) == ("! slowed by: power cap", "warn")
    fallen = card(0, throttle=("power cap",), xids=(Xid(code=79, meaning="fell off the bus", at=0.0),))
    assert summary(fallen, UNICODE) == ("x Xid 79: fell off the bus", "error")


def test_the_facts_put_our_jobs_first_and_gather_unknown_values_by_reason() -> None:
    process = GpuProcess(pid=7, kinds=("compute",), memory=GIB, user="ann", command="train", job="")
    ours = GpuProcess(pid=8, kinds=("compute",), memory=GIB, user="ann", command="hfbench", job="abc")
    device = card(0, processes=(process, ours), power=GONE, temperature=GONE, clock_sm=Unavailable("lost"))
    facts = card_facts(device, (), UNICODE)
    assert [each.value for each in facts if each.label in ("processes", "")] == [
        "8 1.00 GiB compute job abc: hfbench",
        "7 1.00 GiB compute ann: train",
    ]
    assert "temperature, power: no permission" in unknown(device)
    assert any(line.startswith("clock sm") and line.endswith(": lost") for line in unknown(device))


def test_control_characters_of_a_process_never_reach_the_screen() -> None:
    bad = GpuProcess(pid=7, kinds=("compute",), memory=GIB, user="a\x1b[2J", command="x\n\x1b]0;t\x07", job="")
    assert all(each.value.isprintable() for each in card_facts(card(0, processes=(bad,)), (), UNICODE))
