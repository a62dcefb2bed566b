"""One sampler over time: staleness, cards that come and go, late answers, and leaving while a call hangs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

WithNvml = Callable[..., Any]

HEAD = """
import json, os, sys, threading, time
from pathlib import Path
from hfbench.codec import encode
from hfbench.gpu.telemetry import Monitor, Sampler
from hfbench.gpu.telemetry import sampler as module
rules = Path(os.environ["FAKE_NVML_SCRIPT"]).write_text
def until(sampler, condition, seconds=60):
    end = time.monotonic() + seconds
    while True:
        snapshot = sampler.sample()
        if condition(snapshot) or time.monotonic() > end:
            return snapshot
        time.sleep(0.02)
"""


def test_a_hung_value_grows_old_while_all_others_are_new_and_heals(with_nvml: WithNvml) -> None:
    code = """
sampler = Sampler(patience=0.3)
first = sampler.sample()
rules("nvmlDeviceGetPowerUsage 0 0 -1")
began = time.monotonic()
sampler.sample()
waited = time.monotonic() - began
old = until(sampler, lambda each: each.devices[0].stale.get("power", 0) >= 1)
began = time.monotonic()
sampler.sample()
again = time.monotonic() - began
rules("")
healed = until(sampler, lambda each: not each.devices[0].stale)
print(json.dumps([encode(first), encode(old), encode(healed), waited, again, old.devices[0].age]))
"""
    first, old, healed, waited, again, age = with_nvml(HEAD + code)
    assert first["devices"][0]["stale"] == {}
    hung, whole = old["devices"]
    assert set(hung["stale"]) == {"power"}
    assert hung["stale"]["power"] == age >= 1
    assert hung["power"] == 312.5
    assert hung["waiting"].startswith("no answer to power for ")
    assert hung["reason"] == ""
    assert whole["stale"] == {}
    assert whole["waiting"] == ""
    assert waited >= 0.3
    assert again < waited + 1  # a call that hangs is not waited for a second time
    assert healed["devices"] == first["devices"]


def test_a_hung_slow_field_does_not_age_the_fast_ones(with_nvml: WithNvml) -> None:
    code = """
module.SLOW_EVERY = 0.1
sampler = Sampler(patience=0.2)
sampler.sample()
rules("nvmlDeviceGetPcieThroughput 0 0 -1")
time.sleep(0.15)
old = until(sampler, lambda each: each.devices[0].stale)
print(json.dumps(encode(old)))
"""
    hung = with_nvml(HEAD + code)["devices"][0]
    assert set(hung["stale"]) <= {"pcie.rx", "pcie.tx"}
    assert "pcie.rx" in hung["stale"]
    assert hung["pcie"]["rx"] == 2_000_000


def test_a_card_that_hangs_altogether_costs_two_threads_and_not_the_other_cards(with_nvml: WithNvml) -> None:
    code = """
sampler = Sampler(patience=0.2)
sampler.sample()
rules("* 0 0 -1\\nnvmlDeviceGetHandleByIndex_v2 0 0")
seen = [sampler.sample() for _ in range(5)]
threads = [each.name for each in threading.enumerate() if each.name == "hfbench-nvml"]
print(json.dumps([encode(seen[-1]), len(threads)]))
"""
    snapshot, threads = with_nvml(HEAD + code)
    hung, whole = snapshot["devices"]
    assert {"uuid", "memory", "power", "temperature"} <= set(hung["stale"])
    assert hung["temperature"] == 61
    assert whole["stale"] == {}
    assert threads <= 3


def test_a_late_answer_is_not_taken_for_a_newer_one(with_nvml: WithNvml) -> None:
    """The call that hung returns its error after the card was renumbered: the card in its place has values."""
    code = """
sampler = Sampler(patience=0.2)
first = sampler.sample()
rules("nvmlDeviceGetPowerUsage 0 0 -1")
sampler.sample()
rules("order 1 0\\nnvmlDeviceGetPowerUsage 0 0 -1")
turned = until(sampler, lambda each: each.devices[0].uuid == first.devices[1].uuid)
rules("order 1 0\\nnvmlDeviceGetPowerUsage 0 4")
after = until(sampler, lambda each: not each.devices[1].waiting)
print(json.dumps([encode(first), encode(turned), encode(after)]))
"""
    first, turned, after = with_nvml(HEAD + code)
    assert [each["uuid"] for each in turned["devices"]] == [each["uuid"] for each in reversed(first["devices"])]
    assert turned["devices"][0]["power"] == 312.5
    assert after["devices"][0]["power"] == 312.5
    assert after["devices"][1]["power"] == {"reason": "no permission"}


def test_a_lost_card_keeps_its_name_and_comes_back_whole(with_nvml: WithNvml) -> None:
    code = """
sampler = Sampler()
seen = []
for text in ("", "* 1 15", ""):
    rules(text)
    seen.append(encode(sampler.sample()))
print(json.dumps(seen))
"""
    before, during, after = with_nvml(HEAD + code)
    assert during["devices"][0] == before["devices"][0]
    lost = during["devices"][1]
    assert (lost["uuid"], lost["name"]) == (before["devices"][1]["uuid"], "Fake Card 96GB")
    assert lost["clock_sm_max"] == lost["memory"]["total"] == {"reason": lost["reason"]}
    assert after["devices"] == before["devices"]


def test_a_lost_card_whose_uuid_the_driver_remembers_is_lost_all_the_same(with_nvml: WithNvml) -> None:
    code = """
