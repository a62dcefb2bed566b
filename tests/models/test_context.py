"""The context of a configuration: what each runtime takes, and that everybody reads the same."""

from __future__ import annotations

import csv
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from hfbench.models.config import read_config
from hfbench.models.context import context_of
from hfbench.models.resolution.resolve import trace_model

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
QWEN = {"model_type": "qwen", "max_position_embeddings": 32768, "seq_length": 8192}
LLAMA = {"model_type": "llama", "max_position_embeddings": 4096}
LINEAR = {"type": "linear", "factor": 2.0}
LONGROPE = {"rope_type": "longrope", "short_factor": [1.0], "long_factor": [1.0]}


@pytest.mark.parametrize(
    ("config", "vllm", "transformers"),
    [
        (QWEN, 8192, 32768),
        (LLAMA, 4096, 4096),
        (LLAMA | {"rope_scaling": LINEAR}, 8192, 4096),
        (LLAMA | {"rope_scaling": LONGROPE, "original_max_position_embeddings": 1024}, 1024, 4096),
        (LLAMA | {"seq_length": 512}, 512, 4096),
        (LLAMA | {"model_max_length": 9000, "seq_length": 512}, 9000, 4096),
        ({"model_type": "llama"}, 2048, 2048),
        ({"model_type": "gpt2", "n_positions": 77}, 77, 77),
        ({"model_type": "gpt2", "max_position_embeddings": 77}, 77, 77),
        ({"model_type": "rwkv", "context_length": 77}, 77, 77),
        ({"model_type": "falcon"}, 2048, 2048),
        ({"model_type": "whisper"}, 448, 448),
        ({"model_type": "whisper", "max_target_positions": 300}, 300, 300),
        ({"model_type": "bloom"}, 2048, None),
        ({"model_type": "bloom", "seq_length": 1000}, 1000, 1000),
        ({"model_type": "brand_new", "n_ctx": 99}, 2048, 99),
        ({"model_type": "glm4v", "max_position_embeddings": 65536}, 32768, 32768),
        ({"model_type": "glm4v", "text_config": {"max_position_embeddings": 100}}, 100, 100),
        ({"model_type": "qwen2_vl", "max_position_embeddings": 65536}, 65536, 65536),
        ({"model_type": "qwen2_5_omni", "thinker_config": {"text_config": {"max_position_embeddings": 64}}}, 64, 64),
        ({"model_type": "qwen3_asr"}, 2048, 65536),
        (
            {"model_type": "brand_new", "llm_config": {"max_position_embeddings": 512, "rope_scaling": LINEAR}},
            1024,
            512,
        ),
        ({"model_type": "llama", "max_position_embeddings": "many"}, 2048, None),
        ({"model_type": "llama", "max_position_embeddings": -1}, 2048, None),
        ({}, None, None),
    ],
    ids=str,
)
def test_each_runtime_takes_its_own_limit(config: dict[str, Any], vllm: int | None, transformers: int | None) -> None:
    assert context_of(config, "vllm").limit == vllm
    assert context_of(config, "transformers").limit == transformers


def test_a_key_that_the_class_passes_over_is_told() -> None:
    found = context_of({"model_type": "glm4v", "max_position_embeddings": 65536}, "vllm")
    assert (found.key, found.by) == ("text_config.max_position_embeddings", "Glm4vTextConfig")
    assert any("max_position_embeddings 65,536 at the root is not read" in why for why in found.whys)


def test_what_a_runtime_assumes_is_no_fact_of_the_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "brand_new"}))
    assert context_of({"model_type": "brand_new"}, "vllm").origin == "assumed"
    assert read_config(tmp_path).context is None


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("contexts")
    with tarfile.open(CORPUS / "configs.tar.gz") as archive:
        archive.extractall(root, filter="data")
    return root


@pytest.mark.skipif(not (CORPUS / "known.tsv").is_file(), reason="the corpus is not at hand")
def test_contexts_of_real_models_are_those_of_their_classes(folders: Path) -> None:
    with (CORPUS / "known.tsv").open(newline="") as opened:
        rows = list(csv.DictReader(opened, delimiter="\t"))
    wrong = []
    for row in rows:
        if row["max_position_embeddings"] != "None":
            found = context_of(read_config(folders / row["family"]).raw, "transformers").limit
            wrong += [(row["family"], found)] if str(found) != row["max_position_embeddings"] else []
    assert wrong == []


@pytest.mark.skipif(not (CORPUS / "known.tsv").is_file(), reason="the corpus is not at hand")
def test_everybody_tells_one_context_of_real_models(folders: Path) -> None:
    from hfbench.estimate.model import read_model
    from hfbench.estimate.runtimes import runtimes
    from hfbench.models.reference import Location

    wrong = []
    for folder in sorted(folders.iterdir()):
        config = read_config(folder)
        if not config.raw:
            continue
        [told] = [each.found for each in trace_model(str(folder)).steps if each.step == "context"]
        location = Location(folder.name, folder, "local")
        fitted = read_model(location, runtime=runtimes()["vllm"], dtype=None).model.limit
        if not told.startswith(f"{config.context:,} tokens") or fitted != config.context:
            wrong.append((folder.name, told, config.context, fitted))
    assert wrong == []
