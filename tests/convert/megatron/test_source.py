"""Folders and files as sources: fp8 in blocks, GGUF, adapters, mirrors divided before, tokens without a row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
import pytest
from hf_models import checkpoint, written

from hfbench.convert.boxes import Box, Copy, TensorSpec
from hfbench.convert.fp8_source import decode_fp8
from hfbench.convert.megatron.source import open_source
from hfbench.convert.plan import Target
from hfbench.convert.stored import Stored, TensorSet
from hfbench.convert.stream.prescan import prescan, refuse
from hfbench.errors import HfbenchError, UsageError
from hfbench.jobs.run import Run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return written(tmp_path / "model", checkpoint("llama_tied", num_hidden_layers=1))


def test_small_files_go_along_and_old_manifests_do_not(folder: Path) -> None:
    for name in ("tokenizer.json", "chat_template.jinja", "hfbench-manifest.jsonl", "hfbench-manifest.json"):
        (folder / name).write_text("{}")
    source = open_source(str(folder))
    assert set(source.beside) == {"config.json", "tokenizer.json", "chat_template.jinja"}
    assert source.tensors.tensors.keys() == checkpoint("llama_tied", num_hidden_layers=1).shapes.keys()


def test_a_mirror_that_was_divided_before_is_left_out(folder: Path) -> None:
    (folder / "mp_rank_00").mkdir()
    (folder / "mp_rank_00" / "model_optim_rng.pt").write_text("x")
    source = open_source(str(folder))
    assert source.notes == ("'mp_rank_00' is a copy that was divided before, and is left out",)
    assert not any("mp_rank" in name for name in source.beside)


def test_an_adapter_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text("{}")
    with pytest.raises(UsageError, match=r"an adapter, which is no model by itself.*merge"):
        open_source(str(tmp_path))


def test_a_folder_without_configuration_is_refused(folder: Path) -> None:
    (folder / "config.json").unlink()
    with pytest.raises(UsageError, match=r"holds no config\.json"):
        open_source(str(folder))


def test_tokens_that_the_embedding_has_no_row_for_are_refused(folder: Path) -> None:
    tokens = [{"id": 49, "content": "a"}, {"id": 50, "content": "b"}, {"id": 51, "content": "c"}]
    (folder / "tokenizer.json").write_text(json.dumps({"added_tokens": tokens}))
    with pytest.raises(HfbenchError, match=r"2 tokens from id 50 on, vocab_size is 50.*resize_token_embeddings"):
        open_source(str(folder))
    (folder / "tokenizer.json").write_text(json.dumps({"added_tokens": tokens[:1]}))
    assert open_source(str(folder)).config["vocab_size"] == 50


def fp8(folder: Path, codes: Any, scales: Any) -> TensorSet:
    """A weight of E4M3 codes with its scales, as DeepSeek stores them."""
    (folder / "codes").write_bytes(codes.tobytes())
    (folder / "scales").write_bytes(scales.astype("<f4").tobytes())
    specs = {
        "w": TensorSpec("w", "F8_E4M3", codes.shape),
        "w_scale_inv": TensorSpec("w_scale_inv", "F32", scales.shape),
    }
    files = {"w": folder / "codes", "w_scale_inv": folder / "scales"}
    return TensorSet(folder=folder, tensors={name: Stored(spec, files[name], 0) for name, spec in specs.items()})


BLOCKS = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [2, 3]}}


def test_fp8_is_multiplied_with_the_scale_of_its_block(tmp_path: Path) -> None:
    # 0x38 is 1.0, 0x40 is 2.0, 0xB8 is -1.0, 0x01 is 2**-9, 0x7E is 448
    codes = numpy.array([[0x38, 0x40, 0xB8, 0x38], [0x01, 0x7E, 0x00, 0x40], [0x38, 0x38, 0x38, 0x40]], dtype="u1")
    scales = numpy.array([[0.5, 2.0], [3.0, 1.5]])
    tensors, notes = decode_fp8(fp8(tmp_path, codes, scales), BLOCKS)
    assert notes == ("1 fp8 weight decoded to bf16 by blocks of 2 x 3",)
    decoded = tensors.tensors["w"]
    assert tensors.tensors.keys() == {"w"}
    assert decoded.spec == TensorSpec("w", "BF16", (3, 4))
    expected = numpy.array([[0.5, 1, -0.5, 2], [2**-10, 224, 0, 4], [3, 3, 3, 3]])

    def values(box: Box) -> Any:
        bits = numpy.frombuffer(decoded.read(box), "<u2").astype("<u4") << 16
        return bits.view("<f4").reshape(box.height, box.width)

    assert numpy.array_equal(values(Box(0, 3, 0, 4)), expected)
    assert numpy.array_equal(values(Box(1, 3, 2, 4)), expected[1:, 2:])


def test_scales_that_are_no_numbers_are_refused_unless_they_are_allowed(tmp_path: Path) -> None:
    scales = numpy.array([[numpy.nan, 2.0], [numpy.inf, numpy.nan]])
    tensors, _ = decode_fp8(fp8(tmp_path, numpy.full((3, 4), 0x38, "u1"), scales), BLOCKS)
    box = Box(0, 3, 0, 4)
    target = Target(TensorSpec("w", "BF16", (3, 4)), "", (Copy("w", box, "w", box),), "copy")
    found = prescan([target], tensors, Run())
    assert [(each.kind, each.values) for each in found] == [("nan", 2), ("inf", 1)]
    told = r"decode: 2 values of 1 tensor are NaN: 'w_scale_inv' \(2\), beside inf\. Fetch the model again, or allow it"
    with pytest.raises(HfbenchError, match=told):
        refuse(found, ())
    with pytest.raises(HfbenchError, match="are infinities"):
        refuse(found, ("nan",))
    refuse(found, ("nan", "inf"))


def test_blocks_larger_than_any_weight_are_one_block(tmp_path: Path) -> None:
    codes = numpy.full((3, 4), 0x38, dtype="u1")
    huge = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [10**30, 10**30]}}
    tensors, _ = decode_fp8(fp8(tmp_path, codes, numpy.full((1, 1), 2.0)), huge)
    assert tensors.tensors["w"].read(Box(0, 1, 0, 1)) == b"\x00\x40"  # 2.0


def test_scales_that_do_not_fit_their_weight_are_refused(tmp_path: Path) -> None:
    codes = numpy.zeros((3, 4), dtype="u1")
    with pytest.raises(HfbenchError, match=r"is F32 \[1, 2\], its weight asks for F32 \[2, 2\]"):
        decode_fp8(fp8(tmp_path, codes, numpy.ones((1, 2))), BLOCKS)


def test_gguf_rows_are_put_back_in_order_whatever_box_is_read(tiny_gguf: Any) -> None:
    """The same bytes as `convert_gguf` writes for the whole tensor."""
    from hfbench.convert.gguf import unpermuted_rows

    source = open_source(str(tiny_gguf.write()))
    assert source.config["model_type"] == "llama"
    assert {"tokenizer.json", "config.json"} <= set(source.beside)
    tensor = source.tensors.tensors["model.layers.0.self_attn.q_proj.weight"]
    whole = numpy.frombuffer(tensor.read(Box(0, 64, 0, 64)), "<u2").reshape(64, 64)
    stored = numpy.asarray(tiny_gguf.weights["blk.0.attn_q.weight"], dtype="<f4")
    again = (whole.astype("<u4") << 16).view("<f4")
    assert numpy.allclose(again, stored[unpermuted_rows(64, 4)], rtol=2**-8)
    part = numpy.frombuffer(tensor.read(Box(8, 24, 32, 64)), "<u2").reshape(16, 32)
    assert numpy.array_equal(part, whole[8:24, 32:])
