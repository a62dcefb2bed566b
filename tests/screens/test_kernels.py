"""The Kernels screen: rows of earlier runs at once, compiled on demand, a file of one's own, and no Triton."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from job_folders import NOW, make_job
from textual.widgets import Input

from hfbench.jobs.events import Finished, Running
from hfbench.paths import jobs_root
from hfbench.screens.confirm import AskText
from hfbench.screens.job import JobScreen
from hfbench.screens.kernel_asks import own_files
from hfbench.screens.kernels import KernelsScreen
from hfbench.screens.launch import LaunchScreen
from hfbench.screens.recent import remember
from hfbench.widgets.kernel_matrix import KernelMatrix

TINY = '''"""Doubles a vector."""

import triton
import triton.language as tl

from hfbench.gpu.kernels.declaration import Config, Kernel, Tolerance


@triton.jit
def double_kernel(x, y, n, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + place, 2 * tl.load(x + place, mask=place < n), mask=place < n)


KERNEL = Kernel(
    name="double",
    fn=double_kernel,
    inputs=lambda case: {"x": case.normal(case["N"])},
    arguments=lambda x: {"x": x, "y": x.new_empty(x.shape), "n": x.numel()},
    outputs=("y",),
    reference=lambda x: 2 * x,
    grid=lambda given, constants: (triton.cdiv(given["n"], constants["BLOCK"]),),
    signature={"x": "*T:16", "y": "*T:16", "n": "i32"},
    configs=(Config(constants={"BLOCK": 64}),),
    shapes=({"N": 100},),
    dtypes=("fp32",),
    tolerance={"fp32": Tolerance(0)},
    bytes_moved=lambda case: 2 * case["N"] * case.itemsize,
    flops=lambda case: case["N"],
)
'''


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A kernel with one configuration."""
    file = tmp_path / "double.py"
    file.write_text(TINY)
    return file


def matrix(pilot: Any) -> KernelMatrix:
    found: KernelMatrix = pilot.app.screen.query_one(KernelMatrix)
    return found


def shown(pilot: Any) -> bool:
    """True once the screen is there and all that earlier runs left was read."""
    return isinstance(pilot.app.screen, KernelsScreen) and pilot.app.screen._read


async def test_what_was_never_compiled_says_how_and_does_not_look_like_a_verdict(
    bench: Any, until: Any, picture: Any
) -> None:
    pytest.importorskip("triton")
    async with bench().run_test(size=(80, 24)) as pilot:
        await pilot.press("4")
        await until(pilot, lambda: shown(pilot))
        names = [each.kernel for each in matrix(pilot).states]
        assert {"rmsnorm", "softmax", "matmul"} <= set(names)
        text = "\n".join(picture(pilot))
        assert all(arch in text for arch in ("sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"))
        assert "not compiled yet: s compiles it" in text
        assert "ok" not in [cell for cell, _ in matrix(pilot).row_cells(0)]
        await pilot.press("enter", "down", "down")
        left, folded = matrix(pilot).current, set(matrix(pilot).folded)
        await pilot.press("1", "4")
        await until(pilot, lambda: shown(pilot))
        assert (matrix(pilot).current, matrix(pilot).folded) == (left, folded), "it is where it was left"


