"""resolve: the trace of a model for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hfbench.actions.registry import find
from hfbench.actions.resolve import Resolve, ResolveResult
from hfbench.codec import decode, encode
from hfbench.jobs.run import Run


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


def test_the_lines_fit_a_terminal_and_hold_no_control_character(folder: Path) -> None:
    config = {"model_type": "\u001b[2J" * 50, "architectures": ["x" * 10_000], "auto_map": {"AutoConfig": "y" * 9000}}
    (folder / "config.json").write_text(json.dumps(config))
    lines = resolve(folder).lines()
    assert all(len(line) <= 80 and line.isprintable() for line in lines)
    assert "\\x1b[2J" in "\n".join(lines)


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
