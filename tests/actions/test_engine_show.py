"""engine.show: a manifest, its proof and the end of its build log, whatever stands in their place."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from engine_toys import manifest_of

from hfbench.actions.engine_show import EngineShow, ShowResult
from hfbench.engines.manifest import MANIFEST, ManifestError, Proof, ProofCase, write_manifest
from hfbench.errors import HfbenchError
from hfbench.jobs.run import Run

CASE = ProofCase(
    batch=1, prompt=8, steps=8, max_abs=2e-5, relative=4e-6, argmax_agreement=1.0, greedy_equal=True, finite=True
)


def show(path: Path, log: int = 20) -> ShowResult:
    return EngineShow(engine=path, log=log).perform(Run())


def test_it_tells_the_manifest_the_proof_and_the_last_lines_of_the_log(tmp_path: Path) -> None:
    manifest = manifest_of(tmp_path, log="build.log", proof=Proof(verdict="proven", cases=(CASE,)))
    write_manifest(tmp_path, manifest)
    (tmp_path / "build.log").write_text("one\ntwo\x1b[31m\nthree\n")
    told = show(tmp_path / "model.pt2", log=2)
    assert told.manifest is not None
    assert replace(told.manifest, seal="") == manifest
    assert (told.sealed, told.log, told.log_trouble) == (True, ("two\\x1b[31m", "three"), "")
    assert told.headline == "aoti engine of ./model, proven"
    lines = told.lines()
    text = " ".join(" ".join(lines).split())
    assert "NVIDIA H100, 9.0" in text
    assert "off by 4.0e-06 of the largest logit, 100% alike, greedy the same" in text
    assert lines[-1] == "three"


def test_an_engine_without_a_manifest_is_said_to_be_one(tmp_path: Path) -> None:
    told = show(tmp_path)
    assert (told.manifest, told.log) == (None, ())
    assert told.headline.startswith("no manifest")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", "the manifest names no build log"),
        ("gone.log", "gone.log cannot be read: No such file"),
        ("deep/build.log", "outside the engine's folder"),
        ("pipe", "pipe cannot be read"),
        ("empty", "empty is empty"),
        ("a\0b", "cannot be read: no file can have this name"),
        ("\ud800", "cannot be read: no file can have this name"),
    ],
)
def test_a_log_that_cannot_be_read_is_a_sentence(tmp_path: Path, name: str, told: str) -> None:
    write_manifest(tmp_path, manifest_of(tmp_path, log=name))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").touch()
    assert told in show(tmp_path).log_trouble
    assert show(tmp_path).log == ()


def test_the_name_of_a_log_is_shown_without_what_a_terminal_would_obey(tmp_path: Path) -> None:
    write_manifest(tmp_path, manifest_of(tmp_path, log="\x1b[31m.log"))
    assert show(tmp_path).lines()[-1].startswith("\\x1b[31m.log cannot be read")


def test_an_engine_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HfbenchError, match="gone: is not there"):
        show(tmp_path / "gone")


def test_a_damaged_manifest_is_refused(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text("{")
    with pytest.raises(ManifestError, match="the text ends too early"):
        show(tmp_path)
