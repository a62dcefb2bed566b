"""Counters of all workers of a hub, written as Prometheus reads them; each worker leaves its own in a file."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

FRESH = 20.0
"""Seconds after which a worker that left no new counters is taken to be gone: what it counted stays counted."""


class Metrics:
    """What happened since this worker started, or, once others were added, since the server did."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.sent_bytes = 0
        self.received_bytes = 0
        self.running = 0
        self.workers = 1
        self._name = f"{os.getpid()}-{secrets.token_hex(4)}.json"

    def save(self, folder: Path) -> None:
        """Leave the counters where other workers find them."""
        told = {
            "requests": [[route, status, count] for (route, status), count in self.requests.items()],
            "seconds": self.seconds,
            "sent_bytes": self.sent_bytes,
            "received_bytes": self.received_bytes,
            "running": self.running,
        }
        fresh = folder / f"{self._name}.new"
        fresh.write_text(json.dumps(told))
        os.replace(fresh, folder / self._name)

    def with_others(self, folder: Path) -> Metrics:
        """The sum of this worker's counters and those that others left. Blocks."""
        self.save(folder)
        return Metrics.left_in(folder)

    @staticmethod
    def left_in(folder: Path) -> Metrics:
        """The sum of what all workers left there. Blocks."""
        found = Metrics()
        found.workers = 0
        for path in folder.glob("*.json"):
            with suppress(OSError, ValueError, KeyError):
                found._add(json.loads(path.read_text()), is_fresh=time.time() - path.stat().st_mtime < FRESH)
        return found

    def _add(self, told: Mapping[str, Any], *, is_fresh: bool) -> None:
        for route, status, count in told["requests"]:
            self.requests[route, status] += count
        for route, seconds in told["seconds"].items():
            self.seconds[route] += seconds
        self.sent_bytes += told["sent_bytes"]
        self.received_bytes += told["received_bytes"]
        self.running += told["running"] if is_fresh else 0
        self.workers += is_fresh

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """Everything as lines; `gauges` adds a value with its help by name."""
        return "\n".join([*self._lines(gauges), ""])

    def _lines(self, gauges: Mapping[str, tuple[str, float]]) -> Iterable[str]:
        yield from _head("requests_total", "counter", "Answers by route and status")
        for (route, status), count in sorted(self.requests.items()):
            yield f'hfbench_registry_requests_total{{route="{route}",status="{status}"}} {count}'
        yield from _head("request_seconds_total", "counter", "Seconds until answers began, by route")
        for route, seconds in sorted(self.seconds.items()):
            yield f'hfbench_registry_request_seconds_total{{route="{route}"}} {seconds:.6f}'
        numbers = {
            "sent_bytes_total": ("counter", "Bytes of content handed out", self.sent_bytes),
            "received_bytes_total": ("counter", "Bytes of content taken in", self.received_bytes),
            "requests_running": ("gauge", "Requests being answered", self.running),
            "workers": ("gauge", "Processes that answer", self.workers),
            **{name: ("gauge", help, value) for name, (help, value) in gauges.items()},
        }
        for name, (kind, help, value) in numbers.items():
            yield from _head(name, kind, help)
            yield (
                f"hfbench_registry_{name} {value:g}" if isinstance(value, float) else f"hfbench_registry_{name} {value}"
            )


def _head(name: str, kind: str, help: str) -> tuple[str, str]:
    return f"# HELP hfbench_registry_{name} {help}", f"# TYPE hfbench_registry_{name} {kind}"
