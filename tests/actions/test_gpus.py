"""The action gpus: rows for people, reasons for what is unknown."""

from __future__ import annotations

import csv
import dataclasses

import pytest

from hfbench.actions.gpus import Gpus, GpusResult
from hfbench.codec import encode
from hfbench.errors import UsageError
from hfbench.gpu.reading import Unavailable
from hfbench.gpu.telemetry import (
    DeviceReading,
    Ecc,
    GpuProcess,
    Memory,
    Mig,
    MigInstance,
    NvLinks,
    Pcie,
    Rows,
    Utilization,
    Xid,
)
from hfbench.jobs.events import Event, Progress
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


def below(**changes: object) -> list[str]:
    """The lines below a card with these values."""
    return [line.strip() for line in result(dataclasses.replace(CARD, **changes)).lines()[2:-1]]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"throttle": ("power cap", "thermal (hardware)")}, "slowed by: power cap, thermal (hardware)"),
        ({"stale": {"power": 3.2}, "waiting": "no answer to power for 3 s"}, "no answer to power for 3 s"),
        ({"stale": {"power": 3.2, "pcie.rx": 9.0}}, "old values: power 3 s, pcie.rx 9 s"),
        ({"xids": (Xid(code=79, meaning="the GPU fell off the bus", at=1.0),)}, "Xid 79: the GPU fell off the bus"),
        ({"ecc": Ecc(volatile_uncorrected=2)}, "2 uncorrected ECC errors (volatile)"),
        ({"rows": Rows(remapping_pending=True)}, "memory is to be taken out of use: reset the GPU"),
        ({"rows": Rows(remapping_failed=True)}, "a memory row could not be replaced"),
        ({"pcie": Pcie(width=8, width_max=16)}, "PCIe x8 of x16"),
        ({"nvlink": NvLinks(active=(True, False, True, False))}, "NVLink down: 1, 3"),
    ],
)
def test_what_an_operator_should_know_stands_below_the_card(changes: dict[str, object], told: str) -> None:
    assert told in below(**changes)


def test_a_healthy_card_has_nothing_below_it() -> None:
    healthy = {"ecc": Ecc(volatile_uncorrected=0), "pcie": Pcie(width=16, width_max=16), "throttle": (), "xids": ()}
    assert below(**healthy, nvlink=NvLinks(active=(True,)), processes=()) == []
    assert below() == []  # what was not read is no fault


@pytest.mark.usefixtures("terminal")
def test_processes_and_slices_are_listed_with_their_job_and_made_safe() -> None:
    process = GpuProcess(
        pid=42, kinds=("compute",), memory=4 * GIB, user="root", command="a\x1b[31m" + "b" * 99, job="2026-x"
    )
    foreign = dataclasses.replace(process, user=Unavailable("not visible"), job="", memory=Unavailable("not told"))
    lines = below(processes=(process, *[foreign] * 9))
    assert lines[0].startswith("42  4.00 GiB compute job 2026-x: a\\x1b[31mb")
    assert "n/a compute not visible:" in lines[1]
    assert lines[-1] == "and 2 more processes"
    assert max(map(len, lines)) <= 80
    half = MigInstance(index=0, uuid="MIG-1", gpu_instance=7, compute_instance=0, memory_used=GIB, memory_total=2 * GIB)
    assert below(mig=Mig(enabled=True, pending=True, instances=(half,))) == ["MIG 0: 1.00 GiB of 2.00 GiB  MIG-1"]


def test_a_csv_cell_is_a_value_or_empty_with_its_reason_beside() -> None:
    blind = dataclasses.replace(CARD, power=Unavailable("no permission"))
    lines = Gpus(csv=True).frame(result(blind), 0, width=80, height=99, ascii=True, color=False)
    [row] = csv.DictReader(lines)
    assert (row["power_w"], row["memory_used_bytes"], row["temperature_c"]) == ("", str(6 * GIB), "61")
    assert "power_w: no permission" in row["unknown"]
    assert len(Gpus(csv=True).frame(result(blind), 1, width=80, height=99, ascii=True, color=False)) == 1


def test_a_page_is_as_wide_as_asked_and_its_numbers_are_whole() -> None:
    for width in (40, 80, 120):
        lines = Gpus(watch=True).frame(result(CARD), 0, width=width, height=99, ascii=True, color=False)
        assert max(map(len, lines)) <= width
        assert all(line.isascii() for line in lines)
    text = "\n".join(lines)
    for part in ("6.0/96.0 GiB", "100 %", "312 W of 600 W", "SM n/a"):
        assert part in text


def test_eight_cards_fit_a_small_terminal_and_more_are_counted() -> None:
    cards = [dataclasses.replace(CARD, index=index, throttle=("power cap",)) for index in range(8)]
    lines = Gpus(watch=True).frame(result(*cards), 0, width=79, height=23, ascii=True, color=False)
    assert len(lines) <= 23
    for index, line in enumerate(lines[1:]):
        assert line.split()[0] == str(index)
        for part in ("6.0/96.0 GiB", "100 %", "61 C", "312 W", "slowed by: power cap"):
            assert part in line
    few = Gpus(watch=True).frame(result(*cards), 0, width=79, height=6, ascii=True, color=False)
    assert len(few) == 6
    assert few[-1].startswith("and 4 more GPUs")


def test_several_samples_are_a_progress_and_the_last_is_the_result() -> None:
    told: list[Event] = []
    last = Gpus(demo=True, count=3, interval=0.25).perform(Run(told.append))
    assert last.demo
    assert [each.done for each in told if isinstance(each, Progress)][-1] == 3


def test_watching_without_an_end_needs_a_terminal() -> None:
    with pytest.raises(UsageError, match="no end without count"):
        Gpus(watch=True).perform(Run())


def test_a_word_in_place_of_a_number_of_made_up_cards_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFBENCH_DEMO_GPUS", "many")
    with pytest.raises(UsageError, match=r"HFBENCH_DEMO_GPUS: 'many' is no number of cards\. Give a number up to 64"):
        Gpus().perform(Run())
