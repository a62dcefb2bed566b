"""hfbench tour: a guided walk on the demo model, inside the real workbench."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from hfbench.commands.front_page import add_drawing, drawing_of
from hfbench.commands.parser import Parser
from hfbench.commands.stderr_run import StderrRun
from hfbench.errors import MissingError
from hfbench.paths import demo_model


def parser() -> argparse.ArgumentParser:
    """The words it takes."""
    made = Parser(
        prog="hfbench tour",
        description="A guided walk in the workbench: a card says what is on the screen and which key goes on. "
        "It is made on the demo model, which hfbench demo makes from an installed package, or on models you have.",
    )
    add_drawing(made)
    return made


def main(words: Sequence[str]) -> int:
    """Make the demo model where it can be made, and open the workbench with the card."""
    given = parser().parse_args(words)
    from hfbench.app import open_workbench, refuse_without_terminal

    refuse_without_terminal()
    if not (demo_model() / "config.json").is_file():
        from hfbench.actions.demo import Demo

        try:
            with StderrRun(quiet=False) as run:
                Demo().perform(run)
        except MissingError as error:
            run.log(f"{error}. The tour goes on with the models you have.")
    return open_workbench(None, **drawing_of(given), tour=True)
