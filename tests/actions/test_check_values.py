"""check --values: one result for people, programs, jobs and scripts; interruptible, and in bounded memory."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from small_model import TENSORS, config, make, stored

from hfbench.actions.check import Check, CheckResult
from hfbench.actions.results import result_data
from hfbench.codec import decode
from hfbench.jobs.cancel import cancel
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.events import Progress, from_line
from hfbench.jobs.follow import wait_until
from hfbench.jobs.run import Run
from hfbench.jobs.snapshot import State
from hfbench.paths import jobs_root

pytest.importorskip("numpy")

Hfbench = Callable[..., "subprocess.CompletedProcess[str]"]

ENDLESS = 2**38
"""Bytes that take a minute to read even when they are a hole."""

LIMIT = 300
"""MiB."""


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return make(tmp_path / "tiny")


def sparse(folder: Path, tensors: Iterable[tuple[str, int]]) -> Path:
    """The small model with tensors of so many bytes whose data is a hole in the file."""
    make(folder)
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, size in tensors:
        header[name] = {"dtype": "BF16", "shape": [size // 2], "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        try:
            file.truncate(8 + len(text) + end)
        except OSError as error:
            pytest.skip(f"this disk takes no file of {end:,} bytes: {error}")
    return folder


def check(target: object, **options: Any) -> CheckResult:
    return Check(model=str(target), **options).perform(Run())


def test_the_result_keeps_its_shape_and_gains_the_figures_of_every_tensor(model: Path) -> None:
    stored({"x": ("F32", [2])}, fill={"x": b"\0\0\xc0\x7f\0\0\x80\x47"})(model)
    told = json.loads(json.dumps(result_data(check(model, values=True)), allow_nan=False))
    assert {"model", "verdict", "findings"} <= set(told)
    assert all({"id", "severity", "file", "message", "evidence", "remedy"} <= set(each) for each in told["findings"])
    assert {"HB122", "HB123", "HB125"} <= {each["id"] for each in told["findings"]}
    assert [each["name"] for each in told["values"]["tensors"]] == [*TENSORS, "x"]
    last = told["values"]["tensors"][-1]
    assert (last["dtype"], last["shape"], last["nan"], last["inf"], last["zeros"]) == ("F32", [2], 1, 0, 0)
    assert (last["absmax"], last["float16_inf"], last["note"]) == (65536.0, 1, "")
    assert told["values"]["tensors"][0]["zero_fraction"] == 1.0
    assert result_data(decode(CheckResult, told)) == told


def test_unasked_there_are_no_figures(model: Path) -> None:
    assert result_data(check(model))["values"] is None


@pytest.mark.usefixtures("terminal")
def test_the_table_follows_the_findings_and_fits_a_terminal(model: Path) -> None:
    stored({"x" * 100: ("BF16", [1])}, fill={"x" * 100: b"\xc0\x7f"})(model)
    lines = check(model, values=True).lines()
    assert all(len(line) <= 80 for line in lines)
    place = next(place for place, line in enumerate(lines) if line.startswith("values  13 tensors measured, "))
    assert lines[place - 1] == ""
    assert lines[place + 1].split() == ["worst", "tensors", "dtype", "absmax", "NaN", "Inf", "zero"]
    assert lines[place + 2].startswith("xxx")
    assert "HB122" in "\n".join(lines[:place])


def test_the_command_warns_of_float16_when_it_is_asked_for(hfbench: Hfbench, model: Path) -> None:
    config(torch_dtype="bfloat16")(model)
    stored(fill=dict.fromkeys(("lm_head.weight",), b"\x80G\x00\xbf" * 64))(model)
    plain = json.loads(hfbench("check", model, "--values", "--json").stdout)
    half = json.loads(hfbench("check", model, "--values", "--dtype", "float16", "--json").stdout)
    for told, severity in ((plain, "info"), (half, "warning")):
        assert [each["severity"] for each in told["findings"] if each["id"] == "HB123"] == [severity]
    asked = hfbench("check", model, "--values", "--dtype", "half", "--fail-on", "warning")
    assert (asked.returncode, "Traceback" in asked.stderr) == (1, False)


def test_without_numpy_it_says_what_to_install_and_exits_with_four(model: Path) -> None:
    code = "import sys; sys.modules['numpy'] = None; from hfbench.__main__ import main; sys.exit(main())"
    words = [sys.executable, "-c", code, "check", str(model)]
    done = subprocess.run([*words, "--values"], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == (
        "hfbench: measuring values needs numpy, which this Python lacks. "
        "Install it with: pip install 'hfbench[torch]'\n"
    )
    assert subprocess.run(words, capture_output=True, timeout=120, check=False).returncode == 0


def test_on_a_terminal_it_tells_how_far_it_is_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    folder = sparse(tmp_path / "huge", [("w", ENDLESS)])
    leader, terminal = pty.openpty()
    running = subprocess.Popen(
        [sys.executable, "-m", "hfbench", "check", folder, "--values"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
    )
    os.close(terminal)
    seen, asked = b"", False
    try:
        while part := os.read(leader, 4096):
            seen += part
            if not asked and b"values" in seen:
                running.send_signal(signal.SIGINT)
                asked = True
    except OSError:
        pass  # a pseudo-terminal ends with EIO
    out, _ = running.communicate(timeout=60)
    os.close(leader)
    assert asked
    assert (running.returncode, out) == (130, b"")
    assert b"Traceback" not in seen
    assert b"left" in seen or b"0%" in seen
    assert seen.endswith(b"\r\x1b[Khfbench: interrupted\r\n")


def test_with_json_not_even_a_terminal_sees_anything_else(hfbench: Hfbench, model: Path) -> None:
    leader, terminal = pty.openpty()
    told = {"capture_output": False, "stdout": subprocess.PIPE, "stderr": terminal, "env": {"TERM": "xterm"}}
    done = hfbench("check", model, "--values", "--json", **told)
    os.set_blocking(leader, False)
    assert json.loads(done.stdout)["values"]["measured"] == 12
    with pytest.raises(BlockingIOError):
        os.read(leader, 1)
    os.close(terminal)
    os.close(leader)


def test_in_a_pipe_nothing_is_said_of_progress(hfbench: Hfbench, model: Path) -> None:
    done = hfbench("check", model, "--values", env={"TERM": "xterm", "FORCE_COLOR": "1"})
    assert done.stderr == ""
    assert "\x1b" not in done.stdout


def test_as_a_job_it_tells_its_progress_and_its_result_is_the_same(hfbench: Hfbench, model: Path) -> None:
    job = JobDirectory(jobs_root() / hfbench("check", model, "--values", "--detach").stdout.strip())
    snapshot = wait_until(job, lambda s: s.state.over, timeout=120)
    assert snapshot.state is State.FINISHED
    told = [event for line in job.events.read_bytes().splitlines() if isinstance(event := from_line(line), Progress)]
    assert (told[-1].phase, told[-1].done, told[-1].total, told[-1].unit) == ("values", 1712, 1712, "B")
    assert snapshot.result
    here = result_data(check(model, values=True))
    assert snapshot.result["values"]["tensors"] == here["values"]["tensors"]
    assert snapshot.result["findings"] == here["findings"]


def test_a_job_is_cancelled_in_the_middle_of_a_tensor(hfbench: Hfbench, tmp_path: Path) -> None:
    folder = sparse(tmp_path / "huge", [("w", ENDLESS)])
    job = JobDirectory(jobs_root() / hfbench("check", folder, "--values", "--detach").stdout.strip())
    try:
        wait_until(job, lambda s: s.state.over or (s.progress is not None and s.progress.done > 0), timeout=120)
    finally:
        snapshot = cancel(job)
    assert snapshot.state is State.CANCELLED


def test_a_script_may_expect_something_of_the_figures(hfbench: Hfbench, model: Path, tmp_path: Path) -> None:
    script = tmp_path / "values.hfb.yaml"
    script.write_text(
        "hfbench: 1\nname: values\nsteps:\n"
        f"  - check: {{model: {json.dumps(str(model))}, values: true, save_as: found}}\n"
        "    expect:\n      - found.values.nan == 0\n      - found.values.measured == 12\n"
    )
    done = hfbench("--script", script)
    assert done.returncode == 0, done.stderr


MEMORY = """
import contextlib, io, json, sys
from pathlib import Path
from hfbench.cli import main
with contextlib.redirect_stdout(io.StringIO()) as out:
    main(["check", sys.argv[1], "--values", "--json"])
status = Path("/proc/self/status").read_text()
peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
values = json.loads(out.getvalue())["values"]
print(json.dumps([values["measured"], len(values["tensors"]) + values["left_out"], values["bytes"], peak // 1024]))
"""


@pytest.mark.parametrize(
    "tensors",
    [[("w", 2**31)], [(f"model.layers.{number}.mlp.experts.7.w.weight", 32) for number in range(30_000)]],
    ids=["one tensor of 2 GiB", "30,000 tensors"],
)
def test_memory_stays_below_300_mib_whatever_the_sizes(tensors: list[tuple[str, int]], tmp_path: Path) -> None:
    folder = sparse(tmp_path / "model", tensors)
    done = subprocess.run(
        [sys.executable, "-c", MEMORY, folder], capture_output=True, text=True, check=True, timeout=280
    )
    measured, listed, size, peak = json.loads(done.stdout)
    assert (measured, listed, size) == (len(tensors), len(tensors), sum(size for _, size in tensors))
    assert peak <= LIMIT
