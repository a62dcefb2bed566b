"""screenshot: a picture of one screen of the workbench, drawn by a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.beside import python_path
from hfbench.errors import HfbenchError, MissingError, UsageError
from hfbench.every_screen import MAIN, PAGES
from hfbench.exits import Exit
from hfbench.units import show_bytes

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

LIMIT = 60.0
"""Seconds a picture may take."""
LEAST, MOST = (20, 10), (500, 200)
"""Columns and rows of the smallest and the largest picture."""


SCREENS = (*MAIN, *PAGES, "help")


@dataclass(frozen=True, kw_only=True)
class ScreenshotResult:
    """The SVG file that was written."""

    path: str
    bytes: int

    def lines(self) -> list[str]:
        """The file and its size."""
        return [f"{self.path}  {show_bytes(self.bytes)}"]


@action("screenshot", result=ScreenshotResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class Screenshot:
    """Save a picture of a screen as SVG."""

    screen: str = param("Screen to show", choices=SCREENS)
    path: Path = param("SVG file to write", kind="path")
    size: str = param("Columns and rows, such as 120x40", default="120x40")
    model: str = param("Model that is open", default="", kind="model")
    job: str = param("Job that is open", default="")
    of: tuple[str, ...] = param(
        "What else a page shows: a sweep, an engine, a folder of the cache, a GPU, an action; the sides of compare and "
        "diff",
        default=(),
    )
    theme: str = param("Colour theme", default="", kind="theme")

    def __post_init__(self) -> None:
        match = re.fullmatch(r"(\d{1,4})x(\d{1,4})", self.size)
        if not match:
            raise UsageError(f"size {self.size!r} is not columns x rows", remedy="write for example 120x40")
        columns, rows = int(match[1]), int(match[2])
        if not (LEAST[0] <= columns <= MOST[0] and LEAST[1] <= rows <= MOST[1]):
            raise UsageError(
                f"size {self.size} is not between {LEAST[0]}x{LEAST[1]} and {MOST[0]}x{MOST[1]}",
                remedy="80x24 and 120x40 are usual",
            )
        if self.path.suffix != ".svg":
            raise UsageError(f"the picture {str(self.path)!r} is not named .svg", remedy="give it that suffix")

    def perform(self, run: Run) -> ScreenshotResult:
        """Draw it in a child process, so that no Textual enters this one."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HfbenchError(f"the folder cannot be made: {error.strerror}", where=self.path.parent) from error
        before = _stamp(self.path)
        _draw(list(self._arguments()))
        after = _stamp(self.path)
        if after is None or after == before:
            raise HfbenchError("no picture was written", where=self.path)
        run.artifact(self.path, "screenshot")
        return ScreenshotResult(path=str(self.path), bytes=after[0])

    def _arguments(self) -> Iterator[str]:
        yield from ("--screen", self.screen, "--path", str(self.path), "--size", self.size)
        for name in ("model", "job", "theme"):
            if value := getattr(self, name):
                yield f"--{name}={value}"
        yield from (f"--of={each}" for each in self.of)


def _draw(arguments: list[str]) -> None:
    """Run the child; its last line on stderr is the error, its exit code the kind of it."""
    try:
        ended = subprocess.run(
            [sys.executable, "-P", "-m", "hfbench.screenshot", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT,
            env={**os.environ, "PYTHONPATH": python_path()},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise HfbenchError(f"the picture was not drawn within {LIMIT:.0f} s") from None
    except OSError as error:
        raise MissingError(f"Python cannot be started: {error.strerror}", where=sys.executable) from error
    if ended.returncode == 0:
        return
    lines = ended.stderr.decode("utf-8", "replace").strip().splitlines()
    told = lines[-1].removeprefix("hfbench: ") if lines else f"it ended with status {ended.returncode} and no word"
    kinds = {Exit.USAGE: UsageError, Exit.ENVIRONMENT: MissingError}
    raise {int(code): kind for code, kind in kinds.items()}.get(ended.returncode, HfbenchError)(
        f"the picture could not be drawn: {told}"
    )


def _stamp(path: Path) -> tuple[int, int] | None:
    """Size and time of a file; None when it is not there."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
