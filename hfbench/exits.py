"""Exit codes, and the one place where diagnostics are written."""

from __future__ import annotations

import sys
from enum import IntEnum

from hfbench.line_width import broken_for
from hfbench.text import printable


class Exit(IntEnum):
    """What a process of hfbench tells its caller."""

    OK = 0
    FAILED = 1
    """The thing asked about is wrong, or an expectation of a script does not hold."""
    USAGE = 2
    """The request itself cannot be read; nothing was run."""
    STEP = 3
    """A step of a script failed or ran out of time."""
    ENVIRONMENT = 4
    """Something the request needs is not on this machine: a package, a tool, a GPU."""
    INTERRUPTED = 130
    TERMINATED = 143


def complain(sentence: object) -> None:
    """Write one diagnostic to stderr, safe to show: a line, on a terminal broken between words. stdout is for
    results only."""
    try:
        print(broken_for(sys.stderr, f"hfbench: {printable(str(sentence))}"), file=sys.stderr, flush=True)
    except (BrokenPipeError, ValueError, OSError):
        pass  # nobody is listening any more: the exit code still tells
