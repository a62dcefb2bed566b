"""The index of weights that are pickles: transformers goes by it as it does by the one of safetensors."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

from hfbench.models.index import BadIndex, missing_shards, read_index
from hfbench.models.problem import Problem

PICKLE_INDEX = "pytorch_model.bin.index.json"


def pickle_index_problems(folder: Path, present: Container[str]) -> list[Problem]:
    """What is wrong with the index itself, and every file it names that is not there."""
    if PICKLE_INDEX not in present or "model.safetensors" in present or "model.safetensors.index.json" in present:
        return []
    try:
        index = read_index(folder, PICKLE_INDEX)
        there = [shard for shard in index.shards if shard in present]
        return [*index.problems, *missing_shards(index, there, None)]
    except BadIndex as error:
        return [error.problem(where=PICKLE_INDEX)]
