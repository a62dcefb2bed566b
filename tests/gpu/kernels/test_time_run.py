"""kernel.time: rows of every subject, what is wrong with one costs that one, and without a GPU a sentence."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from kernel_files import COPY, ZOO, line_of, write

from hfbench.actions.kernel_time import KernelTimeResult
from hfbench.codec import decode, encode
from hfbench.errors import UsageError
from hfbench.gpu.kernels.loading import read
from hfbench.gpu.kernels.timing_results import Answer, Device, Timed, TimeRow
from hfbench.gpu.kernels.timing_run import _beside, _rows, chosen_sizes, time_all
from hfbench.gpu.timing.formulas import CALL
from hfbench.gpu.timing.samples import Samples

Hfbench = Callable[..., CompletedProcess[str]]

PLAN = {"name": "x", "sizes": [{"R": 1, "C": 2}], "shapes": [{"R": 1, "C": 2, "pad": 3}]}
RUN_ONCE = """
import json, sys
from pathlib import Path
from hfbench.gpu.kernels.declaration import Case
from hfbench.gpu.kernels.loading import load
from hfbench.gpu.kernels.timing_child import run_once
kernel, _ = load(Path(sys.argv[1]))
case = Case(shape={"N": 50}, dtype="fp32")
told = {}
for fault in sys.argv[2:]:
    (config,) = [each for each in kernel.configs if each.name == fault]
    answer, _ = run_once(kernel, config, case, dict(kernel.inputs(case)))
    told[fault] = [answer.verdict, answer.reason]
