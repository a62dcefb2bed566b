"""What is known of a job, a snapshot and a log, put together."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

from hfbench.codec import encode
from hfbench.gpu.explain.gather import explain_file, explain_job, explain_text
from hfbench.gpu.explain.picture import MemoryPicture
from hfbench.gpu.explain.rules import explain
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.events import Failed, Metric, to_line

GIB = 2**30
PICTURE = MemoryPicture(
    device="cuda:0", failed=True, request=4 * GIB, total=80 * GIB, free=2 * GIB, reserved=70 * GIB, allocated=69 * GIB
)


def job(folder: Path, *events: Metric | Failed) -> JobDirectory:
    """A job that is over, with these events."""
    (folder / "artifacts").mkdir()
    (folder / "request.json").write_text('{"v": 1, "action": "toy.oom"}')
    (folder / "events.jsonl").write_bytes(b"".join(map(to_line, events)))
    return JobDirectory(folder)


def test_samples_of_the_card_are_put_beside_what_the_worker_wrote(tmp_path: Path) -> None:
    samples = [Metric(name="gpu.memory", value=float(gib * GIB), unit="B") for gib in (40, 45, 41)]
    told = job(tmp_path, *samples)
    (tmp_path / "artifacts" / "memory.json").write_text(json.dumps(encode(explain(PICTURE, sources=("error",)))))
    [explanation] = explain_job(told).explanations
    assert explanation.picture.sampled_peak == 45 * GIB
    assert explanation.sources == ("error",)
    peak = next(each for each in explanation.causes if each.id == "peak-between-samples")
    assert peak.evidence == "samples saw at most 45.0 GiB in use; in between it was 78.0 GiB"


def test_a_broken_explanation_leaves_error_and_metrics(tmp_path: Path) -> None:
    text = (
        "CUDA out of memory. Tried to allocate 6.00 GiB. GPU 0 has a total capacity of 24.00 GiB of which 1.00 GiB is"
    )
    told = job(
        tmp_path,
        Metric(name="torch.reserved", value=22.0 * GIB, unit="B"),
        Metric(name="torch.allocated", value=9.0 * GIB, unit="B"),
        Metric(name="torch.allocated", value=14.0 * GIB, unit="B"),
        Metric(name="torch.largest_free", value=1.0 * GIB, unit="B"),
        Failed(error={"found": f"{text} free."}),
    )
    (tmp_path / "artifacts" / "memory.json").write_text('{"picture": 5')
    [explanation] = explain_job(told).explanations
    assert explanation.cause is not None
    assert explanation.cause.id == "fragmentation"
    assert explanation.cause.evidence == "8.00 GiB are reserved and hold no tensor, the largest piece of it 1.00 GiB"
    assert explanation.sources == ("error of torch 2.1", "metrics of the job")


def test_a_snapshot_tells_each_device(tmp_path: Path) -> None:
    segments = [
        {"device": device, "total_size": size, "blocks": [{"size": size, "state": "active_allocated"}]}
        for device, size in ((0, 5), (3, 7))
    ]
    (tmp_path / "s.pickle").write_bytes(pickle.dumps({"segments": segments}))
    told = explain_file(tmp_path / "s.pickle")
    assert [each.picture.device for each in told.explanations] == ["cuda:3", "cuda:0"]
    (tmp_path / "none.pickle").write_bytes(pickle.dumps({"segments": []}))
    assert "torch held no device memory" in explain_file(tmp_path / "none.pickle").reason


def test_a_log_without_a_failure_says_so(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"\xff\xfe all is well")
    told = explain_text(tmp_path / "log")
    assert "no sentence says that device memory ran out" in told.reason
    assert told.lines()[0].startswith("reason    ")
