"""Made-up cards: marked as such everywhere, the same at the same second, and never taken for devices."""

from __future__ import annotations

import json
import time

import pytest

from hfbench.codec import decode, encode
from hfbench.gpu.devices import list_devices
from hfbench.gpu.reading import Unavailable
from hfbench.gpu.telemetry import GpuSnapshot, Sampler
from hfbench.gpu.telemetry.demo import DEMO_GPUS, demo_cards


def sample(count: int) -> GpuSnapshot:
    sampler = Sampler(demo=count)
    try:
        return sampler.sample()
    finally:
        sampler.close()


def test_every_card_says_that_it_is_made_up() -> None:
    snapshot = sample(8)
    assert snapshot.demo
    assert snapshot.driver == "demo"
    for device in snapshot.devices:
        assert str(device.name).startswith("demo")
        assert "demo" in str(device.uuid)
        assert not isinstance(device.processes, Unavailable)
        assert all(each.user == "demo" and str(each.command).startswith("demo") for each in device.processes)
    assert any(device.processes for device in snapshot.devices if not isinstance(device.processes, Unavailable))


def test_the_same_second_gives_the_same_cards_and_time_moves_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_000_000.0)
    first, again = sample(4), sample(4)
    assert first == again
    monkeypatch.setattr(time, "time", lambda: 1_000_007.0)
    assert sample(4).devices[0].power != first.devices[0].power


def test_a_snapshot_survives_json() -> None:
    snapshot = sample(3)
    assert decode(GpuSnapshot, json.loads(json.dumps(encode(snapshot)))) == snapshot


@pytest.mark.parametrize(("told", "count"), [("4", 4), ("", 0), ("no", 0), ("-1", 0), ("9999", 64), ("9" * 5000, 0)])
def test_the_environment_says_how_many(monkeypatch: pytest.MonkeyPatch, told: str, count: int) -> None:
    monkeypatch.setenv(DEMO_GPUS, told)
    assert demo_cards() == count
    assert bool(Sampler().sample().demo) == (count > 0)


def test_demo_cards_are_no_devices_to_run_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEMO_GPUS, "4")
    assert all("demo" not in gpu.name for gpu in list_devices().gpus)
