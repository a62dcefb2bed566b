"""Models written again as safetensors keep their bits, their small files and their meaning."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hfbench.actions.convert_safetensors import ConvertSafetensors, ConvertSafetensorsResult
from hfbench.convert.boxes import Box, TensorSpec
from hfbench.convert.formats.open import open_tensors
from hfbench.convert.formats.pt_layout import lay_out_pt
from hfbench.convert.formats.safetensors_layout import lay_out_safetensors
from hfbench.convert.stream.assemble import read_box
from hfbench.errors import HfbenchError, UsageError
from hfbench.jobs.run import Run

CONFIG = {"model_type": "llama", "torch_dtype": "float32", "tie_word_embeddings": False, "hidden_size": 4}
EMBEDDING, HEAD, BIAS = "model.embed_tokens.weight", "lm_head.weight", "model.layers.0.mlp.gate.e_score_correction_bias"


def write(folder: Path, tensors: dict[str, Any], config: dict[str, Any] | None = None, **files: str) -> Path:
    """A model folder of float32 tensors in shards of at most 100 bytes, with small files."""
    folder.mkdir()
    specs = [TensorSpec(name, "F32", values.shape) for name, values in tensors.items()]
    for layout in lay_out_safetensors(specs, most_bytes=100):
        raw = bytearray(layout.size)
        for at, data in layout.fixed:
            raw[at : at + len(data)] = data
        for piece in layout.pieces:
            data = tensors[piece.target].astype("f4").tobytes()
            raw[piece.begin : piece.begin + len(data)] = data
        (folder / layout.path).write_bytes(raw)
    (folder / "config.json").write_text(json.dumps(config or CONFIG))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "original").mkdir()
    (folder / "original" / "params.json").write_text("{}")
    return folder


def floats(*shape: int) -> Any:
    return np.arange(1, 1 + int(np.prod(shape)), dtype="f4").reshape(shape) / 8


@pytest.fixture
def model(tmp_path: Path) -> Path:
    tensors = {EMBEDDING: floats(6, 4), "model.norm.weight": floats(4), BIAS: floats(3), HEAD: floats(6, 4)}
    return write(tmp_path / "model", tensors)


def done(source: Path, out: Path, **options: Any) -> ConvertSafetensorsResult:
    return ConvertSafetensors(source=str(source), out=out, **options).perform(Run())


def values(folder: Path) -> dict[str, tuple[str, bytes]]:
    found = {}
    for name, source in open_tensors(folder).tensors.items():
        spec = source.spec
        found[name] = (spec.dtype, bytes(read_box(source, Box(0, spec.rows, 0, spec.columns))))
    return found


def test_resharding_keeps_every_bit_and_the_small_files(model: Path, tmp_path: Path) -> None:
    one = done(model, tmp_path / "one")
    many = done(tmp_path / "one", tmp_path / "many", max_shard_size="100B")
    assert values(tmp_path / "many") == values(tmp_path / "one") == values(model)
    assert sum(name.endswith(".safetensors") for name in one.files) == 1
    for name in ("model.safetensors.index.json", "original/params.json", "tokenizer.json", "config.json"):
        assert (tmp_path / "many" / name).read_bytes() == (model / name).read_bytes()
    assert [each.bytes for each in many.ranks] == [96, 28, 96]
    assert many.headline.startswith("llama: 4 tensors, 220 B; written in ")


def test_a_dry_run_plans_the_same_and_writes_nothing(model: Path, tmp_path: Path) -> None:
    planned = done(model, tmp_path / "out", dry_run=True)
    assert not (tmp_path / "out").exists()
    assert planned.files == done(model, tmp_path / "out").files


def test_a_cast_keeps_the_routers_bias_and_tells_the_configuration(model: Path, tmp_path: Path) -> None:
    found = done(model, tmp_path / "out", dtype="bf16")
    kinds = {name: dtype for name, (dtype, _) in values(tmp_path / "out").items()}
    assert kinds == {EMBEDDING: "BF16", "model.norm.weight": "BF16", BIAS: "F32", HEAD: "BF16"}
    assert [row.transform for row in found.plan if row.dtype == "BF16"] == ["cast from F32"] * 3
    assert json.loads((tmp_path / "out" / "config.json").read_text()) == {**CONFIG, "torch_dtype": "bfloat16"}
    raw = values(tmp_path / "out")["model.norm.weight"][1]
    assert [struct.unpack("<f", b"\0\0" + raw[at : at + 2])[0] for at in range(0, 8, 2)] == floats(4).tolist()


def test_a_head_is_tied_only_where_it_repeats_the_embedding(model: Path, tmp_path: Path) -> None:
    found = done(model, tmp_path / "tied", tie=True)
    assert found.dropped == (f"{HEAD}: repeats {EMBEDDING} bit by bit",)
    assert HEAD not in values(tmp_path / "tied")
    assert json.loads((tmp_path / "tied" / "config.json").read_text())["tie_word_embeddings"] is True
    untied = done(tmp_path / "tied", tmp_path / "untied", untie=True)
    assert untied.notes == (f"{HEAD} is a copy of {EMBEDDING}",)
    assert values(tmp_path / "untied") == values(model)
    other = write(tmp_path / "other", {EMBEDDING: floats(6, 4), HEAD: -floats(6, 4)})
    with pytest.raises(UsageError, match=r"does not repeat .* tying them would change the model"):
        done(other, tmp_path / "x", tie=True)


def test_a_bin_file_whose_tied_head_shares_the_embedding_gives_one_tensor(tmp_path: Path) -> None:
    from hfbench.convert.formats.pt_layout import archive
    from hfbench.convert.formats.zip_layout import Slot, lay_out_zip

    folder = tmp_path / "model"
    folder.mkdir()
    spec = TensorSpec(EMBEDDING, "F32", (2, 2))
    slots, first = archive({EMBEDDING: spec, HEAD: spec}, [spec])
    slots[first] = Slot.of(slots[first].name, floats(2, 2).tobytes())
    zipped = lay_out_zip(slots)
    raw = bytearray(zipped.end)
    for at, data in zipped.fixed:
        raw[at : at + len(data)] = data
    (folder / "pytorch_model.bin").write_bytes(raw)
    untied = {key: value for key, value in CONFIG.items() if key != "tie_word_embeddings"}  # of a llama, by its class
    (folder / "config.json").write_text(json.dumps(untied))
    assert not done(folder, tmp_path / "untied").dropped
    (folder / "config.json").write_text(json.dumps({**CONFIG, "tie_word_embeddings": True}))
    found = done(folder, tmp_path / "out")
    assert found.dropped == (f"{HEAD}: shares the bytes of {EMBEDDING}, to which the configuration ties it",)
    assert values(tmp_path / "out") == {EMBEDDING: ("F32", floats(2, 2).tobytes())}


def test_an_index_that_lies_is_followed_by_nobody_and_mended_on_request(model: Path, tmp_path: Path) -> None:
    index = model / "model.safetensors.index.json"
    text = json.loads(index.read_text())
    text["weight_map"]["ghost.weight"] = text["weight_map"][HEAD]
    index.write_text(json.dumps(text))
    with pytest.raises(HfbenchError, match=r"ghost\.weight.*hfbench convert safetensors --fix-index takes"):
        done(model, tmp_path / "out")
    done(model, tmp_path / "out", fix_index=True, max_shard_size="100B")
    mended = json.loads((tmp_path / "out" / index.name).read_text())
    assert set(mended["weight_map"]) == {EMBEDDING, "model.norm.weight", BIAS, HEAD}
    assert mended["metadata"]["total_size"] == 220


def test_what_cannot_be_done_is_said_before_anything_is_written(model: Path, tmp_path: Path) -> None:
    refusals: dict[str, dict[str, Any]] = {
        "contradict each other": {"tie": True, "untie": True},
        "is no size of a file": {"max_shard_size": "0 B"},
        "is nothing to allow": {"allow": ("everything",)},
    }
    for found, options in refusals.items():
        with pytest.raises(UsageError, match=found):
            done(model, tmp_path / "out", **options)
    quantized = write(tmp_path / "quantized", {EMBEDDING: floats(2, 2)}, {**CONFIG, "quantization_config": {}})
    with pytest.raises(UsageError, match="the weights are quantized: a cast would leave out their scales"):
        done(quantized, tmp_path / "out", dtype="bf16")
    rank = tmp_path / "megatron" / "mp_rank_00"
    rank.mkdir(parents=True)
    layout = lay_out_pt("x", [TensorSpec("w", "F32", (1, 1))], {})
    (rank / "model_optim_rng.pt").write_bytes(b"".join(data for _, data in layout.fixed))
    with pytest.raises(UsageError, match=r"is a Megatron checkpoint\. hfbench convert hf turns"):
        done(tmp_path / "megatron", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_packed_weights_are_not_cast_even_where_config_json_says_nothing(tmp_path: Path) -> None:
    source = write(tmp_path / "packed", {EMBEDDING: floats(6, 4), "model.layers.0.mlp.up_proj.qweight": floats(2, 4)})
    with pytest.raises(UsageError, match=r"quantized \('model.layers.0.mlp.up_proj.qweight'\)"):
        done(source, tmp_path / "out", dtype="bf16")


def test_an_index_that_cannot_be_read_is_put_aside_on_request(model: Path, tmp_path: Path) -> None:
    (model / "model.safetensors.index.json").write_text("")
    with pytest.raises(HfbenchError, match=r"the file is empty.*--fix-index"):
        done(model, tmp_path / "out")
    done(model, tmp_path / "out", fix_index=True)
    assert set(values(tmp_path / "out")) == {EMBEDDING, HEAD, BIAS, "model.norm.weight"}
