"""Snapshots of torch's allocator: what they add up to, and that reading one runs nothing."""

from __future__ import annotations

import json
import os
import pickle
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from hfbench.errors import HfbenchError
from hfbench.gpu.explain import snapshot_file
from hfbench.gpu.explain.segments import BadSnapshot, read_raw
from hfbench.gpu.explain.snapshot_file import read_snapshot, snapshot_data, write_snapshot

MIB = 2**20


def segment(*blocks: tuple[int, str], **more: Any) -> dict[str, Any]:
    """A segment in the format that torch.cuda.memory._snapshot documents; block sizes are MiB."""
    address, listed = 0x7F0000000000, []
    for mib, state in blocks:
        listed.append(
            {"address": address, "size": mib * MIB, "requested_size": mib * MIB, "state": state, "frames": []}
        )
        address += mib * MIB
    total = sum(each["size"] for each in listed)
    active = sum(each["size"] for each in listed if each["state"] != "inactive")
    return {
        "device": 0,
        "address": 0x7F0000000000,
        "total_size": total,
        "allocated_size": sum(each["size"] for each in listed if each["state"] == "active_allocated"),
        "active_size": active,
        "requested_size": active,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": listed,
        **more,
    }


USED, GAP, WAITING = "active_allocated", "inactive", "active_awaiting_free"
SNAPSHOT = {
    "segments": [
        segment((100, USED), (60, GAP), (40, USED)),
        segment((30, GAP), (10, WAITING)),
        segment((80, GAP)),
        segment((20, USED), (44, GAP), segment_pool_id=(0, 1)),
        segment((1, USED), (1, GAP), segment_type="small"),
        segment((512, GAP), device=1),
    ],
    "device_traces": [
        [
            {"action": "alloc", "addr": 1, "size": 5, "stream": 0, "frames": []},
            {"action": "oom", "size": 90 * MIB, "device_free": 12 * MIB, "stream": 0, "frames": []},
        ],
        [],
    ],
    "allocator_settings": {"expandable_segments": False, "max_split_size": -1},
    "external_annotations": [],
}


def test_a_snapshot_is_summed_by_device_pool_and_kind() -> None:
    picture = read_raw(SNAPSHOT).picture(0)
    assert picture.failed
    assert picture.request == 90 * MIB
    assert picture.free == 12 * MIB
    assert picture.reserved == (200 + 40 + 80 + 64 + 2) * MIB
    assert picture.allocated == (140 + 20 + 1) * MIB
    assert picture.largest_free == 80 * MIB  # not the 44 of a graph's pool, not the 512 of another device
    assert picture.inactive_split == (60 + 30 + 1) * MIB
    assert (picture.private_reserved, picture.private_cached) == (64 * MIB, 44 * MIB)
    assert picture.expandable is False


def test_a_small_request_is_served_from_small_segments() -> None:
    calm = {**SNAPSHOT, "device_traces": []}
    assert read_raw(calm).picture(0, 2 * MIB).largest_free == 1 * MIB
    assert read_raw(calm).picture(0, 20 * MIB).largest_free == 80 * MIB


def test_the_device_that_refused_comes_first() -> None:
    assert read_raw(SNAPSHOT).devices == (0, 1)
    assert read_raw({"segments": SNAPSHOT["segments"]}).devices == (1, 0)


def test_torchs_own_viewer_sums_the_same_snapshot_alike() -> None:
    viewer = pytest.importorskip("torch.cuda._memory_viz")
    text = viewer.segsum({"segments": [each for each in SNAPSHOT["segments"] if each["device"] == 0]})
    picture = read_raw(SNAPSHOT).picture(0)
    assert f"total_reserved: {viewer.Bytes(picture.reserved)}" in text
    assert f"total_allocated: {viewer.Bytes(picture.allocated)}" in text


def test_pickle_bare_list_and_json_are_read_alike(tmp_path: Path) -> None:
    for name, data in {
        "a.pickle": pickle.dumps(SNAPSHOT),
        "b.json": json.dumps(SNAPSHOT).encode(),
    }.items():
        (tmp_path / name).write_bytes(data)
        assert read_snapshot(tmp_path / name) == read_raw(SNAPSHOT)
    (tmp_path / "c.pickle").write_bytes(pickle.dumps(SNAPSHOT["segments"], protocol=2))
    assert read_snapshot(tmp_path / "c.pickle").segments == read_raw(SNAPSHOT).segments


