"""What the frame says of the machine: the corner holds figures that were measured, no findings."""

from __future__ import annotations

import pytest

from hfbench.jobs.history import JobRow
from hfbench.jobs.state import State
from hfbench.screens.machine import MachineState


def row(action: str, headline: str, state: State = State.FINISHED, ended: float | None = None) -> JobRow:
    return JobRow(
        id=f"2026-11-30T10-00-00-{action}-1a2b3c",
        action=action,
        label="",
        model="m",
        device="cpu",
        state=state,
        created=0.0,
        started=0.0,
        ended=ended,
        headline=headline,
        note="",
    )


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([row("diff", "different: 3 config"), row("bench.generate", "tpot 8.1 ms")], "job 1a2b3c: tpot 8.1 ms"),
        (
            [row("bench.generate", "tpot 9 ms", State.CANCELLED), row("bench.generate", "tpot 8 ms")],
            "job 1a2b3c: tpot 8 ms",
        ),
        ([row("bench.generate", "", State.RUNNING), row("chat", "45 tokens")], ""),
        ([row("from.elsewhere", "42 of it")], ""),
        (
            [row("bench.modes", "no mode is faster than eager beyond doubt"), row("bench.generate", "tpot 8 ms")],
            "job 1a2b3c: tpot 8 ms",
        ),
        ([row("bench.generate", "tpot 8 ms", ended=1.0)], ""),
        ([], ""),
    ],
)
def test_the_latest_figure_is_a_measurement(home: object, rows: list[JobRow], told: str) -> None:
    assert MachineState(jobs=tuple(rows)).strip.latest == told
