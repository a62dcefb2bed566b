"""The malformed models and the models of bug reports, judged in one process of its own, whose time and memory count."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import pytest

from hfbench.checks.run import Report, check

CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus"

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not here")

SECONDS = 5.0
MEMORY = 300 * 2**20

CONTRADICTED = {
    "st_no_format_meta": "st_ok_padded",
    "cf_tied_but_head": "tied_same_head",
    "tk_none": "hc_ok",
}
"""Cases whose verdict no rule can give together with that of another case, which is the same in all that could matter.

`test_a_case_that_is_given_up_is_the_same_as_one_that_is_not` proves it. Each is told as an info.
"""

RULES = {
    "st_too_small": "HB101",
    "st_header_too_large": "HB102",
    "st_truncated_header": "HB103",
    "st_bad_json": "HB104",
    "st_header_start": "HB105",
    "st_duplicate_key": "HB106",
    "st_bad_entry": "HB107",
    "st_unknown_dtype": "HB108",
    "st_bad_shape": "HB109",
    "st_overflow": "HB110",
    "st_misaligned": "HB111",
    "st_size_mismatch": "HB113",
    "st_overlap": "HB114",
    "st_hole": "HB115",
    "st_trailing": "HB117",
    "st_bad_metadata": "HB118",
    "not_safetensors": "HB119",
    "st_no_format": "HB121",
    "weights_nan": "HB122",
    "lfs_pointer": "HB130",
    "not_regular": "HB131",
    "broken_symlink": "HB132",
    "index_bad": "HB140",
    "index_path_escape": "HB141",
    "shard_missing": "HB142",
    "index_missing": "HB143",
    "index_tensor_absent": "HB144",
    "index_total_size": "HB147",
    "weights_missing": "HB150",
    "adapter_not_model": "HB151",
    "two_weight_sets": "HB152",
    "extra_weight_copies": "HB156",
    "config_missing": "HB200",
    "config_bom": "HB201",
    "config_encoding": "HB202",
    "config_json": "HB203",
    "config_not_object": "HB204",
    "config_nan": "HB205",
    "config_type": "HB207",
    "model_type_unknown": "HB211",
    "architectures_missing": "HB212",
    "architecture_unknown": "HB213",
    "config_vs_tensors": "HB220",
    "vocab_vs_embedding": "HB221",
    "dtype_mismatch": "HB223",
    "head_missing": "HB224",
    "tied_with_head": "HB226",
    "tied_with_head_same": "HB226",
    "quant_vs_tensors": "HB230",
    "quant_conflict": "HB232",
    "rope_theta_missing": "HB301",
    "rope_conflict": "HB302",
    "rope_mrope_section": "HB303",
    "rope_unknown": "HB304",
    "rope_keys": "HB305",
    "rope_type_missing": "HB307",
    "rope_legacy": "HB308",
    "rope_legacy_ignored": "HB310",
    "context_length_note": "HB312",
    "tokenizer_json": "HB501",
    "tokenizer_missing": "HB502",
    "tokenizer_duplicate_id": "HB503",
    "tokenizer_vs_embedding": "HB504",
    "tokenizer_id_gap": "HB505",
    "eos_mismatch": "HB507",
    "max_length_tokenizer": "HB508",
    "gguf_tokenizer_model": "HB509",
    "chat_template_missing": "HB600",
    "chat_template_syntax": "HB601",
    "chat_template_timeout": "HB602",
    "chat_template_memory": "HB603",
    "chat_template_unsafe": "HB604",
    "chat_template_raises": "HB606",
    "remote_code": "HB700",
    "remote_code_missing": "HB701",
    "pickle_danger": "HB710",
    "revision_not_cached": "HB804",
    "local_shadows_repo": "HB805",
}
"""The rule for each kind of fault; config_value has two, by what the value is."""

CHILD = """
import json, os, resource, sys
from pathlib import Path
from hfbench.checks.run import check
from hfbench.checks.subject import Options

