"""Runs a program of TensorRT-LLM, line by line into the build log, and names why it failed."""

from __future__ import annotations

import contextlib
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hfbench.beside import foreign_environment
from hfbench.engines.trtllm.build_log import complaint
from hfbench.errors import HfbenchError, MissingError
from hfbench.jobs.process import signal_name
from hfbench.text import clip, printable

LONGEST_LINE = 4_096
KEPT = 200
"""Lines of the end that a reason is looked for in."""
SHOWN = 300
PATIENCE = 5.0
"""Seconds between asking a program to end and ending it."""


def run_program(
    argv: Sequence[str],
    folder: Path,
    tell: Callable[[str], None],
    *,
    what: str,
    where: str,
    reason: Callable[[Sequence[str]], tuple[str, str] | None],
    variables: Mapping[str, str] | None = None,
) -> None:
    """Run a program in a folder until it ends, telling each line it writes.

    MissingError when it cannot be started; HfbenchError when it fails: `reason` turns its last lines into a cause
    and a remedy. It is ended when this is interrupted.
    """
    environment = {**foreign_environment(), **(variables or {})}
    try:
        child = subprocess.Popen(
            argv,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except OSError as error:
        raise MissingError(f"cannot be started: {error.strerror}", where=argv[0]) from None
    lines: deque[str] = deque(maxlen=KEPT)
    try:
        assert child.stdout is not None
        while piece := child.stdout.readline(LONGEST_LINE):
            line = piece.decode("utf-8", "replace").rstrip()
            lines.append(line)
            tell(printable(line))
        code = child.wait()
    finally:
        _end(child)
    if code:
        raise _failure(code, list(lines), what=what, where=where, reason=reason)


def _failure(
    code: int,
    lines: list[str],
    *,
    what: str,
    where: str,
    reason: Callable[[Sequence[str]], tuple[str, str] | None],
) -> HfbenchError:
    named = reason(lines)
    if named is not None:
        return HfbenchError(f"{what} failed: {named[0]}", where=where, remedy=named[1])
    how = f"was ended by {signal_name(-code)}" if code < 0 else f"ended with status {code}"
    said = next(filter(None, map(complaint, reversed(lines))), "") or next(filter(None, reversed(lines)), "")
    last = f": {clip(printable(said), SHOWN, ellipsis='...')}" if said else ""
    remedy = "the kernel ends programs when memory is short: see dmesg" if code == -9 else "read the build log"
    return HfbenchError(f"{what} {how}{last}", where=where, remedy=remedy)


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.stdout is not None:
        child.stdout.close()
    if child.poll() is not None:
        return
    child.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(PATIENCE)
        return
    child.kill()
    child.wait()
