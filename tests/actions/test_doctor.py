"""`hfbench doctor` in real processes, on this machine and with an NVML that plays a part."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Hfbench = Callable[..., subprocess.CompletedProcess[str]]
FAKE = Path(__file__).parents[1] / "fakenvml" / "fakenvml.c"


@pytest.fixture(scope="module")
def nvml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that plays NVML."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc to build the NVML that plays a part")
    folder = tmp_path_factory.mktemp("nvml")
    words = ["gcc", "-std=gnu11", "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1"]
    subprocess.run([*words, "-o", str(folder / "libnvidia-ml.so.1"), str(FAKE)], check=True)
    return folder


def test_this_machine_is_examined_without_a_fault(hfbench: Hfbench, home: Path) -> None:
    stuck = home / "stuck"
    stuck.parent.mkdir(parents=True, exist_ok=True)
    stuck.write_text("#!/bin/sh\nsleep 60\n")
    stuck.chmod(0o755)
    (home / "config").mkdir()
    (home / "config" / "config.toml").write_text(f'[environments.vllm]\npython = "{stuck}"\ntimeout = 0.5\n')
    done = hfbench("doctor", "--json")
    told = json.loads(done.stdout)
    found = {each["id"]: each for each in told["checks"]}
    assert (done.returncode, told["failed"], told["environments"]) == (1, True, 1)
    assert found["environments.answer"]["verdict"] == "error"
    assert found["environments.answer"]["found"].startswith("vllm: it took longer than")
    assert len(told["checks"]) > 50
    assert [each for each in told["checks"] if "does not know" in each["found"]] == []
    assert all(each["remedy"] for each in told["checks"] if each["verdict"] in ("warning", "error"))
    assert "torch" in found["environments.here"]["found"]


def test_topics_and_ids_are_words_of_the_command(hfbench: Hfbench) -> None:
    told = json.loads(hfbench("doctor", "limits", "hub", "--only", "disks.room", "--json").stdout)
    assert {each["topic"] for each in told["checks"]} == {"limits", "hub", "disks"}
    assert [each["id"] for each in told["checks"] if each["topic"] == "disks"] == ["disks.room"]


def test_a_shadowing_file_is_an_error_and_exit_1(hfbench: Hfbench, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise SystemExit('imported')")
    done = hfbench("doctor", "--only", "compilers.shadow", cwd=tmp_path)
    assert done.returncode == 1
    assert "torch.py hides the module of that name" in done.stdout
    assert "1 error" in done.stdout


def test_a_word_that_is_no_topic_is_refused(hfbench: Hfbench) -> None:
    done = hfbench("doctor", "memry")
    assert (done.returncode, done.stdout) == (2, "")
    assert "Did you mean 'memory'?" in done.stderr


def test_cards_are_read_through_the_real_binding(hfbench: Hfbench, nvml: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.write_text(f"process 1 {os.getpid()} C 20480\nnvmlDeviceGetPersistenceMode 0 3\n")
    told = json.loads(
        hfbench(
            "doctor",
            "cards",
            "--json",
            env={"LD_LIBRARY_PATH": str(nvml), "FAKE_NVML_COUNT": "2", "FAKE_NVML_SCRIPT": str(rules)},
        ).stdout
    )
    found = {each["id"]: (each["verdict"], each["found"]) for each in told["checks"]}
    assert found["cards.mode"] == ("warning", "card 0, 1: one process at a time")
    assert found["cards.pcie"] == ("warning", "card 0, 1: fewer lanes than it can")
    assert found["cards.power"] == ("warning", "card 0, 1: 600 W of 700 W")
    assert found["cards.held"] == ("warning", "card 1: 1 program not of hfbench")
    assert found["cards.errors"][0] == "warning"
    assert found["cards.ecc"][0] == "ok"


def test_a_lost_card_is_an_error(hfbench: Hfbench, nvml: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.write_text("* 1 15\n")
    environment = {"LD_LIBRARY_PATH": str(nvml), "FAKE_NVML_COUNT": "2", "FAKE_NVML_SCRIPT": str(rules)}
    done = hfbench("doctor", "--only", "cards.answer", env=environment)
    assert done.returncode == 1
    assert "card 1: the GPU is lost" in done.stdout