def spent():
    # CPU seconds of this process and of those it waited for: a busy machine makes no case slower.
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))

for case in json.load(sys.stdin):
    os.chdir(case["cwd"])
    begun = spent()
    cache = case["cache_dir"] and Path(case["cache_dir"])
    report = check(case["target"], cache_dir=cache, options=Options(**case["options"]))
    seconds = spent() - begun
    # Its own ru_maxrss would begin with the size of the tests' process, of which this one was forked.
    status = Path("/proc/self/status").read_text()
    own = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
    peaks = [own * 1024, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024]
    found = [[each.id, each.severity, each.message] for each in report.findings]
    print(json.dumps([case["id"], report.verdict, found, seconds, peaks]), flush=True)
"""


Judged = dict[str, tuple[dict[str, Any], list[Any]]]


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of both sets."""
    folder = tmp_path_factory.mktemp("corpus")
    for name in ("malformed", "reports"):
        with tarfile.open(CORPUS / f"{name}.tar.gz") as archive:
            archive.extractall(folder / name, filter="fully_trusted")  # it holds FIFOs and links on purpose
    return folder


@pytest.fixture(scope="module")
def judged(unpacked: Path) -> Judged:
    """Every case by its id, with what was asked and what came out."""
    folder, cases = unpacked, {}
    for name in ("malformed", "reports"):
        for case in json.loads((CORPUS / f"{name}.json").read_text())["cases"]:
            cases[case["id"]] = _request(case, folder / name / case["id"])
    asked = [request for _, request in cases.values()]
    child = subprocess.run(
        [sys.executable, "-c", CHILD], input=json.dumps(asked), capture_output=True, text=True, timeout=280, check=False
    )
    assert child.returncode == 0, child.stderr[-2000:]
    answers = {answer[0]: answer for answer in map(json.loads, child.stdout.splitlines())}
    return {id: (case, answers[id]) for id, (case, _) in cases.items()}


def _request(case: dict[str, Any], folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    arguments = case.get("args", {})
    target, cache_dir, cwd = str(folder), None, str(folder.parent)
    if case.get("group") == "safetensors":
        target = str(folder / case["target"])
    elif case.get("group") == "cache":
        target, cache_dir = case["target"], str(folder)
    if "model" in arguments:
        target, cwd = arguments["model"], str(folder / arguments.get("cwd", "."))
    options = {key: arguments[key] for key in ("dtype", "quantization") if key in arguments}
    wanted = {"error": "refuse", "info": "ok"}
    level = case.get("expect") or wanted.get(case["expect_level"], case["expect_level"])
    codes = case.get("expect_codes") or ([case["code"]] if case.get("code") else [])
    asked = {"id": case["id"], "target": target, "cache_dir": cache_dir, "cwd": cwd, "options": options}
    return {"verdict": level, "codes": codes}, asked


def test_every_case_gets_the_verdict_it_must_get(judged: Judged) -> None:
    wrong = {id: answer for id, (case, answer) in judged.items() if answer[1] != case["verdict"]}
    assert set(wrong) == set(CONTRADICTED), wrong
    assert {wrong[id][1] for id in CONTRADICTED} == {"ok"}


def _weights(path: Path) -> tuple[dict[str, Any], bytes]:
    """The tensors and the data of a file, without its metadata and its padding."""
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:start])
    header.pop("__metadata__", None)
    return header, raw[start:]