async def test_a_file_of_ones_own_is_opened_compiled_and_there_at_once_the_next_time(
    bench: Any, until: Any, picture: Any, tiny: Path
) -> None:
    pytest.importorskip("triton")
    async with bench().run_test(size=(80, 24)) as pilot:
        await pilot.press("4")
        await until(pilot, lambda: shown(pilot))
        await pilot.press("o")
        await until(pilot, lambda: isinstance(pilot.app.screen, AskText))
        pilot.app.screen.query_one(Input).value = str(tiny)
        await pilot.press("enter")
        await until(pilot, lambda: shown(pilot) and matrix(pilot).states[0].kernel == str(tiny))
        assert matrix(pilot).current.state.kernel == str(tiny)
        await pilot.press("s")
        await until(pilot, lambda: "compile double.py" in "\n".join(picture(pilot)), 120)
        await until(pilot, lambda: matrix(pilot).states[0].rows and not pilot.app.screen.job, 240)
        assert [row.verdict for row in matrix(pilot).states[0].rows] == ["ok"] * 6
        assert not any(row.cached for row in matrix(pilot).states[0].rows)
        await pilot.press("down")
        await until(pilot, lambda: "0 of 166,912" in "\n".join(picture(pilot)))
        told = "\n".join(picture(pilot))
        assert "BLOCK=64" in told
        assert "by warps" in told
        assert "of 101,376" in told  # sm_86, sm_89 and sm_120 have less than sm_80
    async with bench().run_test(size=(80, 24)) as pilot:
        await pilot.press("4")
        await until(pilot, lambda: shown(pilot))
        assert [row.cached for row in matrix(pilot).states[0].rows] == [True] * 6
        assert pilot.app.screen.job == ""


async def test_a_kernel_asked_for_while_another_compiles_waits_and_then_compiles(
    bench: Any, until: Any, picture: Any, tmp_path: Path
) -> None:
    pytest.importorskip("triton")
    for name in ("second", "first"):
        (tmp_path / f"{name}.py").write_text(TINY)
        remember(str(tmp_path / f"{name}.py"), own_files())
    async with bench().run_test(size=(80, 24)) as pilot:
        await pilot.press("4")
        await until(pilot, lambda: shown(pilot))
        await pilot.press("s", "down", "s", "s")
        await until(pilot, lambda: "second.py (waits)" in "\n".join(picture(pilot)))
        await until(pilot, lambda: matrix(pilot).states[0].rows, 240)
        assert "second.py" in matrix(pilot).current.state.kernel  # rows above it moved nothing
        await until(pilot, lambda: matrix(pilot).states[1].rows, 240)
        await until(pilot, lambda: not pilot.app.screen.job and not pilot.app.screen.waiting)
        assert [each.work for each in matrix(pilot).states[:2]] == ["", ""]
        await pilot.press("enter")
        await until(pilot, lambda: "+ second.py" in "\n".join(picture(pilot)))
        assert matrix(pilot).current.config == ""
    jobs = sorted(path.name for path in jobs_root().iterdir())
    assert len(jobs) == 2  # asked for twice, compiled once


async def test_a_kernel_that_is_no_python_is_a_sentence_with_the_line_and_is_not_remembered(
    bench: Any, until: Any, picture: Any, tmp_path: Path
) -> None:
    pytest.importorskip("triton")
    broken = tmp_path / "broken.py"
    broken.write_text("x = (\n")
    async with bench().run_test(size=(120, 40)) as pilot:
        await pilot.press("4")
        await until(pilot, lambda: shown(pilot))
        known = len(matrix(pilot).states)
        await pilot.press("o")
        await until(pilot, lambda: isinstance(pilot.app.screen, AskText))
        pilot.app.screen.query_one(Input).value = str(broken)
        await pilot.press("enter")
        await until(pilot, lambda: "is no Python" in "\n".join(picture(pilot)))
        assert len(matrix(pilot).states) == known
        assert not own_files().exists()


async def test_a_job_that_fails_is_told_and_the_screen_goes_on(
    bench: Any, until: Any, picture: Any, tmp_path: Path
) -> None:
    pytest.importorskip("triton")
    empty = tmp_path / "empty.py"
    empty.write_text('"""Nothing."""\n')
    remember(str(empty), own_files())
    async with bench().run_test(size=(120, 40)) as pilot:
        await pilot.press("4")
        await until(pilot, lambda: shown(pilot))
        await pilot.press("s")
        await until(pilot, lambda: "declares no kernel" in "\n".join(picture(pilot)), 120)
        assert pilot.app.screen.job == ""
        assert matrix(pilot).states[0].work == ""


