"""Engines of every builder: proven against eager when they are built, complete, and described."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from built_engines import BATCH, LONGEST, SHAPES, SHORTEST, build, tiny_model

from hfbench.actions.registry import find
from hfbench.engines.builders.base import builder_of, builders
from hfbench.engines.manifest import MANIFEST, Manifest, read_manifest
from hfbench.errors import HfbenchError, UsageError

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

DRIVEN = ["aoti", "compile", "onnx", "openvino"]


def engine(builder: str, built_engine: Callable[[str], Path]) -> tuple[Path, Manifest]:
    """The engine of a builder and its manifest; skipped where its libraries are not installed."""
    for name in builder_of(builder).needs:
        pytest.importorskip(name)
    folder = built_engine(builder)
    return folder, read_manifest(folder)


def test_every_module_of_the_package_makes_its_builder_known() -> None:
    assert set(builders()) >= {"aoti", "compile", "onnx", "openvino"}
    assert all(builder.name == name and builder.summary for name, builder in builders().items())


def test_an_unknown_builder_is_named_with_the_nearest_one() -> None:
    with pytest.raises(UsageError, match="openvino"):
        builder_of("openvin")


@pytest.mark.parametrize("builder", DRIVEN)
def test_an_engine_is_proven_at_its_shortest_and_its_longest_prompt(
    builder: str, built_engine: Callable[[str], Path]
) -> None:
    _, manifest = engine(builder, built_engine)
    proof = manifest.proof
    assert proof is not None
    assert (proof.verdict, proof.why, proof.dtype, proof.device) == ("proven", "", "fp32", "cpu")
    assert [(case.batch, case.prompt) for case in proof.cases] == [(BATCH, SHORTEST), (BATCH, LONGEST)]
    for case in proof.cases:
        assert case.steps == 8
        assert 0 < case.relative <= proof.tolerance < 1e-4
        assert (case.argmax_agreement, case.greedy_equal, case.finite) == (1.0, True, True)


@pytest.mark.parametrize("builder", DRIVEN)
def test_a_manifest_lists_every_file_and_tells_what_the_engine_depends_on(
    builder: str, built_engine: Callable[[str], Path]
) -> None:
    folder, manifest = engine(builder, built_engine)
    there = {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()}
    assert there == {each.name for each in manifest.files} | {MANIFEST, manifest.log}
    assert all((folder / each.name).stat().st_size == each.size for each in manifest.files)
    assert {name: getattr(manifest.shapes, name) for name in SHAPES} == SHAPES
    assert manifest.built_on.torch == torch.__version__
    assert manifest.built_on.transformers == transformers.__version__
    assert manifest.built_on.isa
    assert manifest.built_on.gpu is None
    assert manifest.source.config_sha256
    assert [each.name for each in manifest.source.files] == ["model.safetensors"]
    assert manifest.seconds > 0
    assert manifest.options
    assert "proof at" in (folder / manifest.log).read_text()


def test_the_weights_of_an_aoti_engine_lie_in_it_once(built_engine: Callable[[str], Path]) -> None:
    folder, manifest = engine("aoti", built_engine)
    stored = manifest.source.files[0].size
    assert stored <= (folder / "weights.safetensors").stat().st_size < stored + 8192
    with zipfile.ZipFile(folder / "engine.pt2") as package:
        assert not [name for name in package.namelist() if "weight" in name or "constant" in name]
    assert manifest.options["programs"] == "decode, prefill"
    assert manifest.options["aot_inductor.package_constants_in_so"] == "False"
    assert manifest.options["threads"] == "1"


def test_a_compiled_pack_spares_the_compilation_and_says_what_that_took(built_engine: Callable[[str], Path]) -> None:
    _, manifest = engine("compile", built_engine)
    assert float(manifest.options["warm_seconds"]) < float(manifest.options["cold_seconds"])
    assert manifest.options["inductor_keys"]


def test_openvino_leaves_nothing_of_the_onnx_graph(built_engine: Callable[[str], Path]) -> None:
    folder, _ = engine("openvino", built_engine)
    assert {each.name for each in folder.iterdir()} == {
        "engine.xml", "engine.bin", "cache.json", "build.log", MANIFEST,
    }  # fmt: skip


@pytest.mark.parametrize("builder", ["onnx", "openvino"])
def test_builders_of_cpu_runtimes_take_fp32_and_the_cpu(builder: str, tmp_path: Path) -> None:
    pytest.importorskip(builder)
    with pytest.raises(UsageError, match="fp32, bf16 was asked for"):
        build(tiny_model(tmp_path / "model"), tmp_path / "engine", builder, dtype="bf16")


@pytest.mark.parametrize(("builder", "dtype"), [("aoti", "auto"), ("onnx", "fp32"), ("openvino", "fp32")])
def test_the_dtype_auto_is_what_the_builder_can_make(builder: str, dtype: str) -> None:
    assert builder_of(builder).auto_dtype == dtype


def test_a_model_that_does_not_export_is_refused_with_the_reason_of_torch(tmp_path: Path) -> None:
    config = transformers.OPTConfig(
        vocab_size=128, hidden_size=32, word_embed_proj_dim=32, ffn_dim=32, num_hidden_layers=1,
        num_attention_heads=2, max_position_embeddings=64,
    )  # fmt: skip
    transformers.OPTForCausalLM(config).save_pretrained(tmp_path / "model")
    with pytest.raises(HfbenchError, match="decode does not export: GuardOnDataDependentSymNode: Could not guard"):
        build(tmp_path / "model", tmp_path / "engine", "aoti")
    assert [each.name for each in tmp_path.iterdir() if "engine" in each.name] == []


def test_tied_weights_are_written_once(tmp_path: Path) -> None:
    from safetensors import safe_open

    from hfbench.engines.builders.aoti import ALIASES, _write_weights

    table = torch.ones(4, 3)
    _write_weights(tmp_path / "w", {"decode": {"head": table, "table": table}, "prefill": {"table": table}})
    with safe_open(tmp_path / "w", framework="pt") as file:
        assert list(file.keys()) == ["decode/head"]
        aliases: dict[str, Any] = json.loads(file.metadata()[ALIASES])
    assert aliases == {"decode/table": "decode/head", "prefill/table": "decode/head"}


def test_a_build_needs_what_its_builder_needs_and_a_plan_nothing_of_this_python() -> None:
    spec = find("engine.build")
    assert spec.needing({"builder": "trtllm"}).needs == ()
    assert {"onnx", "onnxscript"} <= set(spec.needing({"builder": "onnx"}).needs)
    assert (spec.needing({"builder": "openvino"}).extra, spec.needing({}).needs) == ("openvino", spec.needs)
    assert find("gpus").needing({}) is find("gpus")


def test_what_builds_an_engine_can_also_run_it() -> None:
    for builder in builders().values():
        assert set(builder.runs_with) <= set(builder.needs)
