"""The chooser of a conversion in cells: no line is too wide, no number is cut, what has no room is counted."""

from __future__ import annotations

import pytest

from hfbench.convert.plan_table import FileBytes
from hfbench.units import GIB
from hfbench.widgets.cells import spans_width
from hfbench.widgets.convert_lines import Choice, chooser_lines
from hfbench.widgets.fit_lines import Knob
from hfbench.widgets.glyphs import ASCII, UNICODE, Glyphs

KNOBS = (Knob("t", "TP", "8"), Knob("f", "format", "torch_dist"), Knob("l", "layout", "4 of 10"))
RANKS = tuple(FileBytes(name=f"mp_rank_{n:02d}_{n:03d}", bytes=GIB * (n + 1)) for n in range(8))


def told(choice: Choice, width: int, height: int, glyphs: Glyphs = UNICODE) -> list[str]:
    lines = chooser_lines(choice, 1, focused=True, width=width, height=height, glyphs=glyphs)
    assert len(lines) <= height
    assert all(spans_width(line) <= width for line in lines)
    return ["".join(text for text, _ in line) for line in lines]


@pytest.mark.parametrize("width", [22, 26, 36])
@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["blocks", "ascii"])
def test_every_rank_has_its_bytes_beside_a_bar_that_says_the_same(width: int, glyphs: Glyphs) -> None:
    lines = told(Choice(head="llama", knobs=KNOBS, ranks=RANKS, title="8 ranks"), width, 20, glyphs)
    bars = lines[-8:]
    assert [bar.split()[0] for bar in bars] == [f"{n:02d}_{n:03d}" for n in range(8)]
    assert [bar.rpartition(" GiB")[0].split()[-1] for bar in bars] == [f"{n + 1}.00" for n in range(8)]
    filled = [bar.count(glyphs.full) for bar in bars]
    assert filled == sorted(filled)
    assert glyphs.empty not in bars[-1].split()[1]
    if glyphs is ASCII:
        assert "".join(lines).isascii()


def test_ranks_without_room_are_counted_and_the_cursor_has_a_sign() -> None:
    lines = told(Choice(knobs=KNOBS, ranks=RANKS, title="8 ranks"), 26, 10)
    assert lines[-1] == "and 5 more"
    assert lines[2].startswith("> f format")
    assert lines[1].startswith("  t TP")


def test_without_a_plan_there_is_nothing_but_the_keys() -> None:
    assert told(Choice(head="to Megatron", knobs=KNOBS), 26, 20) == [
        "to Megatron",
        "  t TP      8",
        "> f format  torch_dist",
        "  l layout  4 of 10",
    ]


def test_a_single_rank_needs_no_bar() -> None:
    lines = told(Choice(knobs=KNOBS, ranks=RANKS[:1], title="1 rank of 1.00 GiB"), 26, 20)
    assert lines[-1] == "1 rank of 1.00 GiB"
