"""Each cause over a plain picture: where it is found, and the nearest picture where it is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hfbench.gpu.explain.picture import MemoryPicture, OtherProcess, merged
from hfbench.gpu.explain.result import ExplainResult
from hfbench.gpu.explain.rules import RULES, explain
from hfbench.gpu.explain.sentence import parse_oom

GIB, MIB = 2**30, 2**20

FULL = MemoryPicture(
    device="cuda:0",
    failed=True,
    request=4 * GIB,
    total=73 * GIB + 500 * MIB,
    free=2 * GIB,
    reserved=70 * GIB,
    allocated=69 * GIB,
    process_used=70 * GIB + 500 * MIB,
    others=(),
    driver=GIB,
)
"""4 GiB asked for and 2 free; beside live tensors nothing is of a size to matter."""

OTHER = OtherProcess(pid=77, bytes=30 * GIB, who="ada, python")

CASES = {
    "request-too-large": (replace(FULL, request=74 * GIB), replace(FULL, request=73 * GIB)),
    "outside-allocator": (replace(FULL, outside="cuBLAS", request=None), FULL),
    "fraction-cap": (
        replace(FULL, cap=72 * GIB, free=9 * GIB),
        replace(FULL, cap=73 * GIB, free=9 * GIB, request=3 * GIB),
    ),
    "mig-slice": (replace(FULL, card_total=141 * GIB, request=12 * GIB), FULL),
    "fragmentation": (
        replace(FULL, allocated=60 * GIB, largest_free=3 * GIB, inactive_split=10 * GIB),
        replace(FULL, allocated=60 * GIB, largest_free=4 * GIB),
    ),
    "private-pools": (replace(FULL, private_reserved=12 * GIB), replace(FULL, private_reserved=100 * MIB)),
    "other-processes": (
        replace(FULL, others=(OTHER,), reserved=40 * GIB, allocated=39 * GIB, process_used=41 * GIB),
        replace(FULL, others=(replace(OTHER, bytes=100 * MIB),)),
    ),
    "non-torch": (replace(FULL, reserved=60 * GIB, allocated=60 * GIB), replace(FULL, process_used=70 * GIB)),
    "peak-between-samples": (replace(FULL, sampled_peak=50 * GIB), replace(FULL, sampled_peak=70 * GIB)),
    "working-set": (
        replace(FULL, request=12 * GIB),
        replace(FULL, reserved=20 * GIB, allocated=20 * GIB, process_used=20 * GIB),
    ),
    "gone-again": (replace(FULL, free=5 * GIB), FULL),
}
"""A picture that has the cause, and one that is as near to it as can be and has not."""


def found(picture: MemoryPicture) -> dict[str, bool]:
    return {cause.id: cause.enough for cause in explain(picture).causes}


def test_every_rule_shows_a_picture_with_and_one_without() -> None:
    assert [each.id for each in RULES] == list(CASES)
    assert all(each.meaning for each in RULES)


@pytest.mark.parametrize("id", CASES)
def test_a_cause_is_found_where_it_is(id: str) -> None:
    assert id in found(CASES[id][0])


@pytest.mark.parametrize("id", CASES)
def test_a_cause_is_not_found_where_it_is_not(id: str) -> None:
    assert id not in found(CASES[id][1])


@pytest.mark.parametrize(
    "id",
    [
        "request-too-large",
        "outside-allocator",
        "fraction-cap",
        "mig-slice",
        "fragmentation",
        "private-pools",
        "other-processes",
        "non-torch",
        "working-set",
    ],
)
def test_what_alone_explains_a_failure_comes_first(id: str) -> None:
    [first, *_] = explain(CASES[id][0]).causes
    assert (first.id, first.enough) == (id, True)
    assert first.evidence
    assert first.remedy


def test_a_cause_too_small_to_let_the_request_through_is_told_but_not_blamed() -> None:
    picture = replace(FULL, request=30 * GIB, private_reserved=12 * GIB)
    assert found(picture) == {"working-set": True, "private-pools": False}


def test_crumbs_of_a_full_device_are_no_fragmentation() -> None:
    picture = replace(FULL, request=3 * GIB, allocated=69 * GIB, largest_free=20 * MIB)
    assert found(picture) == {"working-set": False}
    assert "fragmentation" in found(replace(picture, allocated=65 * GIB))


def test_segments_that_can_grow_already_get_another_remedy() -> None:
    picture = CASES["fragmentation"][0]
    assert "expandable_segments:True" in explain(picture).causes[0].remedy
    assert "expandable_segments" not in explain(replace(picture, expandable=True)).causes[0].remedy


def test_free_blocks_of_graphs_are_no_fragmentation() -> None:
    picture = replace(CASES["fragmentation"][0], private_cached=10 * GIB, private_reserved=12 * GIB)
    assert "fragmentation" not in found(picture)


def test_processes_are_named_most_memory_first_and_those_that_hide_are_counted() -> None:
    others = tuple(OtherProcess(pid=pid, bytes=pid * GIB) for pid in (1, 2, 3, 4, 5))
    picture = replace(FULL, others=others, reserved=50 * GIB, process_used=51 * GIB)
    [cause] = [each for each in explain(picture).causes if each.id == "other-processes"]
    assert cause.evidence.startswith("they hold 19.5 GiB: pid 5 5.00 GiB; pid 4 4.00 GiB; pid 3 3.00 GiB; pid 2 2.00")
    assert "1 more processes 1.00 GiB" in cause.evidence
    assert "4.49 GiB of processes that are not visible from here" in cause.evidence


def test_a_process_whose_memory_is_not_told_is_not_taken_for_zero() -> None:
    picture = replace(FULL, others=(OtherProcess(pid=9, bytes=None),))
    [cause] = [each for each in explain(picture).causes if each.id == "other-processes"]
    assert cause.evidence == "pid 9 an amount the driver does not tell"


def test_a_picture_without_numbers_has_no_cause() -> None:
    assert explain(MemoryPicture()).causes == ()
    assert explain(MemoryPicture(failed=True)).causes == ()


def test_of_several_sources_the_first_that_knows_a_value_tells_it() -> None:
    told = merged([MemoryPicture(free=0, device="cuda:1"), MemoryPicture(free=5, total=9, failed=True)])
    assert told == MemoryPicture(free=0, total=9, device="cuda:1", failed=True)


def test_a_real_error_of_a_full_card_reads_as_full() -> None:
    said = parse_oom(
        "CUDA out of memory. Tried to allocate 128.00 MiB. GPU 0 has a total capacity of 14.56 GiB of which 111.81 MiB "
        "is free. Including non-PyTorch memory, this process has 14.45 GiB memory in use. Of the allocated memory "
        "14.25 GiB is allocated by PyTorch, and 60.81 MiB is reserved by PyTorch but unallocated."
    )
    assert said is not None
    assert found(said.picture()) == {"working-set": False}


def test_a_real_error_of_a_card_that_somebody_else_holds_names_him() -> None:
    said = parse_oom(
        "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 31.36 GiB of which 2.62 MiB is "
        "free. Process 81034 has 30.57 GiB memory in use. Including non-PyTorch memory, this process has 784.00 MiB "
        "memory in use. Of the allocated memory 179.69 MiB is allocated by PyTorch, and 12.31 MiB is reserved by "
        "PyTorch but unallocated."
    )
    assert said is not None
    [cause, *_] = explain(said.picture()).causes
    assert (cause.id, cause.evidence) == ("other-processes", "they hold 30.6 GiB: pid 81034 30.6 GiB")


@pytest.mark.parametrize("id", CASES)
def test_no_line_is_wider_than_80_cells(id: str) -> None:
    lines = ExplainResult(explanations=(explain(CASES[id][0], sources=("driver (NVML)",)),)).lines()
    assert max(map(len, lines)) <= 80
    assert any(f"[{id}]" in line for line in lines)
