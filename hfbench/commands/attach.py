"""`hfbench attach`: open the workbench where it was left."""

from __future__ import annotations

from collections.abc import Sequence

from hfbench.commands.front_page import add_drawing, drawing_of
from hfbench.commands.parser import Parser


def main(words: Sequence[str]) -> int:
    """Open the workbench at the place that was kept last."""
    given = parser().parse_args(words)
    from hfbench.app import open_workbench

    return open_workbench(None, **drawing_of(given), attach=True)


def parser() -> Parser:
    """What it takes."""
    made = Parser(prog="hfbench attach", description="Open the workbench where you left it: screen, model, filter.")
    add_drawing(made)
    return made