def test_a_case_that_is_given_up_is_the_same_as_one_that_is_not(unpacked: Path) -> None:
    def folder(id: str) -> Path:
        return next(each for each in (unpacked / "malformed" / id, unpacked / "reports" / id) if each.is_dir())

    def parts(path: Path) -> tuple[Any, ...]:
        return (json.loads((path / "config.json").read_text()), *_weights(path / "model.safetensors"))

    no_format, padded = (folder(id) / "model.safetensors" for id in ("st_no_format_meta", "st_ok_padded"))
    assert _weights(no_format) == _weights(padded)
    assert b"__metadata__" not in no_format.read_bytes() + padded.read_bytes()

    tied, same_head = folder("cf_tied_but_head"), folder("tied_same_head")
    assert parts(tied) == parts(same_head)
    assert not any(parts(tied)[2])  # the head "that differs" is as zero as the embedding
    assert {each.name for each in same_head.iterdir()} - {each.name for each in tied.iterdir()} == {
        "tokenizer.json",
        "tokenizer_config.json",
    }

    alone, snapshot = folder("tk_none"), next(folder("hc_ok").glob("*/snapshots/*"))
    assert parts(alone) == parts(snapshot)
    assert {each.name for each in alone.iterdir()} == {each.name for each in snapshot.iterdir()}
    for near, changed in (("cf_dtype_mismatch", {"torch_dtype": "float32"}), ("cf_nan", {"rms_norm_eps": None})):
        other = parts(folder(near))  # must be "warn", so that what is missing in both can be no error
        assert {**other[0], **changed} == {**parts(alone)[0], **changed}
        assert other[1:] == parts(alone)[1:]


def test_every_case_is_judged_for_its_own_reason(judged: Judged) -> None:
    missed = {}
    for id, (case, answer) in judged.items():
        found = {each[0] for each in answer[2]}
        for code in case["codes"]:
            rules = {"HB208", "HB214"} if code == "config_value" else {RULES[code]}
            if not rules & found:
                missed[id] = (code, answer[2])
    assert not missed


def test_no_case_takes_five_seconds_or_three_hundred_megabytes(
    judged: Judged,
) -> None:
    slow = {id: answer[3] for id, (_, answer) in judged.items() if answer[3] > SECONDS}
    assert not slow
    assert max(peak for _, answer in judged.values() for peak in answer[4]) < MEMORY


def test_no_case_ran_code_of_its_own(judged: Judged) -> None:
    assert judged
    assert not [name for name in os.listdir(tempfile.gettempdir()) if name.startswith("insp_PWNED")]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Report]:
    """The reports on configuration files of 160 public models."""
    folder = tmp_path_factory.mktemp("configs")
    with tarfile.open(CORPUS / "configs.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return {each.name: check(str(each)) for each in sorted(folder.iterdir())}


EXPECTED_OF_REAL = {"HB130", "HB142", "HB150", "HB200", "HB211", "HB213", "HB701"}
"""Errors that the configuration of a real model may get: its weights and code are left out of the corpus."""

REFUSING = {"HB200", "HB203", "HB204", "HB207", "HB208", "HB210", "HB214", "HB218", "HB305"}
"""Rules whose findings keep a configuration from being loaded in any runtime."""


def test_no_real_configuration_is_found_wrong_in_itself(real: dict[str, Report]) -> None:
    wrong = [
        (name, each.id, each.message)
        for name, report in real.items()
        for each in report.findings
        if each.severity == "error" and each.id not in EXPECTED_OF_REAL
    ]
    assert not wrong


@pytest.mark.parametrize("name", ["autoconfig_results.tsv", "vllm_config_results.tsv"])
def test_which_configurations_load_is_judged_as_the_runtimes_do(real: dict[str, Report], name: str) -> None:
    rows = [line.split("\t") for line in (CORPUS / name).read_text().splitlines()]
    result = rows[0].index("result")
    told = {row[0]: row[result] == "ok" for row in rows[1:] if row[0] in real}
    assert told
    assert {family: _loads(real[family], vllm=name.startswith("vllm")) for family in told} == told


def _loads(report: Report, *, vllm: bool) -> bool:
    findings = [each for each in report.findings if each.severity != "info"]
    for each in findings:
        vllm_only = "vLLM" in each.message and "neither" not in each.message
        of_class = each.id == "HB211" or (each.id == "HB700" and each.message.startswith("AutoConfig"))
        if each.id in REFUSING or (of_class and not (vllm and vllm_only)):
            return False
    return True
