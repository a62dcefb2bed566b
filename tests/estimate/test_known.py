"""The known answers of real models, where the corpus is at hand."""

from __future__ import annotations

import csv
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from hfbench.estimate.cache_bytes import kv_bytes_per_token
from hfbench.estimate.model import read_model
from hfbench.estimate.runtimes import runtimes
from hfbench.models.reference import Location

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
COUNTS_FEED_FORWARD = "nemotron_h"
"""The known answers of these models count every layer that is not recurrent as if it attended, their layers of experts
and feed-forward as well. Those keep nothing: transformers gives them a DummyLayer, as `test_transformers` shows."""

pytestmark = pytest.mark.skipif(not (CORPUS / "known.tsv").is_file(), reason="the corpus is not at hand")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("configs")
    with tarfile.open(CORPUS / "configs.tar.gz") as archive:
        archive.extractall(root, filter="data")
    return root


def known() -> list[dict[str, str]]:
    if not (CORPUS / "known.tsv").is_file():
        return []
    with (CORPUS / "known.tsv").open(newline="") as opened:
        return list(csv.DictReader(opened, delimiter="\t"))


@pytest.mark.parametrize("row", known(), ids=lambda row: row["family"])
def test_counts_agree_with_the_known_answer(folders: Path, row: dict[str, str]) -> None:
    runtime = runtimes()["vllm"]
    location = Location(row["family"], folders / row["family"], "local")
    reading = read_model(location, runtime=runtime, dtype="bfloat16")
    weights, caches = reading.model.weights, reading.model.caches
    if row["params_meta"]:
        assert weights.parameters == int(row["params_meta"])
        assert weights.tensors == int(row["tensors_state_dict"])
        assert weights.stored == int(row["bf16_bytes"])
    assert caches is not None
    told = int(row["kv_bytes_per_token_16bit"])
    if row["model_type"] == COUNTS_FEED_FORWARD:
        kinds = Counter(cache.kind for cache in caches)
        attending, feeding = kinds["full_attention"], kinds["none"]
        assert f"full_attention:{attending}" in row["note"]
        told = told * attending // (attending + feeding)
    assert kv_bytes_per_token(caches, runtime, 2) == told
