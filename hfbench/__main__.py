"""Entry of the `hfbench` command: every way out of it leaves one sentence and the right exit code."""

from __future__ import annotations

import os
import sys

try:
    from hfbench.errors import HfbenchError, Interrupted, foreseen
    from hfbench.exits import Exit, complain
    from hfbench.pages import more_about
except KeyboardInterrupt:  # Ctrl-C before there is anything that could speak
    sys.exit(130)

DEBUG = "HFBENCH_DEBUG"
"""Environment variable: show the traceback of what hfbench did not foresee."""


def main() -> int:
    """Run the command line; never a traceback for anything a user can cause."""
    open_missing_streams()
    try:
        return _run(sys.argv[1:])
    except BrokenPipeError:
        _mute_stdout()  # the reader of our output has seen enough
        return Exit.OK


def open_missing_streams() -> None:
    """Fill the places of standard streams that cron or a daemon closed: the next file must not become one of them."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, closefd=False)


def _run(words: list[str]) -> int:
    from hfbench import cli

    if sys.stdout is not None:
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        code = cli.main(words)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except KeyboardInterrupt:
        return _failed(Interrupted("interrupted"), words)
    except Exception as error:
        if os.environ.get(DEBUG) and not isinstance(error, HfbenchError):
            raise
        return _failed(foreseen(error, traceback=f"{DEBUG}=1 shows the traceback"), words)
    return code


def _failed(error: HfbenchError, words: list[str]) -> int:
    """Say what is wrong on stderr, and as an object on stdout when JSON was asked for."""
    try:
        if "--json" in words:
            import json

            sys.stdout.write(json.dumps({"error": error.parts()}) + "\n")
            sys.stdout.flush()
    except (OSError, AttributeError):  # AttributeError: stdout was closed before we began
        _mute_stdout()
    complain(error)
    if hint := more_about(error.page):
        complain(hint)
    return int(error.exit)


def _mute_stdout() -> None:
    """Point stdout away, so that the flush at exit stays quiet too."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