class Touch:
    """Runs a command where it is unpickled freely."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.path}",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_that_asks_for_code_is_refused_and_runs_none(tmp_path: Path, protocol: int) -> None:
    file, witness = tmp_path / "evil.pickle", tmp_path / "ran"
    file.write_bytes(pickle.dumps({"segments": [Touch(witness)]}, protocol=protocol))
    with pytest.raises(BadSnapshot, match="a snapshot needs no code"):
        read_snapshot(file)
    assert not witness.exists()
    pickle.loads(file.read_bytes())  # it would have
    assert witness.exists()


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ({"device_traces": []}, "no list of segments"),
        ({"segments": [5]}, "segment 0 is no dictionary"),
        ({"segments": [segment((1, USED)), segment((1, USED), total_size="big")]}, "total_size of segment 1 is 'big'"),
        ({"segments": [segment((1, USED), total_size=-1)]}, "total_size of segment 0 is -1"),
        ({"segments": [segment((1, USED), blocks=[{"size": 4}])]}, "a block of segment 0 has no size and state"),
        ({"segments": [segment((1, USED), blocks=[[-4, "inactive"]])]}, "has -4 bytes"),
    ],
)
def test_what_is_no_snapshot_is_named(tmp_path: Path, data: Any, found: str) -> None:
    file = tmp_path / "s.pickle"
    file.write_bytes(pickle.dumps(data))
    with pytest.raises(BadSnapshot, match=found) as caught:
        read_snapshot(file)
    assert str(file) in str(caught.value)


def test_lists_shared_between_segments_end_at_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hfbench.gpu.explain.segments.MOST_BLOCKS", 1000)
    one = segment(*[(1, USED)] * 100)
    (tmp_path / "bomb.pickle").write_bytes(pickle.dumps({"segments": [one] * 11}))
    with pytest.raises(BadSnapshot, match="over 1,000 blocks"):
        read_snapshot(tmp_path / "bomb.pickle")


@pytest.mark.parametrize("kind", ["folder", "absent", "pipe"])
def test_what_is_no_file_is_a_sentence(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "it"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    with pytest.raises(HfbenchError) as caught:
        read_snapshot(path)
    assert str(path) in str(caught.value)


def test_blocks_that_do_not_fill_their_segment_are_told() -> None:
    odd = read_raw({"segments": [segment((4, USED), total_size=5 * MIB), segment((4, USED))]})
    assert odd.notes == ("the blocks of 1 of 2 segments do not add up to the segment",)
    assert read_raw({"segments": [segment((4, USED))]}).notes == ()


blocks = some.lists(some.tuples(some.integers(1, 64), some.sampled_from([USED, GAP, WAITING])), min_size=1, max_size=6)
segments = some.lists(
    some.builds(
        lambda pieces, device, pool, kind, grows: segment(
            *pieces, device=device, segment_pool_id=pool, segment_type=kind, is_expandable=grows
        ),
        blocks,
        some.integers(0, 2),
        some.sampled_from([(0, 0), (0, 1), (1, 0)]),
        some.sampled_from(["large", "small"]),
        some.booleans(),
    ),
    max_size=8,
)


@given(segments)
def test_parts_always_add_up(raw: list[dict[str, Any]]) -> None:
    snapshot = read_raw({"segments": raw})
    for device in snapshot.devices:
        own = [each for each in raw if each["device"] == device]
        picture = snapshot.picture(device)
        gaps = [
            (block["size"], each["segment_pool_id"])
            for each in own
            for block in each["blocks"]
            if block["state"] == GAP
        ]
        waiting = sum(each["active_size"] - each["allocated_size"] for each in own)
        assert picture.reserved == sum(each["total_size"] for each in own)
        assert picture.reserved == picture.allocated + waiting + sum(size for size, _ in gaps)
        assert picture.cached == sum(size for size, pool in gaps if pool == (0, 0)) + waiting
        assert picture.largest_free <= picture.cached
        assert picture.inactive_split <= picture.cached
        assert picture.private_cached <= picture.private_reserved <= picture.reserved


@given(raw=segments, most_blocks=some.integers(0, 20), most_segments=some.integers(0, 4))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_written_is_bounded_and_says_the_same(
    raw: list[dict[str, Any]], most_blocks: int, most_segments: int, tmp_path: Path
) -> None:
    snapshot = read_raw({**SNAPSHOT, "segments": raw})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(snapshot_file, "MOST_WRITTEN_BLOCKS", most_blocks)
        patch.setattr(snapshot_file, "MOST_WRITTEN_SEGMENTS", most_segments)
        write_snapshot(tmp_path / "s.json", snapshot)
        data = snapshot_data(snapshot)
    assert sum(len(each["blocks"]) for each in data["segments"]) <= most_blocks
    again = read_snapshot(tmp_path / "s.json")
    for device in snapshot.devices:
        assert again.picture(device) == snapshot.picture(device)


@given(some.binary(max_size=200))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bytes_break_the_reader(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "any"
    file.write_bytes(data)
    with suppress(HfbenchError):
        read_snapshot(file)


@given(at=some.integers(0, 10**6), byte=some.integers(0, 255))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_of_a_pickle_breaks_the_reader(tmp_path: Path, at: int, byte: int) -> None:
    data = bytearray(pickle.dumps(SNAPSHOT))
    data[at % len(data)] = byte
    file = tmp_path / "damaged"
    file.write_bytes(data)
    with suppress(HfbenchError):
        read_snapshot(file).picture(0)
