"""The pace of a slow line."""

from __future__ import annotations

import os
import pty

from hfbench.line_pace import LinePace, serial_baud


def test_a_repaint_waits_until_the_line_has_carried_the_one_before() -> None:
    pace = LinePace(9600)
    pace.wrote(960, now=100.0)
    assert not pace.may_paint(100.9, asked=100.5)
    assert pace.may_paint(101.0, asked=100.5)


def test_what_no_key_asked_for_leaves_the_line_free_as_long_as_it_took() -> None:
    pace = LinePace(9600)
    pace.wrote(960, now=100.0)
    assert not pace.may_paint(101.9, asked=50.0)
    assert pace.may_paint(102.0, asked=50.0)


def test_writes_of_one_repaint_add_up() -> None:
    pace = LinePace(9600)
    for _ in range(10):
        pace.wrote(96, now=100.0)
    assert not pace.may_paint(100.99, asked=100.5)
    pace.wrote(96, now=200.0)
    assert pace.may_paint(200.2, asked=0.0)


def test_a_fast_line_never_waits() -> None:
    pace = LinePace()
    pace.wrote(10**9, now=100.0)
    assert pace.may_paint(100.0, asked=0.0)


def test_the_speed_of_a_pseudo_terminal_is_not_believed() -> None:
    ours, theirs = pty.openpty()
    try:
        assert serial_baud(theirs) == 0
        assert serial_baud(-1) == 0
    finally:
        os.close(ours)
        os.close(theirs)
