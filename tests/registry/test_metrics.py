"""Counters of several workers are one, whichever of them is asked."""

from __future__ import annotations

import re
import time
from pathlib import Path

import httpx2
from hub_process import HubProcess, make_hub

from hfbench.registry.metrics import FRESH, Metrics

PATIENCE = 30.0


def numbers(hub: HubProcess) -> dict[str, float]:
    """All counters, over a connection of its own: any worker may answer."""
    with hub.client(hub.admin) as client:
        text = client.get("/metrics").text
    return {name: float(value) for name, value in re.findall(r"^(\S+) (\S+)$", text, re.MULTILINE)}


def test_two_workers_tell_the_sum(tmp_path: Path) -> None:
    hub = make_hub(tmp_path, workers=2)
    (Path(hub.settings.folder) / "registry.toml").write_text(hub.settings.toml())
    hub.start()
    health = 'hfbench_registry_requests_total{route="/health",status="200"}'
    try:
        for _ in range(40):
            assert httpx2.get(f"{hub.url}/health").status_code == 200
        deadline = time.monotonic() + PATIENCE
        while (told := numbers(hub))["hfbench_registry_workers"] != 2 or told[health] < 41:
            assert time.monotonic() < deadline, told
            time.sleep(0.5)
        assert {numbers(hub)[health] for _ in range(6)} == {41}
        assert told["hfbench_registry_free_bytes"] > 0
    finally:
        hub.stop()


def test_a_worker_that_died_stays_counted_and_runs_nothing(tmp_path: Path) -> None:
    import os

    died, lives = Metrics(), Metrics()
    died.requests["/x", 200], died.sent_bytes, died.running = 3, 10, 5
    lives.requests["/x", 200], lives.running = 4, 1
    died.save(tmp_path)
    then = time.time() - FRESH - 1
    for path in tmp_path.iterdir():
        os.utime(path, (then, then))
    (tmp_path / "broken.json").write_text("{")
    told = lives.with_others(tmp_path)
    assert told.requests["/x", 200] == 7
    assert (told.sent_bytes, told.running, told.workers) == (10, 1, 1)
