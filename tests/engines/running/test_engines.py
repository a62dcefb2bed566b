"""Driving engines: the tokens of eager, and no shape or file that the engine was not built with."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from built_engines import BATCH, CONTEXT, LONGEST

from hfbench.engines.builders.base import builder_of
from hfbench.engines.manifest import MANIFEST, read_manifest, write_manifest
from hfbench.engines.running.decoder import EngineDecoder
from hfbench.engines.running.open_engine import open_engine
from hfbench.errors import HfbenchError, UsageError

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

CPU = torch.device("cpu")


@pytest.fixture
def aoti(built_engine: Callable[[str], Path]) -> EngineDecoder:
    """The engine of AOTInductor, opened."""
    return open_engine(built_engine("aoti"), gpu=None, threads=1)


@pytest.fixture
def copied(built_engine: Callable[[str], Path], tmp_path: Path) -> Path:
    """A copy of it that a test may damage."""
    return Path(shutil.copytree(built_engine("aoti"), tmp_path / "copied"))


def ids(batch: int, length: int) -> Any:
    torch.manual_seed(3)
    return torch.randint(3, 120, (batch, length))


@pytest.mark.parametrize("builder", ["aoti", "compile", "onnx", "openvino"])
@pytest.mark.parametrize("length", [1, 5, LONGEST])
def test_an_engine_gives_the_tokens_of_eager_at_any_length_of_its_profile(
    builder: str, length: int, built_engine: Callable[[str], Path]
) -> None:
    from hfbench.gpu.decoding import Decoder
    from hfbench.gpu.generate_model import load_model

    for name in builder_of(builder).needs:
        pytest.importorskip(name)
    folder = built_engine(builder)
    loaded = load_model(Path(read_manifest(folder).source.folder), gpu=None, dtype="fp32", attention="sdpa")
    engine, prompt = open_engine(folder, gpu=None, threads=1), ids(BATCH, length)
    wanted = Decoder(loaded.model, CPU).generate(prompt, CONTEXT - length + 1)
    for _ in range(2):  # what an earlier generation left in the cache must not count
        made = engine.generate(prompt, CONTEXT - length + 1)
        assert made.output_ids == wanted.output_ids
        assert made.finite
        assert len(made.marks) == CONTEXT - length + 2


@pytest.mark.parametrize(
    ("batch", "length", "told"),
    [
        (1, 12, r"a prompt of shape \[1, 12\] was given, the engine was built for prompts of shape \[2, 1 to 12\]"),
        (3, 12, r"shape \[3, 12\].*shape \[2, 1 to 12\]"),
        (2, 13, r"shape \[2, 13\].*shape \[2, 1 to 12\]"),
        (2, 0, r"shape \[2, 0\].*shape \[2, 1 to 12\]"),
    ],
)
def test_a_prompt_of_another_shape_is_refused_with_both_shapes(
    aoti: EngineDecoder, batch: int, length: int, told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        aoti.prefill(ids(batch, length))
    with pytest.raises(UsageError, match=told):
        aoti.generate(ids(batch, length), 2)


def test_more_tokens_than_the_context_holds_are_refused_before_the_first(aoti: EngineDecoder) -> None:
    with pytest.raises(UsageError, match=r"a prompt of 12 tokens with 14 new ones was given.*a context of 24"):
        aoti.generate(ids(BATCH, 12), 14)


def test_a_step_beyond_the_context_or_of_another_batch_is_refused(aoti: EngineDecoder) -> None:
    with pytest.raises(HfbenchError, match="before a prompt"):
        aoti.step(ids(BATCH, 1))
    aoti.prefill(ids(BATCH, 12))
    with pytest.raises(UsageError, match=r"a step of shape \[3, 1\].*steps of shape \[2, 1\]"):
        aoti.step(ids(3, 1))
    with pytest.raises(UsageError, match=r"a step of shape \[2, 2\]"):
        aoti.step(ids(BATCH, 2))
    for _ in range(CONTEXT - 12):
        aoti.step(ids(BATCH, 1))
    with pytest.raises(UsageError, match=r"token 25.*a context of 24"):
        aoti.step(ids(BATCH, 1))


def test_the_package_itself_refuses_what_a_caller_let_through(aoti: EngineDecoder) -> None:
    """AOTI_RUNTIME_CHECK_INPUTS is on: without it the program reads beyond its input."""
    program: Any = aoti._steps._programs["decode"]  # type: ignore[attr-defined]
    keys, values = aoti._steps._keys, aoti._steps._values  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError):
        program(ids(BATCH, 4), torch.tensor(0), keys, values)


def test_a_truncated_package_is_refused_by_its_name(copied: Path) -> None:
    package = copied / "engine.pt2"
    package.write_bytes(package.read_bytes()[:1000])
    with pytest.raises(HfbenchError, match=r"engine\.pt2: is not the file that was built: 1,000 bytes instead of"):
        open_engine(copied, gpu=None)


def test_one_changed_byte_of_the_weights_is_refused(copied: Path) -> None:
    weights = copied / "weights.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    with pytest.raises(HfbenchError, match=r"weights\.safetensors: is not the file that was built: SHA-256"):
        open_engine(copied, gpu=None)


def test_a_package_that_was_damaged_before_it_was_described_is_a_sentence(copied: Path) -> None:
    from hfbench.engines.files import describe_files

    (copied / "engine.pt2").write_bytes(b"PK\x03\x04 and nothing more")
    manifest = read_manifest(copied)
    write_manifest(copied, replace(manifest, files=describe_files(copied, [each.name for each in manifest.files])))
    with pytest.raises(HfbenchError, match="the runtime of aoti cannot load it: "):
        open_engine(copied, gpu=None)


def test_a_manifest_edited_by_hand_is_refused_before_anything_is_loaded(copied: Path) -> None:
    manifest = copied / MANIFEST
    manifest.write_text(manifest.read_text().replace('"batch": 2', '"batch": 1'))
    with pytest.raises(HfbenchError, match=r"hfbench-engine\.json: was edited after the engine was built"):
        open_engine(copied, gpu=None)


def test_an_onnx_engine_runs_where_nothing_that_builds_one_is_installed(
    built_engine: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in builder_of("onnx").needs:
        pytest.importorskip(name)
    folder, find = built_engine("onnx"), importlib.util.find_spec
    lacking = ("onnx", "onnxscript", "transformers")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name in lacking else find(name, *more))
    assert open_engine(folder, gpu=None, threads=1).generate(ids(BATCH, 3), 2).finite


def test_a_folder_without_a_manifest_is_no_engine(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no hfbench-engine\.json"):
        open_engine(tmp_path, gpu=None)


def test_an_engine_of_the_cpu_is_not_opened_for_a_gpu(built_engine: Callable[[str], Path]) -> None:
    from hfbench.gpu.devices import Gpu

    with pytest.raises(UsageError, match=r"was built for the CPU, and a GPU was chosen.*--device cpu"):
        open_engine(built_engine("aoti"), gpu=Gpu(index=0, lease="x", name="x"))


def test_a_compiled_pack_is_refused_when_its_checkpoint_has_gone_or_changed(
    built_engine: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(built_engine("compile"), tmp_path / "copied"))
    manifest = read_manifest(folder)
    for source, told in ((tmp_path / "gone", "is not there"), (tmp_path, "has changed since")):
        (tmp_path / "model.safetensors").write_bytes(b"other")
        write_manifest(folder, replace(manifest, source=replace(manifest.source, folder=str(source))))
        with pytest.raises(HfbenchError, match=told):
            open_engine(folder, gpu=None, threads=1)
