"""resolve: the trace of a model for people and for programs."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hfbench.actions.registry import find
from hfbench.actions.resolve import Resolve, ResolveResult, spoken, state_of
from hfbench.codec import decode, encode
from hfbench.jobs.run import Run
from hfbench.models.runtimes import TITLES, shipped


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "tiny"
    made.mkdir()
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_hidden_layers": 1, "rope_theta": 1e4}
    (made / "config.json").write_text(json.dumps(config))
    return made


def resolve(reference: str | Path, **options: object) -> ResolveResult:
    return Resolve(model=str(reference), **options).perform(Run())  # type: ignore[arg-type]


def test_the_declaration_is_inline_with_a_positional_model() -> None:
    spec = find("resolve")
    assert spec.inline
    assert [param.name for param in spec.params if param.positional] == ["model"]
    assert {param.name for param in spec.params} == {"model", "cache_dir", "offline"}


def test_the_result_has_the_fields_that_others_rely_on(folder: Path) -> None:
    result = resolve(folder)
    told = json.loads(json.dumps(encode(result)))
    assert set(told["steps"][0]) == {"step", "looked_at", "found", "why", "state", "details"}
    assert set(told["runtimes"]) == {"transformers", "vllm", "tensorrt_llm", "megatron_core"}
    for verdict in told["runtimes"].values():
        assert {"loads", "class", "reason", "files", "version", "ignored"} <= set(verdict)
    assert told["runtimes"]["transformers"]["loads"] is True
    assert told["runtimes"]["transformers"]["class"] == "LlamaConfig"
    assert told["runtimes"]["vllm"]["files"] == []
    assert told["failed"] is False
    assert encode(decode(ResolveResult, told)) == told


@pytest.mark.usefixtures("terminal")
def test_the_lines_fit_a_terminal_and_hold_no_control_character(folder: Path) -> None:
    config = {"model_type": "\u001b[2J" * 50, "architectures": ["x" * 10_000], "auto_map": {"AutoConfig": "y" * 9000}}
    (folder / "config.json").write_text(json.dumps(config))
    lines = resolve(folder).lines()
    assert all(len(line) <= 80 and line.isprintable() for line in lines)
    assert "\\x1b[2J" in "\n".join(lines)


def test_what_is_alike_for_several_runtimes_is_said_once(folder: Path) -> None:
    text = " ".join(" ".join(resolve(folder).lines()).split())
    assert "cache, hub not asked; a path that exists wins" in text
    assert "model type 'llama'; transformers and vLLM: LlamaConfig" in text
    assert "architectures 'LlamaForCausalLM'; all four runtimes: LlamaForCausalLM" in text
    assert "so the configuration alone is judged" not in text
    assert "Runtimes, judged on the configuration alone: there are no weights" in text


def test_a_reason_does_not_repeat_the_runtime_and_its_version(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", "architectures": ["Nobody"]}))
    result = resolve(folder)
    verdict = result.runtimes["tensorrt_llm"]
    assert verdict["reason"].startswith(f"TensorRT-LLM {verdict['version']} has no model")
    assert spoken("tensorrt_llm", verdict) == "has no model of that architecture: 'Nobody'"
    assert " ".join(result.lines()).count(verdict["version"]) == 1


def test_a_reason_that_is_the_same_everywhere_is_told_once(folder: Path) -> None:
    (folder / "config.json").write_text("[")
    text = " ".join(" ".join(resolve(folder).lines()).split())
    assert "x all four does not load: config.json: line 1, column 2" in text
    assert "TensorRT" not in text


def test_the_package_that_is_installed_is_told(folder: Path) -> None:
    result = resolve(folder)
    text = " ".join(" ".join(result.lines()).split())
    for runtime, title in TITLES.items():
        verdict = result.runtimes[runtime]
        known = f"({verdict['version']}, installed)" if verdict["installed"] else f"({verdict['version']})"
        assert f"ok {title} loads {known}" in text


def test_a_model_that_would_not_be_built_is_marked_though_its_configuration_loads(folder: Path) -> None:
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "rope_theta": None, "num_hidden_layers": 1}
    (folder / "config.json").write_text(json.dumps(config))
    result = resolve(folder)
    assert result.runtimes["transformers"]["loads"]
    assert state_of(result.runtimes["transformers"]) == "warning"
    assert any(line.startswith("!  transformers") for line in result.lines())


def test_a_model_that_loads_nowhere_fails_the_result_and_still_tells_all(folder: Path) -> None:
    (folder / "config.json").write_text(json.dumps({"model_type": "nobody"}))
    result = resolve(folder)
    assert result.failed
    assert "does not load" in "\n".join(result.lines())


def test_a_reference_that_leads_nowhere_is_a_result_and_not_an_error(tmp_path: Path) -> None:
    result = resolve("org/absent", cache_dir=tmp_path, offline=True)
    assert result.failed
    assert result.folder is None
    assert "not in the cache" in result.runtimes["vllm"]["reason"]


def fake_transformers(root: Path, mappings: str) -> Path:
    """A transformers 9.9.9 to be found before the real one, as far as its source is read."""
    auto = root / "transformers" / "models" / "auto"
    auto.mkdir(parents=True)
    (root / "transformers" / "__init__.py").write_text("raise SystemExit('imported')\n")
    (auto / "configuration_auto.py").write_text(mappings)
    (auto / "modeling_auto.py").write_text(
        "MODEL_MAPPING_NAMES = {'brandnew': 'NewModel'}\n"
        "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES = {'brandnew': 'NewForCausalLM'}\n"
    )
    (auto / "tokenization_auto.py").write_text("TOKENIZER_MAPPING_NAMES = {}\n")
    (root / "transformers-9.9.9.dist-info").mkdir()
    metadata = "Metadata-Version: 2.1\nName: transformers\nVersion: 9.9.9\n"
    (root / "transformers-9.9.9.dist-info" / "METADATA").write_text(metadata)
    return root


def test_an_installed_package_of_another_version_is_read_and_told(
    hfbench: Callable[..., subprocess.CompletedProcess[str]], folder: Path, tmp_path: Path
) -> None:
    root = fake_transformers(tmp_path / "site", "CONFIG_MAPPING_NAMES = {'brandnew': 'NewConfig'}\n")
    (folder / "config.json").write_text(json.dumps({"model_type": "brandnew", "architectures": ["NewForCausalLM"]}))
    done = hfbench("resolve", folder, env={"PYTHONPATH": str(root)})
    text = " ".join(done.stdout.split())
    assert "ok transformers loads (9.9.9, installed): NewConfig, NewForCausalLM" in text
    assert "imported" not in done.stdout + done.stderr


def test_an_installed_package_that_cannot_be_read_is_told(
    hfbench: Callable[..., subprocess.CompletedProcess[str]], folder: Path, tmp_path: Path
) -> None:
    root = fake_transformers(tmp_path / "site", "def broken(:\n")
    done = hfbench("resolve", folder, env={"PYTHONPATH": str(root)})
    version = shipped("transformers").version
    assert f"loads ({version}; 9.9.9 is installed and could not be read)" in " ".join(done.stdout.split())
