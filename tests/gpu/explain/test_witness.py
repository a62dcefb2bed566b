"""What a job tells of its allocator while it runs, and when memory runs out. Statistics are simulated where said."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hfbench.codec import decode
from hfbench.errors import HfbenchError
from hfbench.gpu.explain.picture import Explanation, MemoryPicture
from hfbench.gpu.explain.segments import Snapshot, read_raw
from hfbench.gpu.explain.snapshot_file import read_snapshot
from hfbench.gpu.explain.statistics import TorchStatistics, statistics_picture
from hfbench.gpu.explain.witness import DeviceMemoryError, watching_memory
from hfbench.jobs.events import Artifact, Event, Metric
from hfbench.jobs.run import Run

torch = pytest.importorskip("torch")
MIB, GIB = 2**20, 2**30
SENTENCE = (
    "CUDA out of memory. Tried to allocate 6.00 GiB. GPU 0 has a total capacity of 24.00 GiB of which 1.00 GiB is "
    "free. Including non-PyTorch memory, this process has 22.50 GiB memory in use. Of the allocated memory 14.00 GiB "
    "is allocated by PyTorch, and 8.00 GiB is reserved by PyTorch but unallocated."
)
STATISTICS = {
    "allocated_bytes.all.current": 14 * GIB,
    "reserved_bytes.all.current": 22 * GIB,
    "reserved_bytes.all.peak": 23 * GIB,
    "active_bytes.all.current": 14 * GIB,
    "inactive_split_bytes.all.current": 8 * GIB,
    "num_ooms": 1,
    "num_alloc_retries": 2,
    "reserved_bytes_by_private_pools.0_1.all.current": 3 * GIB,
    "reserved_bytes_by_private_pools.0_1.all.peak": 4 * GIB,
}
SEGMENTS = [
    {"device": 0, "total_size": 2 * GIB, "blocks": [[GIB, "active_allocated"], [GIB, "inactive"]]} for _ in range(8)
] + [{"device": 0, "total_size": 6 * GIB, "blocks": [[6 * GIB, "active_allocated"]]}]


class Simulated:
    """An allocator whose figures are made up."""

    name = "simulated"

    def __init__(self, *, broken: bool = False) -> None:
        self.broken, self.asked = broken, 0

    def read(self) -> Mapping[str, Any] | None:
        self.asked += 1
        if self.broken:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        return STATISTICS

    def snapshot(self) -> Snapshot | None:
        if self.broken:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        return read_raw({"segments": SEGMENTS})

    def limits(self) -> MemoryPicture | None:
        return None


def failing(error: BaseException, folder: Path, source: Simulated | None = None) -> tuple[HfbenchError, list[Event]]:
    told: list[Event] = []
    with (
        pytest.raises(HfbenchError) as caught,
        watching_memory(Run(told.append, folder), 0, "GPU-1", source=source or Simulated()),
    ):
        raise error
    return caught.value, told


def test_a_run_reports_its_allocator_and_nothing_on_top() -> None:
    told: list[Event] = []
    source = Simulated()
    with watching_memory(Run(told.append), 0, "GPU-1", source=source, interval=0.01):
        deadline = time.monotonic() + 30
        while source.asked < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
    metrics = {each.name: (each.value, each.unit) for each in told if isinstance(each, Metric)}
    assert metrics == {
        "torch.allocated": (14 * GIB, "B"),
        "torch.reserved": (22 * GIB, "B"),
        "torch.reserved_peak": (23 * GIB, "B"),
        "torch.active": (14 * GIB, "B"),
        "torch.inactive_split": (8 * GIB, "B"),
        "torch.largest_free": (GIB, "B"),
        "torch.alloc_retries": (2, ""),
        "torch.ooms": (1, ""),
    }
    assert sum(each.name == "torch.largest_free" for each in told if isinstance(each, Metric)) == 1
    count = len(told)
    time.sleep(0.05)
    assert len(told) == count, "it went on after the run"


def test_torch_without_cuda_reports_nothing() -> None:
    source = TorchStatistics(0)
    if torch.cuda.is_initialized():
        pytest.skip("CUDA runs in this process")
    assert (source.read(), source.snapshot(), source.limits()) == (None, None, None)


def test_statistics_are_read_by_their_keys_and_what_is_missing_is_unknown() -> None:
    picture = statistics_picture(STATISTICS)
    assert (picture.reserved, picture.private_reserved, picture.inactive_split) == (22 * GIB, 3 * GIB, 8 * GIB)
    assert statistics_picture({}) == MemoryPicture()


def test_running_out_names_the_cause_and_leaves_two_artifacts(tmp_path: Path) -> None:
    error, told = failing(torch.OutOfMemoryError(SENTENCE), tmp_path)
    assert isinstance(error, DeviceMemoryError)
    assert str(error).startswith(
        "cuda:0: out of device memory: torch's free memory is in pieces that are too small: 8.00 GiB are reserved and "
        "hold no tensor, the largest piece of it 1.00 GiB; 8.00 GiB lie in segments still in use elsewhere. "
        "Start the process with PYTORCH_ALLOC_CONF=expandable_segments:True"
    )
    paths = [each.path for each in told if isinstance(each, Artifact)]
    assert paths == ["artifacts/memory-snapshot.json", "artifacts/memory.json"]
    explanation = decode(Explanation, json.loads((tmp_path / "artifacts/memory.json").read_text()))
    assert explanation.cause is not None
    assert explanation.cause.id == "fragmentation"
    assert explanation.sources == ("error of torch 2.1", "segments of the allocator", "statistics of the allocator")
    assert explanation.picture.largest_free == GIB
    assert read_snapshot(tmp_path / "artifacts/memory-snapshot.json").picture(0).reserved == 22 * GIB


def test_the_error_may_lie_behind_another(tmp_path: Path) -> None:
    error = HfbenchError("the model failed while generating")
    error.__cause__ = torch.OutOfMemoryError(SENTENCE)
    found, _ = failing(error, tmp_path)
    assert "in pieces that are too small" in str(found)


def test_a_driver_that_answers_nothing_any_more_leaves_what_the_error_says(tmp_path: Path) -> None:
    error, told = failing(torch.OutOfMemoryError(SENTENCE), tmp_path, Simulated(broken=True))
    assert "in pieces that are too small: 8.00 GiB are reserved and hold no tensor" in str(error)
    assert [each.path for each in told if isinstance(each, Artifact)] == ["artifacts/memory.json"]


def test_an_unknown_wording_is_still_an_error_of_memory(tmp_path: Path) -> None:
    error, _ = failing(torch.OutOfMemoryError("no room left, in words of tomorrow"), tmp_path, Simulated(broken=True))
    assert str(error) == (
        "cuda:0: out of device memory: no room left, in words of tomorrow. Use a smaller batch or dtype"
    )


def test_a_folder_that_cannot_be_written_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "artifacts").write_text("in the way")
    error, told = failing(torch.OutOfMemoryError(SENTENCE), tmp_path)
    assert "in pieces that are too small" in str(error)
    assert not any(isinstance(each, Artifact) for each in told)


@pytest.mark.parametrize("error", [ValueError("CUDA out of memory. Tried"), RuntimeError("size mismatch"), OSError(28)])
def test_other_errors_pass_untouched(error: Exception, tmp_path: Path) -> None:
    with (
        pytest.raises(type(error)) as caught,
        watching_memory(Run(directory=tmp_path), 0, "GPU-1", source=Simulated()),
    ):
        raise error
    assert caught.value is error
    assert not (tmp_path / "artifacts").exists()
