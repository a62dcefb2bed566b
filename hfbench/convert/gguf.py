"""A GGUF file turned into a Hugging Face folder: configuration, tokenizer and bf16 safetensors."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hfbench.convert.gguf_file import GgufError, GgufFile, GgufTensor, read_gguf
from hfbench.convert.gguf_llama import Placement, config_of, placements, sizes_of
from hfbench.convert.gguf_tokenizer import special_tokens, tokenizer_config, tokenizer_of
from hfbench.convert.safetensors_writer import Entry, SafetensorsWriter
from hfbench.errors import HfbenchError

if TYPE_CHECKING:
    import numpy as np

    from hfbench.jobs.run import Run

BLOCK_VALUES = 1 << 22
"""Values dequantized at a time: 16 MiB of float32, whatever the size of a tensor."""


@dataclass(frozen=True, kw_only=True)
class Converted:
    """What a conversion wrote: tensors, and bytes of weights."""

    tensors: int
    bytes: int


def convert_gguf(source: Path, folder: Path, run: Run) -> Converted:
    """Write the model of a GGUF file of the llama family into an existing empty folder, in bounded memory.

    Quantized weights are dequantized by the gguf package and rounded to bf16. HfbenchError when the file is damaged,
    of another family, or holds a tensor that has no place.
    """
    file = read_gguf(source)
    sizes = sizes_of(file)
    plan = placements(file, sizes)
    config = config_of(file, sizes)
    _write_json(folder / "config.json", config)
    _write_json(folder / "generation_config.json", _generation(config))
    _write_tokenizer(file, folder, config["max_position_embeddings"])
    return _write_weights(file, plan, folder / "model.safetensors", run)


def unpermuted_rows(rows: int, heads: int) -> np.ndarray:
    """Row numbers that undo llama.cpp's order of query and key rows.

    llama.cpp rotates neighbours (0,1), (2,3); transformers rotates halves (0, d/2). For one head of four rows
    its file holds rows 0 2 1 3 of the original, so [0, 2, 1, 3] brings them back.
    """
    import numpy

    return numpy.arange(rows).reshape(heads, rows // heads // 2, 2).swapaxes(1, 2).reshape(-1)


def to_bf16(values: np.ndarray) -> bytes:
    """float32 values as little-endian bf16, rounded to nearest even; NaN stays NaN."""
    import numpy

    bits = numpy.ascontiguousarray(values, dtype="<f4").view("<u4")
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    quiet = (bits >> 16) | 0x40
    return bytes(numpy.where(numpy.isnan(values), quiet, rounded).astype("<u2").tobytes())


def _generation(config: dict[str, Any]) -> dict[str, Any]:
    return {key: config[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id") if key in config}


def _write_tokenizer(file: GgufFile, folder: Path, context: int) -> None:
    tokenizer_of(file).save(str(folder / "tokenizer.json"))
    _write_json(folder / "tokenizer_config.json", tokenizer_config(file, context))
    _write_json(folder / "special_tokens_map.json", special_tokens(file))


def _write_weights(file: GgufFile, plan: list[Placement], path: Path, run: Run) -> Converted:
    entries = [Entry(each.target, "BF16", each.source.shape) for each in plan]
    total, done = sum(entry.bytes for entry in entries), 0
    with path.open("wb") as target:
        writer = SafetensorsWriter(target, entries)
        for each in plan:
            done += writer.write(each.target, _blocks(file, each))
            run.progress("convert", done, total, "B")
        writer.finish()
    return Converted(tensors=len(plan), bytes=done)


def _blocks(file: GgufFile, placement: Placement) -> Iterator[bytes]:
    """The tensor as bf16, a block of rows at a time; quantization blocks lie along a row and stay whole."""
    import numpy
    from gguf import GGMLQuantizationType, dequantize

    tensor = placement.source
    rows, row_bytes = rows_of(file, tensor)
    raw = numpy.memmap(file.path, dtype=numpy.uint8, mode="r", offset=tensor.begin, shape=(rows, row_bytes))
    order = unpermuted_rows(rows, placement.heads) if placement.heads else None
    step = max(1, BLOCK_VALUES // tensor.shape[-1])
    for begin in range(0, rows, step):
        block = raw[begin : begin + step] if order is None else raw[order[begin : begin + step]]
        try:
            yield to_bf16(dequantize(block, GGMLQuantizationType(tensor.type)))
        except (NotImplementedError, ValueError) as error:
            raise HfbenchError(f"{tensor.name}: the gguf package cannot read it: {error}", where=file.path) from error


def rows_of(file: GgufFile, tensor: GgufTensor) -> tuple[int, int]:
    """Rows of a tensor and bytes of one; GgufError when they do not fit its type or the file."""
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    try:
        values, size = GGML_QUANT_SIZES[GGMLQuantizationType(tensor.type)]
    except (ValueError, KeyError) as error:
        told = f"tensor {tensor.name!r} has the unknown type {tensor.type}"
        raise HfbenchError(told, where=file.path, remedy="upgrade the gguf package") from error
    if tensor.shape[-1] % values:
        told = f"rows of {tensor.shape[-1]} values do not divide into blocks of {values}"
        raise GgufError(f"tensor {tensor.name!r}: {told}", where=file.path, at=tensor.begin)
    rows, row_bytes = math.prod(tensor.shape[:-1]), tensor.shape[-1] // values * size
    if tensor.begin + rows * row_bytes > file.size:
        missing = tensor.begin + rows * row_bytes - file.size
        raise GgufError(f"tensor {tensor.name!r} lacks {missing} bytes", where=file.path, at=file.size)
    return rows, row_bytes


def _write_json(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
