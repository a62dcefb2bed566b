"""What a job asks of a Ray cluster, and the sentence about what the cluster lacks."""

from __future__ import annotations

import pytest

from hfbench.errors import UsageError
from hfbench.jobs.executors.base import Need
from hfbench.jobs.executors.ray_cluster import Node, Wanted, lacking, wanted
from hfbench.jobs.executors.spec import parse_on

SMALL = Node(name="a", cpus=4, gpus=0, memory=8 << 30)
LARGE = Node(name="b", cpus=2, gpus=2, memory=4 << 30)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", Wanted(cpus=1, gpus=1, memory=0)),
        (",cpus=3,gpus=2", Wanted(cpus=3, gpus=2, memory=0)),
        (",memory=1000", Wanted(cpus=1, gpus=1, memory=1000)),
        (",memory=1.5g", Wanted(cpus=1, gpus=1, memory=3 << 29)),
        (",memory=16GB", Wanted(cpus=1, gpus=1, memory=16 << 30)),
    ],
)
def test_the_settings_of_a_place_go_before_what_the_action_needs(settings: str, expected: Wanted) -> None:
    assert wanted(parse_on(f"ray:auto{settings}"), Need(gpus=1)) == expected


@pytest.mark.parametrize("memory", ["much", "-1G", "16X"])
def test_a_memory_that_is_no_size_is_refused(memory: str) -> None:
    with pytest.raises(UsageError, match=r"memory is .*Write bytes, or for example 16G"):
        wanted(parse_on(f"ray:auto,memory={memory}"), Need())


def test_all_that_a_job_needs_must_be_on_one_node() -> None:
    assert not lacking([SMALL, LARGE], [Wanted(cpus=4, gpus=0, memory=0), Wanted(cpus=2, gpus=2, memory=0)])
    told = lacking([SMALL, LARGE], [Wanted(cpus=4, gpus=1, memory=0)])
    assert told == (
        "a job needs 4 CPUs, 1 GPU on one node, and the cluster has 2 nodes with 4 CPUs, 0 GPUs; 2 CPUs, 2 GPUs"
    )


def test_memory_is_told_where_it_is_asked_for_and_each_kind_of_node_once() -> None:
    told = lacking([SMALL, SMALL, LARGE], [Wanted(cpus=1, gpus=1, memory=6 << 30)])
    assert told.endswith(
        "the cluster has 3 nodes with 4 CPUs, 0 GPUs and 8.00 GiB of memory; 2 CPUs, 2 GPUs and 4.00 GiB of memory"
    )


def test_a_cluster_of_many_kinds_is_told_in_short() -> None:
    nodes = [Node(name="n", cpus=cpus) for cpus in range(1, 10)]
    assert lacking(nodes, [Wanted(cpus=1, gpus=1, memory=0)]).endswith("5 CPUs, 0 GPUs; and 4 other kinds")
    assert lacking([], [Wanted(cpus=1, gpus=0, memory=0)]).endswith("the cluster has no live node")
