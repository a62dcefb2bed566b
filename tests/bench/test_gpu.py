"""bench/gpu.py without a GPU: a dry run of every part, where Textual cannot be imported, and how parts end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
OWN = ("model", "telemetry", "ceilings", "timer", "ceiling", "decode-eager", "kernel-time", "kernel-tune", "check")
"""Parts that have figures on any machine."""

ENDINGS = """
import json, sys, time, os, tempfile
from pathlib import Path
import gpu
from hfbench.errors import MissingError
def hang(setup):
    os.system("sleep 100 &")
    time.sleep(100)
def lacks(setup):
    raise MissingError("there is no such card")
def dies(setup):
    print("last words")
    os._exit(3)
def fine(setup):
    return {"seconds": setup.seconds}
each = {"hangs": hang, "lacks": lacks, "dies": dies, "fine": fine}
gpu.PARTS = tuple(gpu.Part(name=name, seconds=60 if name != "hangs" else 2, run=run) for name, run in each.items())
gpu.__file__ = __file__
if "--part" in sys.argv:
    gpu.main()
else:
    with tempfile.TemporaryDirectory() as scratch:
        told = dict(gpu._all(gpu.PARTS, Path(scratch), dry=True, until=time.monotonic() + 120))
        late = dict(gpu._all(gpu.PARTS[:1], Path(scratch), dry=True, until=time.monotonic()))
    print(json.dumps([told, late]))
"""


def without_textual(folder: Path) -> dict[str, str]:
    """An environment in which nobody can import Textual, nor what else hfbench needs only for front ends."""
    for package in ("textual", "platformdirs"):
        (folder / f"{package}.py").write_text(f"raise SystemExit('{package} is imported')\n")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(BENCH), str(BENCH.parent)])}


@pytest.fixture(scope="module")
def dry(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The record of a dry run, once for all tests."""
    for package in ("torch", "triton", "transformers"):
        pytest.importorskip(package)
    folder = tmp_path_factory.mktemp("dry")
    words = [sys.executable, str(BENCH / "gpu.py"), "--dry-run", str(folder / "out")]
    done = subprocess.run(words, env=without_textual(folder), capture_output=True, text=True, timeout=600)
    assert "is imported" not in done.stdout + done.stderr
    assert not [path for path in (BENCH / "results").glob("*.json") if '"dry_run": true' in path.read_text()]
    (file,) = (folder / "out").iterdir()
    assert file.name.startswith("dry-run-")
    return json.loads(file.read_text())


@pytest.mark.timeout(660)
def test_every_part_has_figures_or_a_sentence(dry: Any) -> None:
    parts = dry["parts"]
    assert set(OWN) < set(parts)
    assert [name for name in OWN if not parts[name]["ok"]] == [], {n: parts[n]["reason"] for n in OWN}
    for name, part in parts.items():
        assert bool(part["figures"]) is part["ok"], name
        assert bool(part["reason"]) is not part["ok"], name
        assert "Traceback" not in part["reason"]
    assert parts["decode-cudagraph"]["exit"] == 4, "there are no CUDA graphs on a CPU"


@pytest.mark.timeout(660)
def test_a_dry_run_says_so_and_judges_nothing(dry: Any) -> None:
    assert dry["dry_run"] is True
    assert {"torch", "triton", "transformers", "numpy", "hfbench"} <= set(dry["versions"])
    assert {"cpu", "cores", "memory_bytes", "python"} <= set(dry["machine"])
    figures = {name: part["figures"] for name, part in dry["parts"].items()}
    assert [figures[name]["holds"] for name in ("timer", "ceiling")] == [None, None]
    assert figures["telemetry"]["missing"][0]["reason"] == "not supported by this GPU"
    assert figures["kernel-tune"]["kept"] == 1
    assert figures["ceilings"]["copy_bytes_per_second"] > 0
    assert dry["decode_of_bound"]["decode-eager"] > 0


def test_a_part_that_hangs_or_dies_costs_itself_alone(tmp_path: Path) -> None:
    script = tmp_path / "endings.py"
    script.write_text(ENDINGS)
    words = [sys.executable, str(script)]
    done = subprocess.run(words, env=without_textual(tmp_path), capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    told, late = json.loads(done.stdout.splitlines()[-1])
    assert {name: (each["ok"], each["exit"], each["reason"]) for name, each in told.items()} == {
        "hangs": (False, 1, "still running after 6 s"),
        "lacks": (False, 4, "there is no such card"),
        "dies": (False, 1, "its process ended with 3: last words"),
        "fine": (True, 0, ""),
    }
    assert late["hangs"]["reason"] == "there was no time left"
    sleeping = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert "sleep 100" not in sleeping.splitlines()


def test_a_part_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    words = [sys.executable, str(BENCH / "gpu.py"), "--only", "tele", "--dry-run", str(tmp_path / "out")]
    done = subprocess.run(words, env=without_textual(tmp_path), capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("gpu.py: no part is called tele; there are model, ")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    words = [sys.executable, str(BENCH / "gpu.py"), "--only", "check", "--dry-run", str(tmp_path / "file" / "out")]
    done = subprocess.run(words, env=without_textual(tmp_path), capture_output=True, text=True, timeout=60)
    told = f"gpu.py: {tmp_path / 'file' / 'out'}: cannot be written: Not a directory\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", told)


def test_without_a_gpu_nothing_is_written(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    before = {path.name for path in (BENCH / "results").glob("unknown*")}
    told = {**without_textual(tmp_path), "CUDA_VISIBLE_DEVICES": ""}
    words = [sys.executable, str(BENCH / "gpu.py"), "--only", "ceilings"]
    done = subprocess.run(words, env=told, capture_output=True, text=True, timeout=200)
    assert done.returncode == 4
    assert "NOT  ceilings" in done.stdout
    assert "torch sees no GPU" in done.stdout
    assert {path.name for path in (BENCH / "results").glob("unknown*")} == before
