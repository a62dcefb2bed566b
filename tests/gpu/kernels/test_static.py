"""kernel.static's room: the published figures, the limits of each architecture, and what does not compile."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest
from kernel_files import COPY, line_of, write

from hfbench.errors import HfbenchError, MissingError, UsageError
from hfbench.gpu.kernels.architectures import architectures, find_architecture
from hfbench.gpu.kernels.loading import find, read
from hfbench.gpu.kernels.processes import Crew
from hfbench.gpu.kernels.results import StaticRow
from hfbench.gpu.kernels.static import _judged, analyse, summary

pytest.importorskip("triton")

pytestmark = pytest.mark.usefixtures("forked_crews")

FOUR = ("sm_80", "sm_90", "sm_100", "sm_120")
CARDS = {name: each.cards for name, each in architectures().items()}

published = pytest.mark.skipif(
    not metadata.version("triton").startswith("3.9."), reason="the figures are those of Triton 3.9"
)


def rows_of(name: str | Path, *arch: str, config: str = "", **more: object) -> tuple[StaticRow, ...]:
    file = read(name) if isinstance(name, Path) else find(name)
    on = [find_architecture(each) for each in arch]
    return analyse(file, on, config=config, seconds=300, **more).rows  # type: ignore[arg-type]


def test_matmul_fits_everywhere_but_on_the_smallest_shared_memory() -> None:
    rows = rows_of("matmul", *FOUR, config="128x256x64 w8 s4")
    assert [row.arch for row in rows] == list(FOUR)
    assert [row.shared_limit for row in rows] == [166912, 232448, 232448, 101376]
    assert [row.verdict for row in rows] == ["ok", "ok", "ok", "refused"]
    assert rows[3].reason == f"{rows[3].shared_bytes} > 101376 bytes of shared memory"
    assert (rows[3].occupancy, rows[3].blocks) == (0.0, 0)
    assert all(row.occupancy and row.registers and row.spills == 0 for row in rows[:3])
    if metadata.version("triton").startswith("3.9."):
        assert [row.shared_bytes for row in rows] == [147456, 196608, 196624, 147456]
        assert [row.matrix for row in rows] == ["mma.sync", "wgmma.mma", "tcgen05.mma", "mma.sync"]
        assert rows[0].registers == pytest.approx(237, abs=8)
    told = summary(rows, CARDS)
    assert told.startswith("fine on A100/A30, H100/H200, B200; refused on RTX 5090/RTX PRO 6000: ")
    assert told.endswith(f"{rows[3].shared_bytes} > 101376 bytes of shared memory")


def test_softmax_of_4096_columns_spills_nowhere() -> None:
    rows = rows_of("softmax", *FOUR, config="BLOCK=4096 w8")
    assert [(row.spills, row.verdict, row.shared_bytes) for row in rows] == [(0, "ok", 32)] * 4


@published
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_spills_is_what_was_published() -> None:
    """Each architecture once: assembling what spills takes up to 16 s a row."""
    matmul = rows_of("matmul", "sm_80", "sm_100", config="256x256x64")
    softmax = rows_of("softmax", "sm_90", "sm_120", config="BLOCK=32768 w4")
    assert [row.spills for row in (*matmul, *softmax)] == [11424, 288, 748, 332]
    assert {row.verdict for row in (*matmul, *softmax)} == {"spills"}
    assert all(row.reason.startswith(f"spills {row.spills} bytes") for row in (*matmul, *softmax))
    assert softmax[0].reason.endswith("as Triton assembles it")  # for Hopper it has an option of its own


def test_what_does_not_fit_and_spills_is_told_both() -> None:
    used = {"registers": 255, "spills": 6696, "spill_loads": 6612}
    told = {"seconds": 1.0, "late": False, "failed": "", "assembled": used, "loaded": used, "shared_bytes": 131072}
    told |= {"matrix": "", "warps": 4, "tensor_columns": 0}
    on = find_architecture("sm_120")
    row = StaticRow(
        kernel="k", config="c", dtype="fp16", arch="sm_120", shared_limit=1, warps=4, stages=3, verdict="failed"
    )
    judged = _judged(row, on, told, cached=False)
    assert (judged.verdict, judged.blocks) == ("refused", 0)
    assert judged.reason == "131072 > 101376 bytes of shared memory; spills 6696 bytes"


def test_rows_are_kept_and_believed_while_nothing_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "helper_of_copy.py").write_text("BLOCKS = (64, 128)\n")
    blocks = '(Config(constants={"BLOCK": 64}), Config(constants={"BLOCK": 128}, num_warps=8))'
    path = write(
        tmp_path,
        COPY,
        ("from hfbench", "from helper_of_copy import BLOCKS\nfrom hfbench"),
        (blocks, 'tuple(Config(constants={"BLOCK": block}) for block in BLOCKS)'),
    )
    first = rows_of(path, "sm_80")
    assert [row.cached for row in first] == [False, False]
    with monkeypatch.context() as patch:
        patch.setattr(Crew, "_start", lambda self: pytest.fail("a process was started"))
        again = rows_of(path, "sm_80")
    assert [row.cached for row in again] == [True, True]
    assert [(row.registers, row.shared_bytes) for row in again] == [(row.registers, row.shared_bytes) for row in first]
    assert [row.cached for row in rows_of(path, "sm_80", use_cache=False)] == [False, False]
    (tmp_path / "helper_of_copy.py").write_text("BLOCKS = (64, 256)\n")
    changed = rows_of(path, "sm_80")
    assert [(row.config, row.cached) for row in changed] == [("BLOCK=64 w4 s3", False), ("BLOCK=256 w4 s3", False)]


def test_a_damaged_cache_is_made_again(tmp_path: Path, home: Path) -> None:
    path = write(tmp_path)
    rows_of(path, "sm_80", config="BLOCK=64")
    kept = sorted((home / "cache" / "kernels").rglob("*.json"))
    assert len(kept) == 2, "the plan and one row"
    for file in kept:
        file.write_text("{")
    assert [row.cached for row in rows_of(path, "sm_80", config="BLOCK=64")] == [False]
    assert [row.cached for row in rows_of(path, "sm_80", config="BLOCK=64")] == [True]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("values = values + tl.arange(0, 100)", "arange's range must be a power of 2, at line LINE"),
        ("values = values + undefined", "NameError('undefined is not defined'), at line LINE"),
        ('tl.static_assert(BLOCK < 64, "too large a block")', "too large a block, at line LINE"),
    ],
)
def test_what_does_not_compile_says_why_and_where(tmp_path: Path, line: str, reason: str) -> None:
    load = "values = tl.load(x + place, mask=place < n)"
    path = write(tmp_path, COPY, (load, f"{load}\n    {line}"))
    (row,) = rows_of(path, "sm_90", config="BLOCK=64")
    assert (row.verdict, row.registers) == ("failed", None)
    assert row.reason == reason.replace("LINE", str(line_of(path, line)))
    assert summary([row], CARDS) == f"does not compile on H100/H200: {row.reason}"


def test_a_compilation_that_never_ends_is_ended_alone(tmp_path: Path) -> None:
    store = "tl.store(y + place, values, mask=place < n)"
    loop = "if BLOCK == 128:\n        for _ in tl.static_range(1000000000):\n            values += 1.0"
    path = write(tmp_path, COPY, (store, f"{loop}\n    {store}"))
    report = analyse(read(path), [find_architecture("sm_80")], seconds=2)
    assert [row.verdict for row in report.rows] == ["ok", "timeout"]
    assert report.rows[1].reason.startswith("still running after 2.00 s")
    again = analyse(read(path), [find_architecture("sm_80")], seconds=1, config="BLOCK=128")
    assert [(row.verdict, row.cached) for row in again.rows] == [("timeout", False)], "another try may be given longer"


def test_a_triton_without_an_assembler_says_so(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        COPY,
        (
            "import triton\nimport",
            "import triton\nimport triton.backends.nvidia.compiler as backend\n"
            "def nothing(arch=0):\n    raise RuntimeError('Cannot find ptxas')\n"
            "backend.get_ptxas = nothing\nimport",
        ),
    )
    with pytest.raises(MissingError, match="Triton finds no ptxas"):
        rows_of(path, "sm_80")


def test_what_a_kernel_does_not_declare_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no configuration is called 'BLOCK=65'\. Did you mean 'BLOCK=64 w4 s3'"):
        rows_of(write(tmp_path), "sm_80", config="BLOCK=65")
    with pytest.raises(UsageError, match="takes fp32, fp16, not 'fp8'"):
        rows_of(write(tmp_path), "sm_80", dtypes=("fp8",))


def test_a_broken_file_is_no_row(tmp_path: Path) -> None:
    with pytest.raises(HfbenchError, match="declares no kernel"):
        rows_of(write(tmp_path, '"""Nothing."""\n'), "sm_80")
