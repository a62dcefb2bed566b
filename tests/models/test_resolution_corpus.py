"""Resolution against real configurations and what transformers and vLLM made of them, when that corpus is at hand."""

from __future__ import annotations

import csv
import tarfile
from functools import cache
from pathlib import Path

import pytest

from hfbench.models.resolution.resolve import Resolution, trace_model
from hfbench.models.runtimes import Runtime, shipped

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
TABLES: dict[Runtime, tuple[str, str, str]] = {
    "transformers": ("autoconfig_results.tsv", "config_class", "error_or_warnings"),
    "vllm": ("vllm_config_results.tsv", "class", "error_or_warn"),
}

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of real configurations is not here")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("configs")
    with tarfile.open(CORPUS / "configs.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def rows(name: str) -> list[dict[str, str]]:
    with (CORPUS / name).open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


@cache
def resolved(folder: Path) -> Resolution:
    return trace_model(str(folder))


def kind_of_reason(reason: str) -> str:
    return next((word for word in ("remote code", "unknown model_type", "no config.json") if word in reason), reason)


def kind_of_error(error: str) -> str:
    known = {
        "contains custom code": "remote code",
        "does not recognize": "unknown model_type",
        "Invalid repository ID": "no config.json",
    }
    return next((kind for words, kind in known.items() if words in error), error)


@pytest.mark.parametrize("runtime", ["transformers", "vllm"])
def test_what_loads_and_why_not_agrees_on_every_row(runtime: Runtime, folders: Path) -> None:
    table, class_column, error_column = TABLES[runtime]
    wrong = []
    for row in rows(table):
        verdict = resolved(folders / row["family"]).runtimes[runtime]
        expected = (True, row[class_column]) if row["result"] == "ok" else (False, kind_of_error(row[error_column]))
        found = (True, verdict.config_class) if verdict.loads else (False, kind_of_reason(verdict.reason))
        if found != expected:
            wrong.append((row["family"], expected, found, verdict.reason))
    assert wrong == []


def test_architectures_of_vllm_and_transformers_agree_on_every_row() -> None:
    vllm, transformers = shipped("vllm"), shipped("transformers")
    wrong = [
        row["family"]
        for row in rows("vllm_arch.tsv")
        if str(row["architecture"] in vllm.architectures) != row["vllm_native"]
        or str(row["architecture"] in transformers.architectures) != row["transformers_class"]
        or vllm.previous.get(row["architecture"], "") != row["previous_version"]
    ]
    assert wrong == []
