"""kernel.tune without a GPU: what is pruned, ranked, kept and resumed, and that a bad configuration costs its own row.

The CPU times references in place of launches; everything around them is what a GPU gets.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from kernel_files import COPY, write

from hfbench.actions.kernel_tune import KernelTuneResult
from hfbench.codec import decode
from hfbench.errors import UsageError
from hfbench.gpu.kernels.architectures import find_architecture
from hfbench.gpu.kernels.loading import find, read
from hfbench.gpu.kernels.prune import prune
from hfbench.gpu.kernels.results import StaticRow, StaticVerdict
from hfbench.gpu.kernels.tune import TuneReport, alike, tune
from hfbench.gpu.kernels.tuned import Choice, TunedRow, load_tuned

Hfbench = Callable[..., CompletedProcess[str]]

FAULTS = '''def grid(given, constants):
    """What a launch asks for; each block goes wrong in its own way."""
    import os
    if constants["BLOCK"] == 16:
        raise ValueError("sixteen is too few")
    if constants["BLOCK"] == 32:
        os._exit(9)
    while constants["BLOCK"] == 256:
        pass
    return (1,)


KERNEL ='''
FAULTY = (
    ("KERNEL =", FAULTS),
    ('grid=lambda given, constants: (triton.cdiv(given["n"], constants["BLOCK"]),),', "grid=grid,"),
    (
        'configs=(Config(constants={"BLOCK": 64}), Config(constants={"BLOCK": 128}, num_warps=8)),',
        'configs=tuple(Config(constants={"BLOCK": block}) for block in (16, 32, 64, 128, 256, 512)),\n'
        '    applies=lambda given, constants: constants["BLOCK"] != 512,',
    ),
)

pytestmark = pytest.mark.usefixtures("forked_crews")


def tuned(path: Path, table: Path, **options: object) -> TuneReport:
    given = {"device": "cpu", "table": table, "sizes": ("N=100",), "width": 0.5, "budget": 0.01, "seconds": 2.0}
    return tune(read(path), **{**given, **options})  # type: ignore[arg-type]


def verdicts(report: TuneReport) -> dict[str, str]:
    return {row.choice.label: row.verdict for each in report.tuned for row in each.rows}


@pytest.fixture(autouse=True)
def libraries() -> None:
    for package in ("torch", "triton"):
        pytest.importorskip(package)


def test_what_fails_or_hangs_costs_its_own_row_and_is_not_run_again(tmp_path: Path) -> None:
    path, table = write(tmp_path, COPY, *FAULTY), tmp_path / "tuned.json"
    report = tuned(path, table)
    assert verdicts(report) == {
        "BLOCK=16 w4 s3": "failed",
        "BLOCK=32 w4 s3": "crash",
        "BLOCK=64 w4 s3": "ok",
        "BLOCK=128 w4 s3": "ok",
        "BLOCK=256 w4 s3": "timeout",
        "BLOCK=512 w4 s3": "inapplicable",
    }
    (found,) = report.tuned
    reasons = {row.choice.label: row.reason for row in found.rows}
    assert reasons["BLOCK=16 w4 s3"].startswith("ValueError: sixteen is too few, at line ")
    assert "exit status 9" in reasons["BLOCK=32 w4 s3"]
    assert "still running after 2.00 s" in reasons["BLOCK=256 w4 s3"]
    assert {row.bench for row in found.rows} == {"cpu"}
    assert found.best
    assert found.best.label in ("BLOCK=64 w4 s3", "BLOCK=128 w4 s3")
    assert found.key.capability == "cpu"
    assert any("the CPU timed the reference" in note for note in report.notes)
    before, began = table.read_bytes(), time.monotonic()
    again = tuned(path, table)
    assert again.tuned[0].kept == 6
    assert table.read_bytes() == before
    some = tuned(path, table, again="failed", config="BLOCK=16")
    assert (some.tuned[0].kept, verdicts(some)) == (0, verdicts(report))
    assert time.monotonic() - began < 240


def test_it_goes_on_where_it_was_killed(tmp_path: Path) -> None:
    """The first configurations are kept, the one that ran is run, nothing is run twice."""
    path, table = write(tmp_path, COPY, *FAULTY), tmp_path / "tuned.json"
    program = (
        "import sys\nfrom pathlib import Path\nsys.path.insert(0, sys.argv[1])\nfrom test_tune import tuned\n"
        "tuned(Path(sys.argv[2]), Path(sys.argv[3]), seconds=100.0)\n"
    )
    words = [sys.executable, "-c", program, str(Path(__file__).parent), str(path), str(table)]
    child = subprocess.Popen(words, stderr=subprocess.PIPE)
    try:
        until = time.monotonic() + 120
        while len([row for entry in load_tuned(table).values() for row in entry.rows]) < 4:
            assert time.monotonic() < until
            assert child.poll() is None, child.stderr and child.stderr.read()
            time.sleep(0.1)
    finally:
        child.kill()  # while BLOCK=256 hangs
        child.communicate()
    report = tuned(path, table, seconds=1.0)
    assert report.tuned[0].kept == 4
    assert verdicts(report)["BLOCK=256 w4 s3"] == "timeout"
    assert len(verdicts(report)) == 6


def test_another_source_is_another_key(tmp_path: Path) -> None:
    path, table = write(tmp_path), tmp_path / "tuned.json"
    first = tuned(path, table, config="BLOCK=64")
    changed = tuned(write(tmp_path, COPY + "\n# changed\n"), table, config="BLOCK=64")
    assert [report.tuned[0].kept for report in (first, changed)] == [0, 0]
    assert len(load_tuned(table)) == 2


def test_sizes_of_one_bucket_share_their_rows(tmp_path: Path) -> None:
    report = tuned(write(tmp_path), tmp_path / "tuned.json", sizes=("N=100", "N=128"), config="BLOCK=64")
    assert [each.kept for each in report.tuned] == [0, 1]
    assert {row.shape["N"] for each in report.tuned for row in each.rows} == {100}


def test_a_damaged_file_is_told_and_kept(tmp_path: Path) -> None:
    table = tmp_path / "tuned.json"
    table.write_text('{\n "schema": 1,\n "entries": {')
    report = tuned(write(tmp_path), table, config="BLOCK=64")
    (told,) = [note for note in report.notes if "is no file of tuned configurations" in note]
    assert str(tmp_path / "tuned.json.damaged-1") in told
    assert (tmp_path / "tuned.json.damaged-1").read_text().startswith("{")
    assert len(load_tuned(table)) == 1


def test_what_the_card_cannot_hold_is_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HFBENCH_HOME", str(tmp_path / "home"))
    report = tune(
        find("matmul"),
        device="cpu",
        table=tmp_path / "tuned.json",
        arch="sm_120",
        sizes=("M=64 N=64 K=64",),
        config="128x256x64",
        width=0.5,
        budget=0.01,
        seconds=60.0,
    )
    rows = {row.choice.label: row for row in report.tuned[0].rows}
    refused = rows["128x256x64 w8 s4"]
    assert (refused.verdict, refused.seconds) == ("pruned", None)
    assert refused.reason == "sm_120: 147456 > 101376 bytes of shared memory"
    assert rows["128x256x64 w8 s3"].verdict == "ok"
    assert report.arch == "sm_120"


def static(verdict: StaticVerdict, reason: str = "", **figures: int) -> StaticRow:
    return StaticRow(
        kernel="x",
        config="c",
        dtype="fp16",
        arch="sm_90",
        shared_limit=1,
        verdict=verdict,
        reason=reason,
        warps=figures.pop("warps", 4),
        stages=3,
        **figures,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (static("ok", registers=32, blocks=4), {}),
        (static("spills", "spills 12 bytes", registers=255, blocks=1), {}),
        (static("refused", "2 > 1 bytes of shared memory"), {"c": "sm_90: 2 > 1 bytes of shared memory"}),
        (static("failed", "no such thing"), {"c": "sm_90: does not compile: no such thing"}),
        (static("timeout", "late"), {"c": "sm_90: was not compiled in time: late"}),
        (static("crash", "SIGSEGV"), {"c": "sm_90: the compiler crashed: SIGSEGV"}),
        (
            static("ok", registers=255, warps=32, blocks=0),
            {"c": "sm_90: 261,120 registers for 32 warps, a multiprocessor has 65,536"},
        ),
    ],
    ids=lambda value: value.verdict if isinstance(value, StaticRow) else None,
)
def test_pruning_leaves_what_can_run(row: StaticRow, told: dict[str, str]) -> None:
    assert prune([row], find_architecture("sm_90")) == told


def test_configurations_with_overlapping_intervals_are_not_told_apart() -> None:
    def row(label: str, low: float, high: float) -> TunedRow:
        choice = Choice(label=label, constants={}, num_warps=4, num_stages=3)
        return TunedRow(
            choice=choice, shape={}, bench="cuda", verdict="ok", seconds=(low + high) / 2, low=low, high=high
        )

    assert alike([row("a", 1.0, 1.2), row("b", 1.1, 1.5), row("c", 1.3, 1.4)]) == ["b"]
    assert alike([]) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rank": "warm graph"}, "the CPU has no graphs to rank by"),
        ({"arch": "sm_91"}, "'sm_91' is no architecture known here"),
        ({"config": "BLOCK=7"}, "no configuration is called 'BLOCK=7'"),
        ({"dtypes": ("fp8",)}, "takes fp32, fp16, not 'fp8'"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(options: dict[str, object], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        tuned(write(tmp_path), tmp_path / "tuned.json", **options)
    assert sentence in str(caught.value)
    assert not (tmp_path / "tuned.json").exists()


def test_as_a_command(tmp_path: Path, hfbench: Hfbench) -> None:
    words = ("--device", "cpu", "--size", "N=100", "--budget", "0.01", "--out", tmp_path / "mine.json")
    done = hfbench("kernel", "tune", write(tmp_path), *words, "--json")
    assert done.returncode == 0, done.stderr
    result = decode(KernelTuneResult, json.loads(done.stdout))
    assert result.table == str(tmp_path / "mine.json")
    assert not result.failed
    assert result.headline == "2 rows, 0 pruned, 0 kept from before"
    lines = result.lines()
    assert max(map(len, lines[:1] + lines[2:])) <= 80
    assert sum("cpu cold" in line for line in lines) == 2
