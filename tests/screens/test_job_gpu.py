"""What the Job screen says of the card: samples of a job under way, what slowed one that is over, and its roofline."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from job_folders import NOW, Held, make_job

from hfbench.codec import encode
from hfbench.gpu.reading import Unavailable
from hfbench.gpu.roofline import Ceilings, Roofline, StepWork, roofline
from hfbench.gpu.telemetry.use import GpuUse
from hfbench.jobs.events import Finished, Metric, Running, Started
from hfbench.jobs.snapshot import JobSnapshot
from hfbench.paths import jobs_root
from hfbench.screens.job_gpu import gpu_facts
from hfbench.screens.job_text import job_text
from hfbench.units import GIB
from hfbench.widgets.glyphs import ASCII

STARTED = [Started(at=NOW - 60, pid=1, ticks=1, host="x"), Running(at=NOW - 59, device="GPU-1")]
USE = GpuUse(
    device="GPU-1",
    samples=12,
    seconds=12.0,
    memory_peak=61 * GIB,
    memory_mean=60 * GIB,
    power_peak=700,
    power_mean=512.4,
    clock_sm_mean=1755,
    clock_sm_min=1600,
    utilization_mean=97,
    temperature_peak=71,
    energy=6000,
    throttle={"power cap": 0.12, "thermal": 0.001},
)
CEILINGS = Ceilings(copy=4.0e12, matmul=7e14, matmul_dtype="bf16", copy_bytes=2**30, matmul_size=8192)
WORK = StepWork(weight_bytes=16e9, kv_bytes=0.0, flops=16e9)


def bound(work: StepWork = WORK, ceilings: Ceilings = CEILINGS, card: str | None = "NVIDIA H200") -> Roofline:
    """A step of 5 ms: 3.2 TB/s."""
    return roofline(work, tpot=5e-3, context=128, ceilings=ceilings, card=card)


def told(result: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Label, words and state of what is said of a job with this result."""
    snapshot = JobSnapshot(id="2026-01-05T08-00-00-bench.generate-aaaa01", action="bench.generate", result=result)
    return [(each.label, each.value, each.state) for each in gpu_facts(snapshot).facts(ASCII)]


def test_memory_power_clocks_and_load_stand_there_and_what_slowed_it_is_marked() -> None:
    memory, clocks, slowed = told({"gpu": encode(USE)})
    assert memory == ("GPU", "memory 61.0 GiB peak, 60.0 GiB mean | power 700 W peak, 512 W mean", "")
    assert clocks == ("", "SM 1755 MHz mean, 1600 MHz least | busy 97 % mean", "")
    assert slowed == ("", "slowed by: power cap (12 %), thermal (< 1 %)", "warn")


def test_a_card_that_was_not_slowed_has_no_mark() -> None:
    assert len(told({"gpu": encode(replace(USE, throttle={}))})) == 2


def test_a_value_that_is_a_reason_shows_it_and_is_never_zero() -> None:
    why = Unavailable("no permission")
    blind = replace(USE, power_peak=why, power_mean=why, utilization_mean=why, throttle={})
    memory, clocks, reason = told({"gpu": encode(blind)})
    assert memory[1] == "memory 61.0 GiB peak, 60.0 GiB mean | power n/a"
    assert clocks[1] == "SM 1755 MHz mean, 1600 MHz least | busy n/a"
    assert reason == ("", "power, busy: no permission", "unknown")


def test_a_card_that_was_not_sampled_says_why() -> None:
    unseen = replace(USE, samples=0, reason="a slice of a divided GPU is not sampled")
    assert told({"gpu": encode(unseen)}) == [("GPU", "not sampled: a slice of a divided GPU is not sampled", "unknown")]


def test_the_bar_is_the_share_of_what_bounds_a_step() -> None:
    measured, spec = told({"roofline": encode(bound())})
    assert measured == ("MBU", "################....  80% of the copy measured in this run, memory-bound", "")
    assert spec == ("", "#############.......  67% of the specification of H200 SXM 141GB", "")
    busy = StepWork(weight_bytes=1e9, kv_bytes=0.0, flops=1.75e12)
    measured, spec = told({"roofline": encode(bound(busy))})
    assert measured == ("MFU", "##########..........  50% of the matmul measured in this run, compute-bound", "")
    assert spec[1].startswith("#######.............  35% of the specification")


