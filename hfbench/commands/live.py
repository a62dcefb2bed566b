"""An action that is looked at again and again: a page that repaints on a terminal, lines everywhere else."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Protocol

from hfbench.actions.results import exit_of, result_data
from hfbench.errors import UsageError
from hfbench.exits import Exit, complain

HIDE, SHOW, HOME, CLEAR, REST_OF_LINE, REST = "\x1b[?25l", "\x1b[?25h", "\x1b[H", "\x1b[2J", "\x1b[K", "\x1b[J"
PLAIN_WIDTH = 80
"""Columns where there is no terminal to ask."""


class Live(Protocol):
    """A request whose results are printed as they come."""

    @property
    def watch(self) -> bool: ...
    @property
    def csv(self) -> bool: ...
    def samples(self) -> Iterator[Any]:
        """Results, one after the other."""

    def trouble(self, result: Any) -> str:
        """Why a result holds nothing, in a sentence; else empty."""

    def frame(self, result: Any, number: int, *, width: int, height: int, ascii: bool, color: bool) -> list[str]:
        """One result as lines of a terminal; `number` counts from 0."""


def show_live(request: Live, *, as_json: bool) -> int:
    """Print results until there are no more, or until Ctrl-C; the exit code of the last."""
    if as_json and request.csv:
        raise UsageError("--json and --csv exclude each other")
    repaints = request.watch and not as_json and not request.csv and _is_terminal()
    code, told = int(Exit.OK), ""
    _end_with_the_reader()
    try:
        for number, result in enumerate(request.samples()):
            data = result_data(result)
            code = exit_of(data)
            if request.csv and (trouble := request.trouble(result)) != told:  # a table has no place for it
                told = trouble
                complain(trouble) if trouble else None
            if as_json:
                _write(json.dumps(data, ensure_ascii=True) + "\n")
            elif repaints:
                _repaint(request, result, number)
            else:
                _append(request, result, number)
    finally:
        if repaints:
            _write(SHOW)
    return code


def _end_with_the_reader() -> None:
    """Raise BrokenPipeError as soon as nobody reads our output, not at the next line: a driver may let us wait."""

    def gone(number: int, frame: object) -> None:
        raise BrokenPipeError

    def wait(fd: int) -> None:
        reader = select.poll()
        reader.register(fd, 0)  # asks for nothing: what is told is that the other end was closed
        reader.poll()
        os.kill(os.getpid(), signal.SIGPIPE)

    with suppress(OSError, ValueError):  # output that is no file, as in a test
        fd = sys.stdout.fileno()
        if stat.S_ISFIFO(os.fstat(fd).st_mode):
            signal.signal(signal.SIGPIPE, gone)
            threading.Thread(target=wait, args=(fd,), daemon=True).start()


def _repaint(request: Live, result: Any, number: int) -> None:
    """The page over the one before, line by line, so that it does not flicker; what does not fit is left out."""
    width, height = shutil.get_terminal_size()
    color = "NO_COLOR" not in os.environ or not os.environ["NO_COLOR"]
    room = max(height - 1, 1)
    lines = request.frame(result, number, width=max(width - 1, 1), height=room, ascii=not _draws_unicode(), color=color)
    begin = HIDE + CLEAR if number == 0 else ""
    _write(begin + HOME + "\n".join(line + REST_OF_LINE for line in lines[:room]) + "\n" + REST)


def _append(request: Live, result: Any, number: int) -> None:
    lines = request.frame(
        result, number, width=PLAIN_WIDTH, height=sys.maxsize, ascii=not _draws_unicode(), color=False
    )
    gap = "\n" if number and not request.csv else ""
    _write(gap + "".join(f"{line}\n" for line in lines))


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _is_terminal() -> bool:
    return sys.stdout.isatty() and os.environ.get("TERM") not in ("", "dumb", None)


def _draws_unicode() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
