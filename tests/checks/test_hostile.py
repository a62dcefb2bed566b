"""Whatever a model's files hold, a check ends with findings and never with an exception."""

from __future__ import annotations

import json
import pickle
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_model import CONFIG, LAYER, TOKENIZER_CONFIG, make, put, tokenizer

from hfbench.checks.base import rules
from hfbench.checks.pickle_scan import dangerous, scan_file, unusual
from hfbench.checks.run import report_on
from hfbench.checks.subject import Options, subject_of
from hfbench.text import printable

KEYS = [
    *CONFIG,
    "auto_map",
    "rope_scaling",
    "rope_parameters",
    "quantization_config",
    "text_config",
    "dtype",
    "head_dim",
    "partial_rotary_factor",
    "rotary_emb_base",
    "is_encoder_decoder",
    "num_nextn_predict_layers",
    "pad_vocab_size_multiple",
    "speculators_config",
]
INNER = [
    "type",
    "rope_type",
    "factor",
    "full_attention",
    "short_factor",
    "quant_method",
    "model_type",
    "AutoConfig",
    "x",
]

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["llama", "yarn", "longrope", "llama3", "gptq", "fp8", "mrope", "a.B", "o/r--a.B", "--", "."]),
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(INNER), inner, max_size=4)),
    max_leaves=8,
)
FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

QUICK = [each for id, each in rules().items() if not id.startswith("HB60")]
"""All rules but those that start a process."""


def judged(edit: object, name: str, **options: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = make(Path(folder) / "model")
        put(name, edit)(model)
        report = report_on(subject_of(model, options=Options(**options)), QUICK)
    json.dumps([dict(each.evidence) for each in report.findings])
    for each in report.findings:
        text = each.message + each.file + each.remedy
        assert printable(text) == text


@FEW
@given(st.dictionaries(st.sampled_from(KEYS), values, max_size=6), scalars)
def test_any_values_in_config_json(changes: dict[str, Any], asked: object) -> None:
    judged({**CONFIG, **changes}, "config.json", quantization=asked if isinstance(asked, str) else "awq")


@FEW
@given(st.dictionaries(st.sampled_from([*TOKENIZER_CONFIG, "auto_map", "added_tokens_decoder"]), values, max_size=4))
def test_any_values_in_tokenizer_config_json(changes: dict[str, Any]) -> None:
    judged({**TOKENIZER_CONFIG, **changes, "chat_template": None}, "tokenizer_config.json")


@FEW
@given(st.dictionaries(st.sampled_from(["added_tokens", "model"]), values, min_size=1, max_size=2))
def test_any_values_in_tokenizer_json(changes: dict[str, Any]) -> None:
    judged({**tokenizer(), **changes}, "tokenizer.json")


@FEW
@given(
    st.sampled_from(["generation_config.json", "hf_quant_config.json", "adapter_config.json", "added_tokens.json"]),
    st.dictionaries(st.sampled_from(["eos_token_id", "pad_token_id", "quantization", "<x>"]), values),
)
def test_any_values_in_files_beside(name: str, content: dict[str, Any]) -> None:
    judged(content, name)


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.binary(max_size=200), st.binary(max_size=200).map(lambda raw: b"\x80\x04" + raw)))
def test_any_bytes_as_a_pickle(raw: bytes) -> None:
    scan = scan_file(BytesIO(raw), len(raw))
    assert scan.broken or scan.kind in ("pickle", "zip", "array")
    assert dangerous(scan.globals) + unusual(scan.globals) is not None


@settings(max_examples=100, deadline=None)
@given(values, st.integers(0, 5))
def test_a_pickle_of_plain_values_imports_nothing(value: object, protocol: int) -> None:
    raw = pickle.dumps(value, protocol)
    scan = scan_file(BytesIO(raw), len(raw))
    assert (scan.broken, dangerous(scan.globals), unusual(scan.globals)) == ("", [], [])


@pytest.mark.parametrize("protocol", range(6))
def test_a_function_pickled_by_python_itself_is_seen(protocol: int) -> None:
    raw = pickle.dumps({"a": [eval, len]}, protocol)
    found = dangerous(scan_file(BytesIO(raw), len(raw)).globals)
    assert any(name.endswith(".eval") for name in found)


def test_what_torch_saves_is_clean_in_both_formats(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    state = {name: torch.zeros(shape, dtype=torch.bfloat16) for name, (_, shape) in LAYER.items()}
    state["p"] = torch.nn.Parameter(torch.zeros(3))
    for zipped in (True, False):
        torch.save(state, tmp_path / "x.bin", _use_new_zipfile_serialization=zipped)
        raw = (tmp_path / "x.bin").read_bytes()
        scan = scan_file(BytesIO(raw), len(raw))
        assert scan.globals
        assert (scan.broken, dangerous(scan.globals), unusual(scan.globals)) == ("", [], [])
