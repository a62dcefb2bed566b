"""A model as the source of a conversion: its configuration, its tensors as floats, and what goes along."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfbench.convert.beside import carried_files
from hfbench.convert.formats.open import open_tensors
from hfbench.convert.fp8_source import decode_fp8
from hfbench.convert.stored import TensorSet
from hfbench.errors import HfbenchError, UsageError
from hfbench.models.config import CONFIG
from hfbench.models.files import MEGATRON_TRACKER, list_files
from hfbench.models.json_text import read_object
from hfbench.models.problem import counted, listed
from hfbench.models.reference import resolve
from hfbench.paths import expand

ADAPTER = "adapter_config.json"
MOST_TOKENIZER = 64 << 20
"""Bytes of a tokenizer.json that is looked into; the largest have some 35 MB."""


@dataclass(frozen=True, kw_only=True)
class ModelSource:
    """What a conversion starts from. `beside` are small files by name, as they lie in the folder."""

    folder: Path
    config: Mapping[str, Any]
    tensors: TensorSet
    beside: Mapping[str, Path | bytes]
    notes: tuple[str, ...] = ()


def open_source(model: str, *, cache_dir: Path | None = None) -> ModelSource:
    """Open a folder, a repository in the cache or a GGUF file. No weight is read and nothing is executed.

    UsageError for what is no model by itself, such as an adapter; errors as of `open_tensors`.
    """
    path = expand(model.strip())
    if path.suffix == ".gguf" and path.is_file():
        return _gguf(path)
    location = resolve(model, cache_dir=cache_dir)
    folder = location.folder
    there = {each.name for each in list_files(folder, deep=False)}
    if MEGATRON_TRACKER in there and CONFIG not in there:
        remedy = "hfbench convert hf makes a Hugging Face folder of it, and that can be laid out anew"
        raise UsageError("is a Megatron checkpoint already", where=folder, remedy=remedy)
    if ADAPTER in there and CONFIG not in there:
        remedy = "merge it into its model first, with merge_and_unload of peft"
        raise UsageError("is an adapter, which is no model by itself", where=folder, remedy=remedy)
    config = _config(folder)
    tensors, notes = decode_fp8(open_tensors(folder / location.only if location.only else folder), config)
    mirrors = [each.name for each in folder.iterdir() if each.name.startswith("mp_rank_")]
    if mirrors:
        notes = (*notes, f"{listed(sorted(mirrors), 1)} is a copy that was divided before, and is left out")
    _refuse_added_tokens(folder, config)
    return ModelSource(folder=folder, config=config, tensors=tensors, beside=carried_files(folder), notes=notes)


def _config(folder: Path) -> Mapping[str, Any]:
    if not (folder / CONFIG).exists():
        remedy = "give a folder that holds a model of Hugging Face"
        raise UsageError(f"holds no {CONFIG}", where=folder, remedy=remedy)
    return read_object(folder / CONFIG, folder).value


def _gguf(path: Path) -> ModelSource:
    from hfbench.convert.gguf_source import open_gguf

    config, tensors, small = open_gguf(path)
    return ModelSource(
        folder=path.parent,
        config=config,
        tensors=tensors,
        beside=dict(small),
        notes=("dequantized from GGUF to bf16",),
    )


def _refuse_added_tokens(folder: Path, config: Mapping[str, Any]) -> None:
    """HfbenchError when the tokenizer has ids that the embedding has no row for."""
    vocab = config.get("vocab_size")
    file = folder / "tokenizer.json"
    if type(vocab) is not int or not file.is_file() or file.stat().st_size > MOST_TOKENIZER:
        return
    try:
        added = json.loads(file.read_bytes()).get("added_tokens", [])
        ids = [each["id"] for each in added if type(each["id"]) is int]
    except (ValueError, AttributeError, TypeError, KeyError, OSError, RecursionError):
        return  # what is wrong with a tokenizer is told by `check`, and concerns no weight
    if beyond := [each for each in ids if each >= vocab]:
        told = f"the tokenizer has {counted(len(beyond), 'token')} from id {min(beyond)} on, vocab_size is {vocab}"
        remedy = "resize the embedding with resize_token_embeddings of transformers and save the model"
        raise HfbenchError(told, where=file, remedy=remedy)