async def test_without_triton_a_sentence_says_how_to_install_it_and_the_screen_lives(
    bench: Any, until: Any, picture: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)  # as if this Python lacked it
    async with bench().run_test(size=(80, 24)) as pilot:
        await pilot.press("4")
        await until(pilot, lambda: "pip install 'hfbench[triton]'" in "\n".join(picture(pilot)))
        assert matrix(pilot).row_count() > 5
        await pilot.press("down", "s")
        await until(pilot, lambda: matrix(pilot).cursor == 1)
        assert pilot.app.screen.job == ""
        await pilot.press("1")


@pytest.mark.parametrize(("key", "action"), [("c", "kernel.check"), ("t", "kernel.time"), ("T", "kernel.tune")])
async def test_keys_open_the_forms_with_the_kernel_filled_in(bench: Any, until: Any, key: str, action: str) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        await pilot.press("4")
        await until(pilot, lambda: isinstance(pilot.app.screen, KernelsScreen) and matrix(pilot).row_count())
        await pilot.press("down", key)
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen))
        assert pilot.app.screen.spec.name == action
        assert pilot.app.screen.state.texts["kernel"] == "dequant_fp8"


async def test_the_latest_check_of_a_kernel_stands_below_it_also_one_asked_for_by_a_relative_path(
    bench: Any, until: Any, picture: Any, tiny: Path
) -> None:
    remember(str(tiny), own_files())
    ended = [Running(at=1.0), Finished(at=2.0, seconds=1)]
    for tail, age, params, headline in (
        ("aaaa01", 60, {"kernel": "rmsnorm"}, "48 ok, 3 differs"),
        ("aaaa02", 90, {"kernel": "rmsnorm"}, "51 ok"),
        ("aaaa03", 30, {"kernel": "double.py"}, "1 ok"),
    ):
        job = make_job(jobs_root(), tail, "kernel.check", params, ended, age=age, result={"headline": headline})
        request = json.loads((job.path / "request.json").read_text())
        (job.path / "request.json").write_text(json.dumps(request | {"cwd": str(tiny.parent)}))
    os.utime(tiny, (NOW - 40, NOW - 40))
    async with bench(watch=True).run_test(size=(120, 40)) as pilot:
        await pilot.press("4")
        await until(pilot, lambda: isinstance(pilot.app.screen, KernelsScreen) and matrix(pilot).row_count())
        await until(pilot, lambda: "1 ok (job aaaa03)" in "\n".join(picture(pilot)))
        matrix(pilot).go_to("rmsnorm")
        await until(pilot, lambda: "x 48 ok, 3 differs (job aaaa01)" in "\n".join(picture(pilot)))
        assert "51 ok" not in "\n".join(picture(pilot))  # an older one


async def test_a_job_under_way_is_followed_by_whoever_comes_and_j_opens_it(
    bench: Any, until: Any, picture: Any, tiny: Path
) -> None:
    pytest.importorskip("triton")
    tiny.write_text(f"{TINY}\nimport time\n\ntime.sleep(3)\n")  # it is still under way when we come back
    other = tiny.with_name("other.py")
    other.write_text(TINY)
    for file in (tiny, other):
        remember(str(file), own_files())
    async with bench(watch=True).run_test(size=(80, 24)) as pilot:
        await pilot.press("4")
        await until(pilot, lambda: shown(pilot))
        await pilot.press("down", "s")
        await until(pilot, lambda: pilot.app.screen.job.startswith("20"))
        job = pilot.app.screen.job
        await until(pilot, lambda: any(row.id == job for row in pilot.app.machine.known_jobs))
        await pilot.press("1", "4")
        await until(pilot, lambda: isinstance(pilot.app.screen, KernelsScreen) and pilot.app.screen.job == job)
        await until(pilot, lambda: matrix(pilot).cursor == 1)  # on what compiles
        await pilot.press("J")
        await until(pilot, lambda: isinstance(pilot.app.screen, JobScreen) and pilot.app.screen.job.id == job)
        await pilot.press("escape")
        await until(pilot, lambda: matrix(pilot).states[1].rows, 240)
