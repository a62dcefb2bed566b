"""The one line that a run says of its card."""

from __future__ import annotations

from dataclasses import replace

from hfbench.gpu.reading import Unavailable
from hfbench.gpu.telemetry import GpuUse

USE = GpuUse(
    device="GPU-1",
    samples=12,
    seconds=12.0,
    memory_peak=61 * 2**30,
    memory_mean=60 * 2**30,
    power_peak=700,
    power_mean=512.4,
    clock_sm_mean=1755,
    clock_sm_min=1600,
    utilization_mean=97,
    temperature_peak=71,
    energy=6000,
    throttle={"power cap": 0.4},
)


def test_memory_power_clocks_and_what_slowed_it() -> None:
    assert USE.sentence == (
        "peak 61.0 GiB, mean 512 W, SM 1755 MHz, at most 71 C over 12 samples; slowed by power cap 40% of the time"
    )


def test_what_is_not_known_is_left_out_and_never_zero() -> None:
    blind = replace(USE, power_mean=Unavailable("no permission"), throttle={}, samples=1)
    assert blind.sentence == "peak 61.0 GiB, SM 1755 MHz, at most 71 C over 1 sample"


def test_a_card_that_was_not_seen_says_why() -> None:
    assert replace(USE, samples=0, reason="no permission").sentence == "not sampled: no permission"
