"""Hubs that do one deed and kill themselves on the way: this file is also the process that forks them, imports done."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from hub_inside import DEEDS, content_of, hub_inside

from hfbench.registry import fault_points
from hfbench.registry.settings import Settings


class Forks:
    """A process that forks a child for each deed."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, str(Path(__file__))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def do_and_die(self, settings: Settings, token: str, deed: str, seed: int, point: str) -> bool:
        """Let a child do a deed and die at a point; False when it came through alive."""
        assert self._server.stdin
        assert self._server.stdout
        print(json.dumps([asdict(settings), token, deed, seed, point]), file=self._server.stdin, flush=True)
        ended = int(self._server.stdout.readline())
        assert ended in (0, -signal.SIGKILL), ended
        return ended != 0

    def close(self) -> None:
        self._server.communicate(timeout=10)


async def _do(settings: Settings, token: str, deed: str, seed: int, point: str) -> None:
    async with hub_inside(settings, token) as (_, client):
        fault_points.arm(point)
        await DEEDS[deed](client, f"f{seed}", content_of(seed))


def main() -> None:
    for line in sys.stdin:
        settings, *rest = json.loads(line)
        if not (child := os.fork()):
            asyncio.run(_do(Settings(**settings), *rest))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