print(json.dumps(told))
"""


def summary(*values: float) -> Samples:
    return Samples("times", CALL, list(values))


def test_on_the_cpu_references_are_timed_and_no_kernel(tmp_path: Path, hfbench: Hfbench) -> None:
    for package in ("torch", "triton"):
        pytest.importorskip(package)
    words = ("--device", "cpu", "--size", "N=1000", "--budget", "0.02")
    done = hfbench("kernel", "time", write(tmp_path), *words, "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    result = decode(KernelTimeResult, told)
    assert (result.on.device, result.on.capability) == ("cpu", "cpu")
    rows = {(row.subject, row.cache): row for row in result.rows}
    assert set(rows) == {
        (subject, cache) for subject in ("copy", "matmul", "eager", "compile") for cache in ("cold", "warm")
    }
    assert any("interpreter" in note and "no kernel was timed" in note for note in result.notes)
    eager = rows["eager", "warm"]
    assert eager.time
    assert eager.bandwidth == pytest.approx(2 * 1000 * 4 / eager.time.p50)
    assert eager.time.n == len(eager.time.samples) >= 20
    assert not any(row.graph for row in result.rows)
    assert max(map(len, result.lines())) <= 80


def test_what_one_subject_does_wrong_costs_its_own_rows(tmp_path: Path) -> None:
    for package in ("torch", "triton"):
        pytest.importorskip(package)
    eager = (
        'def eager(x):\n    if x.numel() == 7:\n        raise KeyError("seven")\n    import os\n    os._exit(3)\n\n\n'
    )
    path = write(
        tmp_path, COPY, ("KERNEL =", f"{eager}KERNEL ="), ("reference=lambda x: x,", "reference=abs, eager=eager,")
    )
    report = time_all(read(path), device="cpu", sizes=("N=7", "N=8"), budget=0.01, seconds=30)
    told = {(row.subject, row.shape.get("N")): row for row in report.rows if row.verdict != "ok"}
    assert told["eager", 7].verdict == "failed"
    assert told["eager", 7].reason == f"KeyError: 'seven', at line {line_of(path, 'raise KeyError')}"
    assert told["eager", 8].verdict == "crash"
    assert "exit status 3" in told["eager", 8].reason
    assert {row.subject for row in report.rows if row.verdict == "ok"} == {"copy", "matmul"}


def test_a_kernel_is_compared_with_its_reference_before_it_is_timed(tmp_path: Path) -> None:
    """What runs on a GPU, in the interpreter."""
    for package in ("torch", "triton"):
        pytest.importorskip(package)
    faults = ("none", "differs", "unwritten", "nan")
    path = write(
        tmp_path,
        ZOO,
        ("y = x.new_empty(2, x.numel() + 4)[:, : x.numel()]", "y = x.new_full((x.numel(),), 7.0)"),
        ("y.stride(0)", "0"),
        ('torch.stack([x, torch.full_like(x, float("nan"))])', "x.clone()"),
    )
    told = {**os.environ, "TRITON_INTERPRET": "1"}
    words = [sys.executable, "-c", RUN_ONCE, str(path), *faults]
    done = subprocess.run(words, env=told, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])  # behind what the file prints when it is loaded
    assert {fault: found[fault][0] for fault in faults} == {
        "none": "ok",
        "differs": "differs",
        "unwritten": "differs",
        "nan": "differs",
    }
    assert "2 of 50 elements differ" in found["unwritten"][1]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("R=4 X=5", "has no axis 'X'"),
        ("R=4", "'R=4' does not say C"),
        ("four", "'four' is no size"),
        ("R=-4 C=1", "'R=-4 C=1' is no size"),
        ("R=4 C=0", "C=0 leaves nothing to time"),
    ],
)
def test_a_size_that_is_none_is_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        chosen_sizes(PLAN, [text])
    assert sentence in str(caught.value)


def test_sizes_are_as_asked_or_as_declared() -> None:
    assert chosen_sizes(PLAN, ["R=4 C=5", "C=1;R=2 pad=3"]) == [{"R": 4, "C": 5}, {"C": 1, "R": 2, "pad": 3}]
    assert chosen_sizes(PLAN, []) == PLAN["sizes"]
    assert chosen_sizes({**PLAN, "sizes": []}, []) == PLAN["shapes"]


def test_figures_are_shares_of_the_best_copy_and_matmul() -> None:
    def rows(what: str, seconds: float, moved: int, flops: int) -> list[TimeRow]:
        timed = Timed(cache="cold", graph=False, verdict="ok", time=summary(*[seconds] * 6).summary())
        task = {"what": what, "dtype": "fp16", "shape": {"N": 1}}
        return list(_rows("x", task, Answer(verdict="ok", timed=[timed], bytes_moved=moved, flops=flops)))

    copies = [*rows("copy", 1.0, 100, 0), *rows("copy", 2.0, 100, 0)]
    told = list(_beside([*copies, *rows("matmul", 1.0, 0, 50), *rows("triton", 2.0, 160, 10)]))
    assert told[-1].bandwidth == 80
    assert told[-1].of_copy == pytest.approx(0.8)
    assert told[-1].of_matmul == pytest.approx(0.1)
    assert [row.of_copy for row in told[:2]] == [1.0, 0.5]


def test_a_configuration_that_failed_fails_the_whole_and_is_told() -> None:
    on = Device(device="cuda:0", name="a card", capability="9.0", torch="2", triton="3", flush_bytes=1, threads=1)
    fine = TimeRow(
        kernel="x",
        subject="triton",
        config="BLOCK=1 w4 s3",
        dtype="bf16",
        shape={"N": 1},
        cache="cold",
        graph=True,
        verdict="ok",
        time=summary(*[1e-5] * 6).summary(),
        bandwidth=1e12,
        rate=1e12,
        of_copy=0.5,
    )
    bad = TimeRow(
        kernel="x",
        subject="triton",
        config="BLOCK=" + "2" * 90,
        dtype="bf16",
        shape={"N": 1},
        cache="",
        graph=False,
        verdict="timeout",
        reason="still running after 3.00 s " * 9,
    )
    result = KernelTimeResult(kernel="x", file="/" + "y" * 200, on=on, rows=(fine, bad), notes=("a note",))
    assert result.failed
    assert result.headline == "BLOCK=1 w4 s3 10.0 us"
    lines = result.lines()
    assert max(map(len, lines)) <= 80
    assert any("timeout" in line for line in lines)
    assert any(line.startswith("x  BLOCK=222") for line in lines)
    assert not KernelTimeResult(kernel="x", file="y", on=on, rows=(fine,), notes=()).failed
    assert decode(KernelTimeResult, encode(result)) == result


@pytest.mark.parametrize("verb", ["time", "tune"])
def test_without_a_gpu_it_is_one_sentence_and_exit_4(verb: str, hfbench: Hfbench, broken_nvml_folder: Path) -> None:
    for package in ("torch", "triton"):
        pytest.importorskip(package)
    done = hfbench("kernel", verb, "softmax", env={"LD_LIBRARY_PATH": str(broken_nvml_folder)})
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith("hfbench: auto: there is no GPU: ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("verb", ["time", "tune"])
def test_a_gpu_that_torch_cannot_use_is_one_sentence(verb: str, hfbench: Hfbench, fake_nvml_folder: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    if torch.version.cuda:
        pytest.skip("this torch could use one")
    done = hfbench("kernel", verb, "softmax", env={"LD_LIBRARY_PATH": str(fake_nvml_folder)})
    assert (done.returncode, done.stdout) == (4, "")
    assert "cuda:0: cannot be used by torch: AssertionError: Torch not compiled with CUDA enabled" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_cpu_has_no_configurations(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the CPU times references"):
        time_all(read(write(tmp_path)), device="cpu", config="BLOCK")
