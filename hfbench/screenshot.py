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
from hfbench.every_screen import MAIN, PAGES
from hfbench.exits import Exit, complain
from hfbench.jobs.directory import find_job
from hfbench.paths import expand, jobs_root
from hfbench.screens.base import BenchScreen
from hfbench.screens.reopen import TYPED, Gone, open_again

FORM = "bench.generate"
"""The form that is shown where none is named."""

WANTED = {
    "model": (0, 0, "what --model names"),
    "convert": (0, 0, "what --model names"),
    "job": (0, 0, "what --job names"),
    "launch": (0, 1, "one action"),
    "diff": (2, 2, "two models"),
    "sweep": (1, 1, "one sweep"),
    "compare": (2, 100, "two sides or more"),
    "engine": (1, 1, "one engine"),
    "repository": (1, 1, "one folder of the cache"),
    "memory": (1, 1, "one GPU"),
}
"""Of each page the fewest and the most things that `--of` names, and what they are."""

PATIENCE = 30.0
"""Seconds a screen may take to show all it wants to."""


def main(words: list[str] | None = None) -> int:
    """Paint the screen the words ask for; 0 when the file is written."""
    parser = argparse.ArgumentParser(prog="hfbench.screenshot", description=__doc__)
    parser.add_argument("--screen", choices=(*MAIN, *PAGES, "help"), required=True)
    parser.add_argument("--path", type=Path, required=True)
    parser.add_argument("--size", default="80x24")
    parser.add_argument("--model", default="")
    parser.add_argument("--job", default="last")
    parser.add_argument("--of", action="append", default=[], help="what else a page shows")
    parser.add_argument("--theme", default="")
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
        await open_screen(app, given)
        await at_rest(pilot)
        if given.screen == "help":
            app.action_help()
            await pilot.pause()
        picture = app.export_screenshot(title="hfbench")
    try:
        given.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = given.path.with_name(f".picture.{os.getpid()}")  # a name may be as long as names can be
        temporary.write_text(picture, encoding="utf-8")
        temporary.replace(given.path)
    except OSError as error:
        raise HfbenchError(f"the picture cannot be written: {error.strerror}", where=given.path) from error


async def open_screen(app: Workbench, given: argparse.Namespace) -> None:
    """Bring the wanted screen to the front; UsageError when it is not told what it shows, HfbenchError when that is
    gone."""
    if given.screen in MAIN:
        app.action_go(given.screen)
    elif given.screen in PAGES:
        try:
            await open_again(app, PAGES[given.screen].partition(":")[2], about(given))
        except Gone as gone:
            raise HfbenchError(str(gone)) from None


def about(given: argparse.Namespace) -> dict[str, str]:
    """What a page is to show, as whoever comes back to it would be told."""
    fewest, most, what = WANTED[given.screen]
    if not fewest <= len(given.of) <= most:
        raise UsageError(f"the {given.screen} screen shows {what}, and {len(given.of)} were named", remedy="see --of")
    match given.screen, given.of:
        case (("model" | "convert"), _):
            if not given.model:
                raise UsageError(f"the {given.screen} screen needs a model", remedy="name one with --model")
            return {"model": given.model}
        case "job", _:
            return {"job": find_job(jobs_root(), given.job).id}
        case "launch", names:
            typed = {f"{TYPED}model": given.model} if given.model else {}
            return {"action": (names or [FORM])[0], **typed}
        case "diff", (a, b):
            return {"a": a, "b": b}
        case "compare", sides:
            return {"sides": "\n".join(sides)}
        case "memory", (gpu,):
            return {"gpu": gpu}
        case (("engine" | "repository"), (path,)):
            return {given.screen: str(expand(path).absolute())}
        case page, (name,):
            return {page: name}
    raise AssertionError(f"{given.screen} is in WANTED")


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
