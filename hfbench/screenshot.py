"""Paints one screen into an SVG without a terminal: `python -m hfbench.screenshot --screen jobs --path jobs.svg`."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sys
import time
from pathlib import Path

from textual.pilot import Pilot

from hfbench.app import Workbench, draws_unicode
from hfbench.config import read_config
from hfbench.errors import HfbenchError, UsageError
from hfbench.exits import Exit, complain
from hfbench.jobs.directory import find_job
from hfbench.paths import jobs_root
from hfbench.screens.base import BenchScreen
from hfbench.screens.launch import LaunchScreen

SCREENS = ("models", "model", "launch", "jobs", "job", "gpus", "kernels", "help")
PATIENCE = 30.0
"""Seconds a screen may take to show all it wants to."""


def main(words: list[str] | None = None) -> int:
    """Paint the screen the words ask for; 0 when the file is written."""
    parser = argparse.ArgumentParser(prog="hfbench.screenshot", description=__doc__)
    parser.add_argument("--screen", choices=SCREENS, required=True)
    parser.add_argument("--path", type=Path, required=True)
    parser.add_argument("--size", default="80x24")
    parser.add_argument("--model", default="")
    parser.add_argument("--job", default="last")
    parser.add_argument("--theme", default="")
    parser.add_argument("--action", default="bench.generate", help="the form of the launch screen")
    given = parser.parse_args(words)
    try:
        asyncio.run(paint(given))
    except HfbenchError as error:
        complain(error)
        return int(error.exit)
    return Exit.OK


async def paint(given: argparse.Namespace) -> None:
    """Run the application without a terminal, open the screen, wait until it is at rest, and save it."""
    size = re.fullmatch(r"(\d{2,3})x(\d{2,3})", given.size)
    if not size:
        raise UsageError(f"{given.size!r} is not a size", remedy="write columns x rows, such as 80x24")
    app = Workbench(read_config(), ascii=not draws_unicode())
    async with app.run_test(size=(int(size[1]), int(size[2]))) as pilot:
        if given.theme:
            if given.theme not in app.available_themes:
                raise UsageError(f"there is no theme {given.theme!r}")
            app.theme = given.theme
        open_screen(app, given)
        await at_rest(pilot)
        if given.screen == "help":
            app.action_help()
            await pilot.pause()
        picture = app.export_screenshot(title="hfbench")
    try:
        given.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = given.path.with_name(f".{given.path.name}.{os.getpid()}")
        temporary.write_text(picture, encoding="utf-8")
        temporary.replace(given.path)
    except OSError as error:
        raise HfbenchError(f"the picture cannot be written: {error.strerror}", where=given.path) from error


def open_screen(app: Workbench, given: argparse.Namespace) -> None:
    """Bring the wanted screen to the front."""
    if given.screen in ("jobs", "gpus", "kernels"):
        app.action_go(given.screen)
    elif given.screen == "job":
        app.open_job(find_job(jobs_root(), given.job).id)
    elif given.screen == "launch":
        app.push_screen(LaunchScreen(given.action, {"model": given.model} if given.model else {}))
    elif given.screen == "model":
        if not given.model:
            raise UsageError("the model screen needs a model", remedy="name one with model")
        app.open_model(given.model)


async def at_rest(pilot: Pilot[None]) -> None:
    """Wait until the screen in front says it shows everything; HfbenchError when it never does."""
    end = time.monotonic() + PATIENCE
    while True:
        await pilot.pause(0.05)
        screen = pilot.app.screen
        if isinstance(screen, BenchScreen) and screen.at_rest:
            break
        if time.monotonic() > end:
            raise HfbenchError(f"the screen was not complete after {PATIENCE:.0f} s", where=type(screen).__name__)
    await pilot.pause()


if __name__ == "__main__":
    sys.exit(main())