rules("* 0 15\\nnvmlDeviceGetHandleByIndex_v2 0 0\\nnvmlDeviceGetUUID 0 0\\nnvmlDeviceGetName 0 0")
sampler = Sampler()
seen = [encode(sampler.sample()) for _ in range(2)]
rules("")
print(json.dumps([*seen, encode(sampler.sample())]))
"""
    first, second, healed = with_nvml(HEAD + code)
    for snapshot in (first, second):
        lost, whole = snapshot["devices"]
        assert lost["reason"] == "the GPU is lost (fell off the bus)"
        assert (lost["name"], lost["uuid"][:4]) == ("Fake Card 96GB", "GPU-")
        assert whole["reason"] == ""
    assert healed["devices"][0]["reason"] == ""
    assert healed["devices"][0]["clock_sm_max"] == 1980


def test_a_card_that_stays_lost_gets_a_new_session(with_nvml: WithNvml) -> None:
    code = """
module.REOPEN_EVERY = 0.2
sampler = Sampler()
sampler.sample()
rules("* 1 15")
until(sampler, lambda each: False, 0.5)
rules("nvmlInitWithFlags - 18\\n* 1 15")
refused = until(sampler, lambda each: each.reason)
rules("")
print(json.dumps([refused.reason, encode(sampler.sample())]))
"""
    reason, snapshot = with_nvml(HEAD + code)
    assert reason.startswith("driver and library versions differ")
    assert [each["reason"] for each in snapshot["devices"]] == ["", ""]


def test_static_values_are_asked_once_and_slow_ones_rarely(with_nvml: WithNvml) -> None:
    code = """
import pynvml
from collections import Counter
calls = Counter()
for name in [name for name in dir(pynvml) if name.startswith("nvmlDevice")]:
    def counted(*arguments, _name=name, _real=getattr(pynvml, name), **options):
        calls[_name] += 1
        return _real(*arguments, **options)
    setattr(pynvml, name, counted)
module.SLOW_EVERY = 1e9
sampler = Sampler()
for _ in range(5):
    sampler.sample()
print(json.dumps(calls))
"""
    calls = with_nvml(HEAD + code, count=1)
    assert calls["nvmlDeviceGetPowerUsage"] == calls["nvmlDeviceGetTemperature"] == 5
    assert calls["nvmlDeviceGetName"] == calls["nvmlDeviceGetMaxPcieLinkWidth"] == 1
    assert calls["nvmlDeviceGetPcieReplayCounter"] == calls["nvmlDeviceGetEccMode"] == 1


def test_a_driver_that_hangs_at_the_start_is_told_and_found_later(with_nvml: WithNvml) -> None:
    code = """
rules("nvmlInitWithFlags - 0 -1")
sampler = Sampler(start_patience=0.2)
hung = sampler.sample()
rules("")
print(json.dumps([hung.reason, len(until(sampler, lambda each: each.devices).devices)]))
"""
    reason, cards = with_nvml(HEAD + code)
    assert reason.startswith("the driver has not answered nvmlInit for ")
    assert cards == 2


@pytest.mark.parametrize("call", ["nvmlInitWithFlags -", "nvmlDeviceGetCount_v2 -", "* 0", "nvmlEventSetWait_v2 -"])
def test_the_process_ends_at_once_while_a_call_hangs(with_nvml: WithNvml, call: str) -> None:
    code = f"""
monitor = Monitor(Sampler(patience=0.1, start_patience=0.1), interval=0.25)
monitor.start()
monitor.wait(1, 60)
rules({f"{call} 0 -1"!r})
snapshot = monitor.wait(4, 60)
print(json.dumps(bool(snapshot)))
"""
    assert with_nvml(HEAD + code)  # would run into the time limit of the fixture


def test_the_monitor_keeps_its_pace_and_says_when_a_sample_is_overdue(with_nvml: WithNvml) -> None:
    code = """
class Slow(Sampler):
    def sample(self):
        if taken >= 3:
            held.wait()
        return super().sample()
taken, held, seen = 0, threading.Event(), []
def count(snapshot):
    global taken
    taken += 1
    seen.append(threading.current_thread().daemon)
monitor = Monitor(Slow(), interval=0.0, on_sample=count)
began = time.monotonic()
monitor.start()
monitor.wait(3, 60)
spent = time.monotonic() - began
while not (late := monitor.latest()).waiting:
    time.sleep(0.02)
print(json.dumps([monitor.interval, spent, seen[:3], late.waiting]))
"""
    interval, spent, daemons, waiting = with_nvml(HEAD + code)
    assert interval == 0.25
    assert spent >= 0.5
    assert daemons == [True] * 3
    assert waiting.startswith("no sample for ")


def test_only_one_card_is_read_when_one_is_asked_for(with_nvml: WithNvml) -> None:
    code = """
uuid = Sampler().sample().devices[1].uuid
sampler = Sampler(only=uuid)
sampler.sample()
print(json.dumps([uuid, encode(sampler.sample())]))
"""
    uuid, snapshot = with_nvml(HEAD + code)
    assert [each["uuid"] for each in snapshot["devices"]] == [uuid]