def test_a_share_that_is_not_known_has_its_reason_in_the_place_of_a_bar() -> None:
    measured, spec = told({"roofline": encode(bound(card=None))})
    assert measured[1].endswith("memory-bound")
    assert spec == ("", "n/a of the specification: there is no table of processors", "unknown")
    short = replace(CEILINGS, copy=Unavailable("too little memory"))
    measured, spec = told({"roofline": encode(bound(ceilings=short))})
    assert measured == ("MBU", "n/a of the copy measured in this run: too little memory", "unknown")
    assert "67% of the specification" in spec[1]
    why = Unavailable("which of its 4 experts a step reads is not known")
    dark = StepWork(weight_bytes=why, kv_bytes=why, flops=why)
    assert told({"roofline": encode(bound(dark))}) == [("roofline", why.reason, "unknown")]


@pytest.mark.parametrize("gpu", [None, 7, {"device": 3}, {"reason": "x"}, {"power_mean": "much"}])
def test_what_another_version_wrote_is_left_out(gpu: Any) -> None:
    assert told({"gpu": gpu, "roofline": gpu}) == []


def samples() -> list[Metric]:
    values = [("gpu.memory", 60 * GIB, "B"), ("gpu.memory", 62 * GIB, "B"), ("gpu.power", 500, "W")]
    values += [("gpu.clock_sm", 1980, "MHz"), ("gpu.clock_sm", 1900, "MHz"), ("tpot", 0.008, "s")]
    return [Metric(at=NOW - 50 + n, name=name, value=value, unit=unit) for n, (name, value, unit) in enumerate(values)]


def test_samples_of_the_card_are_neither_metrics_nor_the_plot() -> None:
    from hfbench.jobs.snapshot import read_job

    job = make_job(jobs_root(), "aaaa02", "bench.generate", {"model": "m"}, [*STARTED, *samples()])
    text = job_text(read_job(job))
    assert [line.split()[0] for line in text.metrics] == ["tpot"]
    assert text.plot is not None
    assert text.plot.title == "tpot"


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_job_under_way_shows_what_its_card_did_so_far(bench: Any, until: Any, picture: Any, size: Any) -> None:
    job = make_job(jobs_root(), "aaaa02", "bench.generate", {"model": "m"}, [*STARTED, *samples()])
    held = Held(job)
    async with bench().run_test(size=size) as pilot:
        pilot.app.open_job(job.id)
        await until(pilot, lambda: "memory 62.0 GiB peak, 61.0 GiB mean" in "\n".join(picture(pilot)))
        screen = " ".join(" ".join(picture(pilot)).split())
        assert "power 500 W peak, 500 W mean" in screen
        assert "1900 MHz least" in screen
        assert "busy" not in screen  # the driver did not tell it
    held.release()


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_a_finished_job_shows_mark_and_bar_above_its_result(
    bench: Any, until: Any, picture: Any, size: Any
) -> None:
    data = json.loads((Path(__file__).parent / "data" / "generate.json").read_text())
    result = data | {"gpu": encode(USE), "roofline": encode(bound())}
    events = [*STARTED, *samples(), Finished(at=NOW, seconds=59)]
    job = make_job(jobs_root(), "aaaa01", "bench.generate", {"model": "m"}, events, result=result)
    async with bench().run_test(size=size) as pilot:
        pilot.app.open_job(job.id)
        await until(pilot, lambda: "! slowed by: power cap (12 %)" in "\n".join(picture(pilot)))
        screen = "\n".join(picture(pilot))
        assert "80% of the copy measured in this run, memory-bound" in screen
        assert "67% of the specification of H200" in screen
        assert "bench.generate" in screen
        pane = pilot.app.screen.query_one("LogView")
        assert pane.size.height >= 5  # the result stays readable


async def test_a_job_without_a_card_has_no_such_line(bench: Any, until: Any, picture: Any) -> None:
    events = [*STARTED, Finished(at=NOW, seconds=59)]
    job = make_job(jobs_root(), "aaaa03", "bench.generate", {"model": "m"}, events, result={"brand_new": 7})
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.open_job(job.id)
        await until(pilot, lambda: "brand_new" in "\n".join(picture(pilot)))
        assert not any(line.strip().startswith("GPU ") for line in picture(pilot))
        assert not pilot.app.screen.query_one("#gpu").display
