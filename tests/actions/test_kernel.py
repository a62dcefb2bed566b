"""kernel.list, kernel.check and kernel.static as commands: what they print, what programs read, how they end."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Literal

import pytest
from kernel_files import COPY, ZOO, write

from hfbench.actions.kernel_check import MOST_TOLD, KernelCheckResult
from hfbench.actions.kernel_static import KernelStatic, KernelStaticResult
from hfbench.actions.registry import find
from hfbench.codec import decode, encode
from hfbench.gpu.kernels.results import CheckRow
from hfbench.jobs.run import Run

Hfbench = Callable[..., CompletedProcess[str]]

ROW = {"kernel", "config", "arch", "registers", "spills", "shared_bytes", "shared_limit", "verdict", "reason"}


def test_the_declarations_name_what_they_need() -> None:
    static, check, shipped = (find(f"kernel.{name}") for name in ("static", "check", "list"))
    assert (static.inline, static.needs, static.extra) == (False, ("triton",), "triton")
    assert (check.inline, check.needs, check.extra) == (False, ("torch", "triton"), "torch,triton")
    assert (shipped.inline, shipped.needs) == (True, ())


def test_the_list_names_every_kernel_without_loading_one(hfbench: Hfbench, tmp_path: Path) -> None:
    for package in ("torch", "triton"):
        (tmp_path / f"{package}.py").write_text("raise SystemExit('a list loads a library')\n")
    done = hfbench("kernel", "list", env={"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")
    names = [line.split()[0] for line in done.stdout.splitlines()]
    assert names == sorted(names)
    assert {"matmul", "rmsnorm", "softmax"} <= set(names)
    assert "..." not in done.stdout


def test_static_gives_a_row_a_configuration_and_architecture(hfbench: Hfbench) -> None:
    pytest.importorskip("triton")
    words = ("kernel", "static", "softmax", "--arch", "sm_80,sm_90", "--config", "BLOCK=4096")
    done = hfbench(*words, "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert [row["arch"] for row in told["rows"]] == ["sm_80", "sm_90"]
    assert all(set(row) >= ROW for row in told["rows"])
    assert all(row["spills"] == 0 and row["verdict"] == "ok" and row["registers"] > 0 for row in told["rows"])
    assert told["verdicts"] == [{"config": "BLOCK=4096 w8 s3", "dtype": "fp16", "text": "fine on A100/A30, H100/H200"}]
    shown = hfbench(*words)
    assert shown.returncode == 0
    lines = shown.stdout.splitlines()
    assert lines[0].startswith("softmax: 2 ok")
    assert lines[-1] == "BLOCK=4096 w8 s3 fp16: fine on A100/A30, H100/H200"
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("change", "words", "code", "sentence"),
    [
        (("import triton\n", "import triton(\n"), (), 1, "mine.py:3: is no Python: "),
        (("KERNEL =", "OTHER ="), (), 1, "mine.py: declares no kernel. Add KERNEL"),
        (("import triton\n", "raise SystemExit(0)\n"), (), 1, "mine.py:3: ends Python with status 0"),
        (("x + place", "x + place"), ("--arch", "sm_91"), 2, "'sm_91' is no architecture known here"),
        (("x + place", "x + place"), ("--dtype", "fp8"), 2, "takes fp32, fp16, not 'fp8'"),
        (
            ("import triton\n", "raise ModuleNotFoundError('x', name='triton')\n"),
            (),
            4,
            "pip install 'hfbench[triton]'",
        ),
    ],
)
def test_what_cannot_be_judged_is_one_sentence(
    tmp_path: Path, hfbench: Hfbench, change: tuple[str, str], words: tuple[str, ...], code: int, sentence: str
) -> None:
    pytest.importorskip("triton")
    done = hfbench("kernel", "static", write(tmp_path, COPY, change), *words)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_check_survives_a_kernel_that_does_not(tmp_path: Path, hfbench: Hfbench) -> None:
    for package in ("torch", "triton"):
        pytest.importorskip(package)
    path = write(
        tmp_path, ZOO, ('FAULTS = (\n    "none", ', 'FAULTS = ("none", "past", "segfault")\nTHE_OTHERS = (\n    ')
    )
    done = hfbench("kernel", "check", path, "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 1
    assert [row["verdict"] for row in told["rows"]] == ["ok", "out-of-bounds", "crash"]
    assert told["counts"] == {"ok": 1, "out-of-bounds": 1, "crash": 1}
    assert told["failed"] is True
    assert told["rows"][1]["reason"] == "stores between the rows of y: 3 elements"


def test_a_script_checks_a_kernel(tmp_path: Path, hfbench: Hfbench) -> None:
    for package in ("torch", "triton"):
        pytest.importorskip(package)
    path = write(tmp_path)
    (tmp_path / "kernel.hfb.yaml").write_text(
        "hfbench: 1\nname: kernel\nsteps:\n"
        f'  - kernel.check: {{kernel: "{path}", config: BLOCK=64, dtype: [fp16], save_as: seen}}\n'
        "    expect:\n      - seen.counts.ok == 2\n      - seen.failed == false\n"
    )
    done = hfbench("--script", tmp_path / "kernel.hfb.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_makes_static_fail_is_asked_for(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    store = "tl.store(y + place, values, mask=place < n)"
    path = write(
        tmp_path,
        COPY,
        (store, f"values = values / tl.sum(values, 0)\n    {store}"),  # all values are held until they are summed
        ('Config(constants={"BLOCK": 128}, num_warps=8)', 'Config(constants={"BLOCK": 2048}, options={"maxnreg": 16})'),
    )
    ends: tuple[tuple[Literal["refused", "spills", "never"], bool], ...] = (
        ("refused", False),
        ("spills", True),
        ("never", False),
    )
    for fail_on, failed in ends:
        result = KernelStatic(kernel=str(path), arch=("sm_80",), fail_on=fail_on).perform(Run())
        assert [row.verdict for row in result.rows] == ["ok", "spills"]
        assert result.failed is failed
    assert [row.cached for row in result.rows] == [True, True]
    assert result.verdicts[1].text.startswith("spills ")
    assert result.verdicts[1].text.endswith(" on A100/A30")
    told = json.loads(json.dumps(encode(result)))
    assert encode(decode(KernelStaticResult, told)) == told


@pytest.mark.usefixtures("terminal")
def test_lines_stay_within_a_terminal_and_tell_the_first_faults() -> None:
    bad = CheckRow(
        kernel="k",
        config="a very long configuration BM=128,BN=256,BK=64 w8 s4",
        dtype="fp16",
        shape={"R": 1, "C": 781},
        verdict="differs",
        reason="y[0, 1] is 2.5, the reference 2; " * 9,
        max_abs=0.5,
        worst=31.0,
    )
    rows = tuple(replace(bad, shape={"R": number}) for number in range(MOST_TOLD + 3))
    result = KernelCheckResult(kernel="k", file="/f.py", triton="3.9.0", rows=rows, counts={"differs": len(rows)})
    lines = result.lines()
    assert result.failed
    assert max(map(len, lines)) <= 80
    assert "and 3 more (--json lists all)" in lines
    assert sum("differs: y[0, 1]" in line or "differs:" in line for line in lines) >= MOST_TOLD
    assert encode(decode(KernelCheckResult, json.loads(json.dumps(encode(result))))) == encode(result)
