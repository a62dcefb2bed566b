"""Chooses the one set of weight files of a folder, so that no weight is counted twice."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hfbench.models.files import ModelFile, describe_file, list_files
from hfbench.models.index import CONSOLIDATED_INDEX, SAFETENSORS_INDEX, BadIndex, Index, read_index
from hfbench.models.problem import Problem, Severity, listed

Format = Literal["safetensors", "safetensors-sharded", "consolidated", "adapter", "pytorch", "gguf", "other", "none"]

SINGLE = "model.safetensors"
ADAPTERS = ("adapter_model.safetensors", "adapter_model.bin")

_NUMBERED = re.compile(r"(.*)-(\d{5,6})-of-(\d{5,6})\.safetensors")


@dataclass(frozen=True, slots=True)
class WeightSet:
    """The files that make up the weights, in reading order, and what was noticed in choosing them."""

    format: Format
    shards: tuple[ModelFile, ...]
    index: Index | None
    problems: tuple[Problem, ...]
    unopened: tuple[ModelFile, ...] = ()
    """Weights in formats that are only named here."""


def choose_weights(folder: Path, files: Sequence[ModelFile] | None = None) -> WeightSet:
    """Index and shards, else model.safetensors, else shards without an index, else consolidated files.

    Never raises for what the folder holds: a broken index is a problem, and its shards are found by name.
    """
    root = [each for each in files if "/" not in each.name] if files is not None else list_files(folder, deep=False)
    return _Choice(folder, {each.name: each for each in root}).made()


def one_file(file: ModelFile) -> WeightSet:
    """The set of one file, whatever lies beside it; formats other than safetensors are only named."""
    if file.name.endswith(".safetensors"):
        return WeightSet("safetensors", (file,), None, ())
    return _Choice(file.path.parent, {file.name: file}).nothing_to_open()


class _Choice:
    def __init__(self, folder: Path, by_name: dict[str, ModelFile]) -> None:
        self.folder, self.by_name = folder, by_name
        self.problems: list[Problem] = []
        weights = [each for each in by_name.values() if each.kind == "weights"]
        self.safetensors = [each for each in weights if each.name.endswith(".safetensors")]
        self.others = tuple(each for each in weights if not each.name.endswith(".safetensors"))
        self.plain = [each for each in self.safetensors if not each.name.startswith(("consolidated", "adapter_"))]
        self.consolidated = [each for each in self.safetensors if each.name.startswith("consolidated")]

    def made(self) -> WeightSet:
        index = self.read_index(SAFETENSORS_INDEX)
        if index is not None:
            self.note_rivals()
            return self.chosen("safetensors-sharded", self.indexed(index), index)
        if SINGLE in self.by_name:
            strays = [each.name for each in self.plain if each.name != SINGLE]
            if strays:
                found = f"lies beside {listed(strays)}, which no index names; vLLM reads all of them"
                self.note("warning", SINGLE, found, "stray_weights")
            self.note_consolidated()
            return self.chosen("safetensors", [self.by_name[SINGLE]])
        if self.plain:
            self.note_consolidated()
            return self.without_index()
        if self.consolidated:
            index = self.read_index(CONSOLIDATED_INDEX)
            shards = self.indexed(index) if index else self.consolidated
            return self.chosen("consolidated", shards, index)
        return self.nothing_to_open()

    def read_index(self, name: str) -> Index | None:
        if name not in self.by_name:
            return None
        try:
            index = read_index(self.folder, name)
        except BadIndex as error:
            self.problems.append(error.problem(where=name))
            return None
        self.problems += index.problems
        return index if index.shards else None

    def indexed(self, index: Index) -> list[ModelFile]:
        return [self.by_name.get(shard) or describe_file(self.folder / shard, self.folder) for shard in index.shards]

    def note_rivals(self) -> None:
        if SINGLE in self.by_name:
            found = f"lies beside {SAFETENSORS_INDEX}: transformers takes the single file, vLLM the shards"
            self.note("warning", SINGLE, found, "two_weight_sets")
        self.note_consolidated()

    def note_consolidated(self) -> None:
        if self.consolidated:
            found = "a second set of weights in Mistral's format, which vLLM prefers"
            self.note("warning", self.consolidated[0].name, found, "consolidated_beside")

    def without_index(self) -> WeightSet:
        numbered = [match for each in self.plain if (match := _NUMBERED.fullmatch(each.name))]
        expected = [
            f"{stem}-{number:0{len(total)}}-of-{total}.safetensors"
            for stem, total in dict.fromkeys((match[1], match[3]) for match in numbered)
            for number in range(1, min(int(total), 10_000) + 1)
        ]
        for name in expected:
            if name not in self.by_name:
                self.note("error", name, "missing; the names of the other files count it", "shard_missing")
        if len(self.plain) > 1 or numbered:
            found = f"{len(self.plain)} files without {SAFETENSORS_INDEX}: vLLM reads them, transformers does not"
            self.note("warning", "", found, "index_missing")
            return self.chosen("safetensors-sharded", self.plain)
        found = f"transformers looks for {SINGLE} and will not find this file"
        self.note("info", self.plain[0].name, found, "odd_weight_name")
        return self.chosen("safetensors", self.plain)

    def nothing_to_open(self) -> WeightSet:
        for name in ADAPTERS:
            if adapter := self.by_name.get(name):
                self.note("error", name, "an adapter, not a model; its base model lies elsewhere", "adapter_not_model")
                return self.chosen("adapter", [adapter] if name.endswith(".safetensors") else [])
        if not self.others:
            self.note("error", "", "the folder holds no weights", "weights_missing")
            return self.chosen("none", [])
        suffixes = {each.name.rpartition(".")[2].lower() for each in self.others}
        kind: Format = "gguf" if suffixes == {"gguf"} else "pytorch" if suffixes & {"bin", "pt", "pth"} else "other"
        found = f"weights in another format than safetensors: {listed(each.name for each in self.others)}; not opened"
        self.note("warning" if kind == "pytorch" else "info", "", found, f"weights_{kind}")
        return self.chosen(kind, [])

    def chosen(self, kind: Format, shards: list[ModelFile], index: Index | None = None) -> WeightSet:
        return WeightSet(kind, tuple(shards), index, tuple(self.problems), self.others)

    def note(self, severity: Severity, where: str, found: str, code: str) -> None:
        self.problems.append(Problem(severity=severity, where=where, found=found, code=code))
