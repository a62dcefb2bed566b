"""What the system tells of a running hub's workers."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hub_process import HubProcess


def memory(hub: HubProcess) -> int:
    """Bytes in memory of the server's worker."""
    return max(int(text.split("VmRSS:")[1].split()[0]) for text in of_workers(hub, "status")) * 1024


def read_bytes(hub: HubProcess) -> int:
    """Bytes the server's worker has asked files and sockets for."""
    return max(int(text.split("rchar:")[1].split()[0]) for text in of_workers(hub, "io"))


def of_workers(hub: HubProcess, what: str) -> list[str]:
    """What the system tells of the server's children."""
    assert hub.process
    pids = subprocess.run(["ps", "-o", "pid=", "--ppid", str(hub.process.pid)], capture_output=True, text=True).stdout
    return [Path(f"/proc/{pid}/{what}").read_text() for pid in pids.split()]
