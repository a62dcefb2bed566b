"""engine.check as people and scripts meet them: verdicts, exit codes, sentences, and what it costs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engine_toys import CONTENT, manifest_of

from hfbench.engines.manifest import MANIFEST, Compat, Layout, write_manifest

Hfbench = Callable[..., subprocess.CompletedProcess[str]]

LIMIT = 0.1
"""CPU seconds a check may take beside starting Python, as issue and docs promise; a busy machine gets more."""


def checked(hfbench: Hfbench, *words: str | Path) -> tuple[int, dict[str, Any]]:
    """Exit code and result of engine.check."""
    done = hfbench("engine", "check", *words, "--json")
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def statuses(result: dict[str, Any]) -> dict[str, str]:
    """What each rule found."""
    return {row["id"]: row["status"] for row in result["rules"]}


pytestmark = pytest.mark.usefixtures("torchlike")


def test_an_engine_of_this_machine_loads_here(hfbench: Hfbench, engine: Path) -> None:
    code, result = checked(hfbench, engine)
    assert (code, result["verdict"], result["failed"]) == (0, "loads here", False)
    assert {"seal", "files", "torch", "machine", "cpu-isa"} <= set(statuses(result))


def test_an_edited_field_is_refused(hfbench: Hfbench, engine: Path) -> None:
    path = engine / MANIFEST
    path.write_text(path.read_text().replace('"max_prompt": 8', '"max_prompt": 16', 1))
    code, result = checked(hfbench, engine)
    assert (code, result["verdict"]) == (1, "will not load")
    assert statuses(result)["seal"] == "mismatch"
    assert result["headline"] == "will not load: seal"


def test_a_file_with_one_byte_changed_is_refused(hfbench: Hfbench, engine: Path) -> None:
    (engine / "model.pt2").write_bytes(CONTENT[:-1] + b"X")
    code, result = checked(hfbench, engine)
    assert (code, result["headline"]) == (1, "will not load: files")
    [row] = [row for row in result["rules"] if row["id"] == "files"]
    assert "other content: 'model.pt2'" in row["found"]
    assert row["remedy"]


def test_a_missing_file_is_named(hfbench: Hfbench, engine: Path) -> None:
    (engine / "model.pt2").unlink()
    done = hfbench("engine", "check", engine)
    assert done.returncode == 1
    assert "x files: not there: 'model.pt2'" in done.stdout


def test_without_hashes_it_cannot_be_told(hfbench: Hfbench, engine: Path) -> None:
    code, result = checked(hfbench, engine, "--no-hash")
    assert (code, result["verdict"], statuses(result)["files"]) == (2, "cannot tell", "unknown")


def test_a_plan_from_another_gpu_and_version_is_refused_by_its_manifest(hfbench: Hfbench, tmp_path: Path) -> None:
    """The plan is made up; its manifest says what a real builder's would."""
    folder = tmp_path / "plan"
    folder.mkdir()
    built = replace(manifest_of(None).built_on, tensorrt="10.14.1", tensorrt_llm="1.2.1")
    manifest = manifest_of(
        folder, builder="trtllm", built_on=built, layout=Layout(world_size=2, tp=2), compat=Compat(serialization="240")
    )
    write_manifest(folder, manifest)
    code, result = checked(hfbench, folder)
    held = {rule for rule, status in statuses(result).items() if status == "mismatch"}
    assert code == 1
    assert "tensorrt" in held
    assert "tensorrt-llm" in held


def test_a_refused_engine_is_not_tried(hfbench: Hfbench, engine: Path) -> None:
    (engine / "model.pt2").write_bytes(b"")
    _, result = checked(hfbench, engine, "--load")
    assert result["trial"]["outcome"] == "could not"
    assert "not tried, since it will not load by 1 rule above" in result["trial"]["found"]


def test_a_log_is_named(hfbench: Hfbench, engine: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("...\ngenerated on an incompatible device, expecting compute 8.6 got compute 8.0, please rebuild.\n")
    code, result = checked(hfbench, engine, "--log", log)
    assert (code, result["verdict"]) == (1, "will not load")
    assert "built for compute capability 8.0, this GPU has 8.6" in result["reasons"][0]["found"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "the text ends too early"),
        ('{"schema": 2}', "Use a newer hfbench"),
        ('{"schema": 1}', "builder is missing"),
    ],
)
def test_a_damaged_manifest_is_a_sentence(hfbench: Hfbench, engine: Path, content: str, words: str) -> None:
    (engine / MANIFEST).write_text(content)
    done = hfbench("engine", "check", engine)
    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["none"], 1, "is not there"),
        (["."], 1, "holds no engine"),
        (["engines/toy", "--environment", "nowhere"], 2, "no environment is called 'nowhere'"),
        (["engines/toy", "--environment", "/nowhere/python"], 4, "no Python that can be run"),
        (["engines/toy", "--log", "none"], 2, "is no file"),
    ],
)
def test_what_cannot_be_checked_is_a_sentence(
    hfbench: Hfbench, engine: Path, tmp_path: Path, words: list[str], code: int, told: str
) -> None:
    done = hfbench("engine", "check", *words, cwd=tmp_path)
    assert done.returncode == code
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_another_python_is_asked_for_its_versions(hfbench: Hfbench, engine: Path) -> None:
    """The Python of the tests without its packages: it lacks torch."""
    wrapper = engine.parent / "python"
    wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    wrapper.chmod(0o755)
    code, result = checked(hfbench, engine, "--environment", wrapper)
    assert code == 1
    [row] = [row for row in result["rules"] if row["id"] == "torch"]
    assert row["here"] == "not installed"


def test_behind_a_command_the_processor_is_not_known(hfbench: Hfbench, engine: Path, home: Path) -> None:
    (home / "config").mkdir(parents=True)
    site = engine.parents[1] / "site"
    entry = f'[environments.box]\ncommand = ["/usr/bin/env", "PYTHONPATH={site}", "{sys.executable}"]\n'
    (home / "config" / "config.toml").write_text(entry)
    code, result = checked(hfbench, engine, "--environment", "box")
    assert (code, result["verdict"], statuses(result)["cpu-isa"]) == (2, "cannot tell", "unknown")


def test_the_answer_is_fit_for_a_terminal(hfbench: Hfbench, engine: Path) -> None:
    done = hfbench("engine", "check", engine)
    lines = done.stdout.splitlines()
    assert lines[0] == "loads here"
    assert any(line.startswith(". fits: ") for line in lines)


def test_a_check_is_light(engine: Path) -> None:
    """No library is imported, and beside Python's own start it takes at most 100 ms of CPU, the best of five."""
    code = (
        "import sys, time, io, contextlib; from hfbench.cli import main; began = time.process_time()\n"
        "out = io.StringIO()\n"
        f"with contextlib.redirect_stdout(out): main(['engine', 'check', {str(engine)!r}])\n"
        "print(time.process_time() - began, out.getvalue().splitlines()[0], *sys.modules, sep='\\n')"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(5)]
    spent, verdict, *modules = runs[0].stdout.splitlines()
    assert verdict == "loads here"
    assert not {"torch", "transformers", "numpy", "textual", "rich", "onnxruntime"} & set(modules)
    assert min(float(run.stdout.split()[0]) for run in runs) < 2 * LIMIT, spent
