"""Opens one side of a comparison: its weights, and the folder with its other files unless it is a single file."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hfbench.models.checkpoint import Checkpoint, Gathering, read_weights
from hfbench.models.config import ModelConfig, read_config
from hfbench.models.diff.files import Side
from hfbench.models.files import WEIGHT_SUFFIXES, describe_file
from hfbench.models.index import BadIndex
from hfbench.models.problem import ModelError, Problem, listed
from hfbench.models.reference import resolve
from hfbench.models.weights import WeightSet, choose_weights
from hfbench.paths import expand

NO_TROUBLE = frozenset({"weights_missing", "adapter_not_model"})
"""Faults of a model to load that keep nobody from comparing it."""

PICKLES = (".bin", ".pt", ".pth", ".ckpt")
INDEX = ".safetensors.index.json"


@dataclass(frozen=True, slots=True)
class Subject:
    """One side. `unread` are the tensors its unread files are said to hold; None when nobody knows which."""

    checkpoint: Checkpoint
    folder: Path | None
    config: ModelConfig | None
    problems: tuple[Problem, ...]
    notes: tuple[Problem, ...]
    unread: frozenset[str] | None

    @property
    def quantization(self) -> dict[str, Any]:
        """What the configuration says of how weights are quantised."""
        told = self.config.raw.get("quantization_config") if self.config else None
        return told if isinstance(told, dict) else {}


def open_side(side: Side, text: str, cache_dir: Path | None) -> Subject:
    """One side of a comparison; HfbenchError when there is no such model. Faults of its files are problems."""
    path = expand(text.strip())
    there = os.path.exists(path) and not os.path.isdir(path)  # unlike Path's own, False for every impossible name
    if there and path.name.endswith(INDEX):
        path, there, text = path.parent, False, str(path.absolute().parent)
    single = there and path.name.endswith(WEIGHT_SUFFIXES)
    if single:
        folder = path.absolute().parent
        weights = _one_file(folder / path.name, folder)
    else:
        folder = resolve(text, cache_dir=cache_dir).folder
        weights = choose_weights(folder)
    gathering = Gathering(folder, weights)
    for read in read_weights(folder, weights):
        gathering.add(read)
    checkpoint = gathering.checkpoint()
    problems = [each for each in checkpoint.problems if each.severity == "error" and each.code not in NO_TROUBLE]
    problems += _unopened(weights)
    return Subject(
        checkpoint=checkpoint,
        folder=None if single else folder,
        config=None if single else read_config(folder),
        problems=tuple(_sided(side, each) for each in problems),
        notes=tuple(_sided(side, each) for each in checkpoint.problems if each.code in NO_TROUBLE),
        unread=_unread(weights, checkpoint, problems),
    )


def _one_file(path: Path, folder: Path) -> WeightSet:
    file = describe_file(path, folder)
    if path.name.endswith(".safetensors"):
        return WeightSet("safetensors", (file,), None, ())
    return WeightSet("other", (), None, (), (file,))


def _unopened(weights: WeightSet) -> list[Problem]:
    """What is said of weights in formats that are not read."""
    if weights.shards or not weights.unopened:
        return []
    names = [each.name for each in weights.unopened]
    if any(name.endswith(PICKLES) for name in names):
        found = f"pickled weights, which are never unpickled here: {listed(names)}"
        remedy = "convert them to safetensors on a machine that may run what they hold"
    elif any(name.endswith(".gguf") for name in names):
        found = f"GGUF weights, whose tensors have other names and packed values: {listed(names)}"
        remedy = "compare the safetensors they were made from"
    else:
        found, remedy = f"weights that are not opened: {listed(names)}", "convert them to safetensors"
    return [Problem(severity="error", where="", found=found, remedy=remedy, code="weights_unopened")]


def _unread(weights: WeightSet, checkpoint: Checkpoint, problems: list[Problem]) -> frozenset[str] | None:
    """Names that the index gives to files which were not read; nothing when all were."""
    read = {shard.name for shard in checkpoint.shards}
    missing = {shard.name for shard in weights.shards} - read
    if not missing and not any(each.code in ("weights_unopened", "shard_missing") for each in problems):
        return frozenset()
    if weights.index is None:
        return None
    try:
        return frozenset(name for name, shard in weights.index.weight_map().items() if shard in missing)
    except (BadIndex, ModelError):
        return None


def _sided(side: Side, problem: Problem) -> Problem:
    return replace(problem, where=f"{side}: {problem.where}" if problem.where else side)
