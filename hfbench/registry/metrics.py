"""Counters of one worker, written as Prometheus reads them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping


class Metrics:
    """What happened since this worker started."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.sent_bytes = 0
        self.received_bytes = 0
        self.running = 0

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
            **{name: ("gauge", help, value) for name, (help, value) in gauges.items()},
        }
        for name, (kind, help, value) in numbers.items():
            yield from _head(name, kind, help)
            yield (
                f"hfbench_registry_{name} {value:g}" if isinstance(value, float) else f"hfbench_registry_{name} {value}"
            )


def _head(name: str, kind: str, help: str) -> tuple[str, str]:
    return f"# HELP hfbench_registry_{name} {help}", f"# TYPE hfbench_registry_{name} {kind}"
