"""Building: nothing under the final name before all is done, whatever happens meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from built_engines import build, tiny_model
from engine_toys import manifest_of

import hfbench.engines.build as building
from hfbench.engines.builders.onnx import DATA, Onnx
from hfbench.engines.manifest import read_manifest, write_manifest
from hfbench.engines.place import LOG, claimed, put, refuse_taken
from hfbench.errors import HfbenchError, UsageError
from hfbench.jobs.run import Run

for name in ("torch", "transformers", "onnx", "onnxscript", "onnxruntime"):
    pytest.importorskip(name)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("models") / "tiny", layers=1)


class Spoiling(Onnx):
    """Writes other weights than the model's, as a broken builder would."""

    def build(self, making: Any) -> Any:
        made = super().build(making)
        data = making.folder / DATA
        content = bytearray(data.read_bytes())
        content[len(content) // 2 : len(content) // 2 + 4096] = bytes(4096)
        data.write_bytes(content)
        return made


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"min_prompt": 13}, "min_prompt 13 is greater than max_prompt 12"),
        ({"context": 12}, "a context of 12 has no room for a token after a prompt of 12.*--context 13"),
        ({"context": 65}, "65 tokens of cache exceed the context of 64"),
        ({"template": "x", "tp": 2}, "--template, --tp are for builder trtllm, not for onnx"),
        ({"device": "tpu"}, "'tpu' is not a device"),
    ],
)
def test_shapes_and_devices_that_cannot_be_are_refused(
    model: Path, tmp_path: Path, more: dict[str, Any], told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        build(model, tmp_path / "engine", "onnx", **more)
    assert list(tmp_path.glob("*engine*")) == []


def test_an_engine_that_differs_from_eager_is_refused_and_its_evidence_kept(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "builder_of", lambda name: Spoiling())
    run = Run(directory=tmp_path / "job")
    with pytest.raises(HfbenchError, match="the engine differs from eager: at 2 x 1 logits are off by") as caught:
        build(model, tmp_path / "engine", "onnx", run)
    assert caught.value.exit == 1
    assert list(tmp_path.glob("*engine*")) == []
    kept = read_manifest(tmp_path / "job" / "artifacts")
    assert kept.proof is not None
    assert kept.proof.verdict == "differs"
    assert "differs" in (tmp_path / "job" / "artifacts" / LOG).read_text()


def test_killed_midway_it_leaves_nothing_under_the_name_and_later_builds_replace_what_is_there(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, partial = tmp_path / "engine", tmp_path / ".engine.partial"
    code = "import sys, built_engines as b; b.build(b.Path(sys.argv[1]), b.Path(sys.argv[2]), 'onnx')"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    started = subprocess.Popen([sys.executable, "-c", code, str(model), str(out)], env=env, stderr=subprocess.DEVNULL)
    while started.poll() is None and "writing" not in text_of(partial / LOG):
        time.sleep(0.01)
    started.send_signal(signal.SIGKILL)
    assert started.wait(60) == -signal.SIGKILL
    assert partial.is_dir()
    assert not out.exists()
    (partial / "left.bin").write_bytes(b"of the build that was killed")
    made = build(model, out, "onnx")
    assert (made.verdict, made.bytes) == ("proven", sum(each.size for each in read_manifest(out).files))
    assert not partial.exists()
    assert not (out / "left.bin").exists()
    with pytest.raises(UsageError, match="holds an engine"):
        build(model, out, "onnx")
    monkeypatch.setattr(building, "builder_of", lambda name: Spoiling())
    made = build(model, out, "onnx", replace=True, keep_unproven=True)
    proof = read_manifest(out).proof
    assert proof is not None
    assert (made.verdict, proof.verdict) == ("differs", "differs")
    lines = made.lines()
    assert any("logits are off by" in line for line in lines)
    assert [line.split()[:4] for line in lines[-2:]] == [
        ["next", "hfbench", "engine", "check"],
        ["next", "hfbench", "bench", "modes"],
    ]
    assert sorted(each.name for each in tmp_path.iterdir() if "engine" in each.name) == ["engine"]


def text_of(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def test_the_words_of_torch_for_a_package_cut_off_by_a_full_disk_are_known() -> None:
    words = "[enforce fail at inline_container.cc:672] . unexpected pos 192 vs 0"  # as torch 2.13 said it on one
    assert building.is_full(RuntimeError(words))


def test_files_that_were_put_there_during_the_build_are_left_alone(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "engine"

    class Slow(Onnx):
        def build(self, making: Any) -> Any:
            out.mkdir()
            (out / "notes").write_text("mine")
            return super().build(making)

    monkeypatch.setattr(building, "builder_of", lambda name: Slow())
    with pytest.raises(UsageError, match="holds other files and is left alone"):
        build(model, out, "onnx")
    assert [each.name for each in out.iterdir()] == ["notes"]
    assert [each.name for each in tmp_path.glob("*engine*")] == ["engine"]


def test_two_builds_into_one_folder_are_refused(model: Path, tmp_path: Path) -> None:
    with claimed(tmp_path / "engine"), pytest.raises(UsageError, match="is being written by another build"):
        build(model, tmp_path / "engine", "onnx")


def test_a_claim_leaves_nothing_behind_unless_it_was_renamed(tmp_path: Path) -> None:
    with claimed(tmp_path / "engine") as partial:
        (partial / "a").touch()
    assert list(tmp_path.iterdir()) == []
    with claimed(tmp_path / "engine") as partial:
        (partial / "a").touch()
        partial.rename(tmp_path / "engine")
    assert (tmp_path / "engine" / "a").exists()


def test_places_that_are_taken_are_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").touch()
    (tmp_path / ".wild.partial").mkdir()
    (tmp_path / ".wild.partial" / "notes.txt").touch()
    with pytest.raises(UsageError, match="is not a folder"):
        refuse_taken(tmp_path / "file", replace=True)
    with pytest.raises(UsageError, match="holds other files and is left alone"):
        refuse_taken(tmp_path / "other", replace=True)
    with pytest.raises(UsageError, match="holds files that no build put there"), claimed(tmp_path / "wild"):
        pass
    assert (tmp_path / ".wild.partial" / "notes.txt").exists()


def test_what_stands_where_the_old_engine_is_to_wait_is_left_alone_unless_it_is_one(tmp_path: Path) -> None:
    out, aside, new = tmp_path / "engine", tmp_path / ".engine.replaced", tmp_path / "new"
    for folder in (out, aside, new):
        folder.mkdir()
    write_manifest(out, manifest_of(out))
    (aside / "notes.txt").write_text("mine")
    for attempt in (lambda: refuse_taken(out, replace=True), lambda: put(new, out)):
        with pytest.raises(UsageError, match="stands where the old engine is to wait, and is none"):
            attempt()
    assert (aside / "notes.txt").read_text() == "mine"
    (aside / "notes.txt").unlink()
    write_manifest(aside, manifest_of(aside))  # of a build that was killed between two renames
    put(new, out)
    assert [each.name for each in tmp_path.iterdir()] == ["engine"]
    assert list(out.iterdir()) == []


def test_a_disk_that_is_too_small_is_told_before_anything_is_built(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Onnx, "space", lambda self, asked, weights: 1 << 60)
    with pytest.raises(HfbenchError, match=r"TiB are to be written, .* are free"):
        build(model, tmp_path / "engine", "onnx")
    assert list(tmp_path.glob("*engine*")) == []


def test_a_disk_that_fills_up_is_a_sentence_and_leaves_nothing(
    model: Path, small_disk: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = small_disk("size=120k")
    monkeypatch.setattr(building, "check_disk", lambda folder, wanted: None)
    with pytest.raises(HfbenchError, match="the disk was full before the engine was complete"):
        build(model, disk / "engine", "onnx")
    assert list(disk.iterdir()) == []
