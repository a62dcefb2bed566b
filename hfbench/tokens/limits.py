"""What a process that works on somebody else's file may use. The kernel ends the process, even inside native code."""

from __future__ import annotations

import resource
import signal
from pathlib import Path


def limit_memory(more: int, *, file: int = 0) -> None:
    """Let this process have `more` bytes of address space than it has now, write files of `file` bytes, and no core."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    limit = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_FSIZE, (file, file))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def limit_seconds(seconds: float) -> None:
    """End this process after so much CPU time from now on; 0 takes the limit away."""
    signal.setitimer(signal.ITIMER_PROF, seconds)  # the default action of SIGPROF
