"""Facts about processes that pids alone cannot give."""

from __future__ import annotations

import contextlib
import os
import signal


def start_ticks(pid: int) -> int:
    """Start time of a process in clock ticks since boot (field 22 of /proc/PID/stat); 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return 0


def same_process(pid: int, ticks: int) -> bool:
    """True when `pid` is still the process that started at `ticks`."""
    return pid > 1 and ticks > 0 and start_ticks(pid) == ticks


def signal_group(pid: int, ticks: int, signum: signal.Signals) -> bool:
    """Signal the process group a worker leads, if it is still that worker; True when it was sent."""
    if not same_process(pid, ticks):
        return False
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signum)
        return True
    return False


def signal_name(number: int) -> str:
    """`SIGKILL` for 9; a number without a name stays a number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
