"""The action gpus: rows for people, reasons for what is unknown."""

from __future__ import annotations

import dataclasses

from hfbench.actions.gpus import Gpus, GpusResult
from hfbench.codec import encode
from hfbench.gpu.reading import Unavailable
from hfbench.gpu.telemetry import DeviceReading, Memory, Utilization
from hfbench.jobs.run import Run

GIB = 2**30
CARD = DeviceReading(
    index=0,
    uuid="GPU-1",
    name="A card with a name that is far too long for its column",
    memory=Memory(used=6 * GIB, reserved=GIB, free=89 * GIB, total=96 * GIB),
    utilization=Utilization(gpu=100, memory=17),
    temperature=61,
    power=312.5,
    power_limit=600,
    clock_sm=Unavailable("not supported by this GPU"),
    clock_memory=2619,
)


def result(*devices: DeviceReading, reason: str = "") -> GpusResult:
    return GpusResult(driver="580.1", cuda="13.0", reason=reason, devices=devices)


def test_numbers_are_never_cut_and_rows_fit_eighty_columns() -> None:
    lines = result(CARD).lines()
    assert max(map(len, lines)) <= 80
    for part in ("6.00 GiB", "96.0 GiB", "100 %", "61 C", "312 W"):
        assert part in lines[1]


def test_an_unknown_value_is_told_apart_from_zero() -> None:
    unknown = dataclasses.replace(CARD, temperature=Unavailable("no permission"))
    assert "n/a" in result(unknown).lines()[1]
    assert encode(result(unknown))["devices"][0]["temperature"] == {"reason": "no permission"}


def test_a_lost_card_is_a_row_with_its_reason() -> None:
    lost = dataclasses.replace(CARD, index=1, reason="the GPU is lost (fell off the bus)")
    lines = result(CARD, lost).lines()
    assert lines[2].endswith("1 the GPU is lost (fell off the bus)")


def test_it_answers_on_any_machine() -> None:
    answer = Gpus().perform(Run())
    assert answer.devices or answer.reason
    assert answer.lines()
