"""A GGUF file of the llama family as a source: Hugging Face names, dequantized to bf16 while it is read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfbench.convert.boxes import Box, TensorSpec
from hfbench.convert.gguf import rows_of, to_bf16, unpermuted_rows
from hfbench.convert.gguf_file import GgufFile, read_gguf
from hfbench.convert.gguf_llama import Placement, config_of, placements, sizes_of
from hfbench.convert.gguf_tokenizer import special_tokens, tokenizer_config, tokenizer_of
from hfbench.convert.stored import TensorSet
from hfbench.errors import HfbenchError
from hfbench.models.remote_mark import refuse_headers_only
from hfbench.models.values.decode import load_numpy


@dataclass(frozen=True)
class Dequantized:
    """One tensor of the file; rows that llama.cpp reordered for its rotary embedding are put back."""

    file: GgufFile
    placement: Placement

    @property
    def spec(self) -> TensorSpec:
        """Name and shape of Hugging Face, in bf16."""
        return TensorSpec(self.placement.target, "BF16", self.placement.source.shape)

    @property
    def files(self) -> tuple[Path, ...]:
        """The GGUF file."""
        return (self.file.path,)

    def read(self, box: Box) -> bytes:
        """Whole rows are dequantized, as quantization blocks lie along them; what the box has of them is given."""
        from gguf import GGMLQuantizationType, dequantize

        np = load_numpy()
        tensor = self.placement.source
        rows, row_bytes = rows_of(self.file, tensor)
        raw = np.memmap(self.file.path, dtype=np.uint8, mode="r", offset=tensor.begin, shape=(rows, row_bytes))
        vector = len(tensor.shape) == 1
        if vector:
            block = raw
        elif self.placement.heads:
            block = raw[unpermuted_rows(rows, self.placement.heads)[box.row : box.row_end]]
        else:
            block = raw[box.row : box.row_end]
        try:
            values = dequantize(block, GGMLQuantizationType(tensor.type))
        except (NotImplementedError, ValueError) as error:
            told = f"{tensor.name}: the gguf package cannot read it: {error}"
            raise HfbenchError(told, where=self.file.path) from error
        columns = slice(box.row, box.row_end) if vector else slice(box.column, box.column_end)
        return to_bf16(values[..., columns])


def open_gguf(path: Path) -> tuple[dict[str, Any], TensorSet, dict[str, bytes]]:
    """The configuration in Hugging Face's terms, the tensors, and the small files; errors as of `convert_gguf`."""
    refuse_headers_only(path.parent, "converting")
    file = read_gguf(path)
    sizes = sizes_of(file)
    config = config_of(file, sizes)
    tensors: Mapping[str, Dequantized] = {each.target: Dequantized(file, each) for each in placements(file, sizes)}
    written = {
        "config.json": config,
        "tokenizer_config.json": tokenizer_config(file, config["max_position_embeddings"]),
        "special_tokens_map.json": special_tokens(file),
    }
    small = {name: json.dumps(data, indent=2, ensure_ascii=False).encode() + b"\n" for name, data in written.items()}
    small["tokenizer.json"] = tokenizer_of(file).to_str(pretty=True).encode()
    return config, TensorSet(folder=path.parent, tensors=tensors), small
