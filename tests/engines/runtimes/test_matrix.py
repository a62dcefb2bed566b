"""A model against every runtime, by tables that came with hfbench and by sources that are installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_model import all_of, config, make, put

from hfbench.engines.runtimes import names as names_module
from hfbench.engines.runtimes.cards import Cards, cards_named
from hfbench.engines.runtimes.matrix import rows
from hfbench.engines.runtimes.names import known_names, scan_sglang, shipped_names
from hfbench.engines.runtimes.row import Row
from hfbench.engines.runtimes.subject import read_served
from hfbench.models.reference import NotFound


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A small llama."""
    return make(tmp_path / "model")


def judged(model: Path, gpu: str = "") -> dict[str, Row]:
    """Every row by runtime."""
    return {row.runtime: row for row in rows(read_served(str(model)), cards_named(gpu) if gpu else Cards())}


def test_a_llama_is_carried_out_by_all_ten(model: Path) -> None:
    found = judged(model, "H100")
    assert len(found) == 10
    assert {row.state for row in found.values()} == {"ok"}
    assert found["torch_compile"].values == {"model": str(model), "mode": "compile"}
    assert found["trtllm_plans"].values["builder"] == "trtllm"
    assert {name for name, row in found.items() if row.launch == "command"} == {"vllm", "sglang", "tensorrt_llm"}
    assert found["sglang"].rules == "shipped, read 2026-11-30"


def test_packed_weights_are_judged_by_the_card(model: Path) -> None:
    config(quantization_config={"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [128, 128]})(model)
    on_hopper, on_ampere = judged(model, "H100"), judged(model, "A10")
    assert on_hopper["transformers"].state == "ok"
    assert on_ampere["transformers"].state == "error"
    assert "from compute capability 8.9, this card is 8.6" in on_ampere["transformers"].reason
    assert on_ampere["vllm"].state == "warning"
    assert "Marlin" in on_ampere["vllm"].reason
    assert on_hopper["aoti"].state == "error"
    assert "packed (fp8)" in on_hopper["aoti"].reason
    assert on_hopper["llama_cpp"].state == "warning"


def test_bfloat16_on_an_old_card_names_the_type_to_use(model: Path) -> None:
    found = judged(model, "T4")
    assert "give --dtype float16" in found["vllm"].reason
    assert "emulated" in found["transformers"].reason
    assert found["onnx"].state == "ok"  # it runs on the CPU


def test_an_architecture_nobody_has_is_refused_by_each_with_its_name(model: Path) -> None:
    config(model_type="mine", architectures=["MineForCausalLM"])(model)
    found = judged(model)
    assert {row.state for row in found.values()} == {"error"}
    assert "'MineForCausalLM'" in found["sglang"].reason
    assert not any(row.launch for row in found.values())


def test_a_model_without_a_head_is_loaded_and_neither_timed_nor_built(model: Path) -> None:
    config(architectures=["LlamaModel"])(model)
    found = judged(model)
    assert found["transformers"].state != "error"
    assert not found["transformers"].launch
    assert "that make text" in found["aoti"].reason


def test_remote_code_is_told_and_leaves_the_serve_command(model: Path) -> None:
    code = {"AutoConfig": "configuration_mine.C", "AutoModelForCausalLM": "modeling_mine.M"}
    edits = [put("configuration_mine.py", ""), put("modeling_mine.py", "")]
    all_of(config(model_type="mine", architectures=["M"], auto_map=code), *edits)(model)
    found = judged(model)
    assert found["vllm"].remote_code
    assert found["vllm"].launch == "command"


def test_missing_weights_stop_the_runtimes_that_are_judged_by_name_alone(model: Path) -> None:
    index = {"metadata": {}, "weight_map": {"a": "gone.safetensors"}}
    (model / "model.safetensors").rename(model / "model-00001-of-00002.safetensors")
    put("model.safetensors.index.json", index)(model)
    found = judged(model)
    assert found["sglang"].state == found["llama_cpp"].state == "error"
    assert "gone.safetensors" in found["sglang"].reason


def test_a_gguf_is_read_by_llama_cpp_as_it_stands(model: Path) -> None:
    put("model.gguf", b"GGUF")(model)
    assert "as it stands" in judged(model)["llama_cpp"].reason


def test_a_reference_that_leads_nowhere_is_not_found() -> None:
    with pytest.raises(NotFound):
        read_served("nobody/nothing-here")


def test_sglang_is_read_from_its_sources_and_never_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = tmp_path / "sglang" / "srt" / "models"
    models.mkdir(parents=True)
    (models / "one.py").write_text("raise SystemExit('imported')\nEntryClass = OneForCausalLM\n")
    (models / "two.py").write_text("EntryClass = [\n    TwoForCausalLM,  # ThreeForCausalLM\n    TwoModel,\n]\n")
    (models / "odd.py").write_bytes(b"\xff\xfe EntryClass\n")
    assert scan_sglang(tmp_path / "sglang") == {"OneForCausalLM", "TwoForCausalLM", "TwoModel"}
    monkeypatch.setattr(names_module, "_installed_sglang", lambda: (tmp_path / "sglang", "9.9"))
    known_names.cache_clear()
    try:
        known = known_names("sglang")
        assert (known.version, known.installed) == ("9.9", True)
    finally:
        known_names.cache_clear()
    assert "LlamaForCausalLM" in shipped_names("sglang").names
