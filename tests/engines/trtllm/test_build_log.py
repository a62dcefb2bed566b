"""The log of trtllm-build: steps it ends, rank by rank, and lines it marks as errors."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hfbench.engines.trtllm.build_log import BuildLog, complaint

AT = "[11/30/2026-22:00:00]"
LOG = "\n".join(
    [
        "Total time of converting checkpoints: 00:00:01",
        f"{AT} [TRT] [I] [MemUsageStats] Peak memory usage during Engine building and serialization: CPU: 2048 MiB",
        f"{AT} [TRT-LLM] [I] Total time of building Unnamed Network 0: 00:00:02",
        f"{AT} [TRT-LLM] [I] Serializing engine to out/rank0.engine...",
        f"{AT} [TRT-LLM] [I] Engine serialized. Total time: 00:00:01",
        f"{AT} [TRT-LLM] [I] Total time of building Unnamed Network 1: 00:00:02",
        f"{AT} [TRT-LLM] [I] Engine serialized. Total time: 00:00:01",
        f"{AT} [TRT-LLM] [I] Total time of building all engines: 00:00:06",
    ]
)


def test_steps_are_counted_rank_by_rank() -> None:
    log = BuildLog(ranks=2)
    told = [step for line in LOG.splitlines() for step in log.read(line)]
    assert told == [("compile", 1), ("write", 2), ("compile", 3), ("write", 4), ("compile", 5), ("compile", 5)]
    assert log.finished
    assert log.peak_mib == 2048


@given(st.lists(st.one_of(st.sampled_from(LOG.splitlines()), st.text())), st.integers(1, 4))
def test_no_log_counts_more_steps_than_there_are(lines: list[str], ranks: int) -> None:
    log, before = BuildLog(ranks=ranks), 0
    for line in lines:
        for _, done in log.read(line):
            assert before <= done <= log.total
            before = done


def test_only_errors_are_complaints() -> None:
    assert complaint("[x] [TRT] [E] IBuilder failed") == "IBuilder failed"
    assert complaint("[x] [TRT-LLM] [W] Failed to infer cluster info") == ""
