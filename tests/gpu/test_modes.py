"""What bench.modes says of ratios to eager, and how its table reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from hfbench.actions.bench_modes import Modes
from hfbench.errors import HfbenchError
from hfbench.gpu.modes_measure import _reasons, _Subject, verdict_word
from hfbench.gpu.modes_result import ModeRow, ModesResult, shown_mode
from hfbench.gpu.timing import formulas
from hfbench.gpu.timing.machine import Company
from hfbench.gpu.timing.samples import Samples
from hfbench.gpu.timing.statistics import Interval
from hfbench.jobs.run import Run


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (0.50, 0.60, "faster"),
        (0.97, 0.999, "faster"),
        (0.985, 0.995, "same"),
        (0.99, 1.01, "same"),
        (0.95, 1.01, "undecided"),
        (0.90, 1.10, "undecided"),
        (1.001, 1.03, "slower"),
        (1.20, 1.40, "slower"),
    ],
)
def test_a_word_stands_for_where_the_whole_interval_lies(low: float, high: float, word: str) -> None:
    assert verdict_word(Interval(low, high), within=0.02) == word


def test_too_few_rounds_decide_nothing() -> None:
    assert verdict_word(None, within=0.02) == "undecided"


def test_an_engine_is_shown_by_the_last_part_of_its_folder() -> None:
    assert shown_mode("engine:/a/long/way/smol/") == "engine:smol"
    assert shown_mode("engine:smol") == "engine:smol"
    assert shown_mode("static-cache") == "static-cache"


def row(mode: str, word: str, ratio: float | None = None, reason: str = "") -> ModeRow:
    """A row of ten equal samples."""
    if reason:
        return ModeRow(mode=mode, word=word, reason=reason)
    times = {name: Samples(name, formulas.TPOT, [0.01] * 10).summary() for name in ("ttft", "tpot")}
    share = Samples("ratio", formulas.RATIO, [ratio] * 10).summary() if ratio else None
    return ModeRow(mode=mode, word=word, ratio=share, **times)


def result(*rows: ModeRow) -> ModesResult:
    return ModesResult(
        model="here", folder="/here", device="cpu", dtype="fp32", batch=1, prompt_tokens=8, new_tokens=4, threads=1,
        rounds=10, measured_seconds=1.0, stop_reason="interval-reached", rows=list(rows), verdicts=[],
        machine=Company(cpus=2, load_before=1.0, load_after=1.0, others_cpus=0.0), notes=[],
    )  # fmt: skip


def test_the_headline_names_the_fastest_mode_that_beats_eager() -> None:
    rows = (row("eager", "reference"), row("compile", "faster", 0.8), row("engine:/x/smol", "faster", 0.5))
    assert result(*rows).headline == "fastest engine:smol: 0.50x of eager's time per token"
    assert result(rows[0], row("compile", "same", 1.0)).headline == "no mode is faster than eager beyond doubt"


@pytest.mark.usefixtures("terminal")
def test_the_table_has_a_line_a_mode_and_the_reason_of_one_that_was_not_run() -> None:
    rows = (
        row("eager", "reference"),
        row("engine:/x/smol", "faster", 0.5),
        row("cudagraph", "not run", reason="no GPU"),
    )
    lines = result(*rows).lines()
    assert "engine:smol              10.0 ms   10.0 ms       0.500  0.500..0.500  faster" in lines
    assert "cudagraph             not run: no GPU" in lines
    assert max(map(len, lines)) <= 80


@pytest.mark.usefixtures("terminal")
def test_the_file_of_an_engine_that_keeps_it_from_running_is_named_and_nothing_of_the_reason_cut() -> None:
    subject = _Subject("engine:/x/smol")
    with _reasons(subject):
        where = "/a/very/long/way/to/where/engines/are/kept/smol/weights.safetensors"
        raise HfbenchError("is not the file that was built: 8,334,932 bytes instead of 8,334,933", where=where)
    told = result(row("eager", "reference"), row("engine:/x/smol", "not run", reason=subject.reason)).lines()
    assert max(map(len, told)) <= 80
    reason = "weights.safetensors: is not the file that was built: 8,334,932 bytes instead of 8,334,933"
    assert f"engine:smol not run: {reason}" in " ".join(" ".join(told).split())


def test_a_budget_that_ends_in_the_warm_up_leaves_one_round_and_is_told(tiny_llama: Path) -> None:
    asked = {"modes": ("static-cache",), "prompt": 4, "new_tokens": 3, "threads": 1, "warmup": 5, "budget": 0.001}
    found = Modes(model=str(tiny_llama), device="cpu", **asked).perform(Run())  # type: ignore[arg-type]
    assert (found.rounds, found.warmup_rounds, found.stop_reason) == (1, 0, "budget-spent")
    assert any(note.endswith("ended it after 1 round, which was the first and not warmed up") for note in found.notes)
    assert found.rows[1].word == "undecided"
