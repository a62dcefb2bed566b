"""What the rules judge: one model or one file of weights, each part read when the first rule asks for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from hfbench.checks.known import known_type, of_type
from hfbench.checks.pickle_index import pickle_index_problems
from hfbench.checks.pickle_ops import Walk
from hfbench.checks.pickle_scan import PickleScan, scan_file
from hfbench.checks.remote_code import MAPPING_FILES, auto_map
from hfbench.checks.side_files import side_problems
from hfbench.checks.tensor_names import Layers, Places, places
from hfbench.models.checkpoint import Checkpoint, Gathering, read_weights
from hfbench.models.config import CONFIG, ModelConfig, read_config
from hfbench.models.context import TEXT_PARTS
from hfbench.models.facts import TokenizerFacts
from hfbench.models.files import ModelFile, describe_file, list_files, open_regular
from hfbench.models.json_text import JsonError, JsonObject, parse_small, read_object
from hfbench.models.magic import LOOK, is_lfs_pointer
from hfbench.models.problem import ModelError, Problem
from hfbench.models.reference import Location
from hfbench.models.tensor_fit import Fit, fit_of
from hfbench.models.tokenizer import read_tokenizer
from hfbench.models.values.facts import ValueScan
from hfbench.models.values.scan import scan_values
from hfbench.models.vocabulary import parse_tokenizer_json
from hfbench.models.weights import WeightSet, choose_weights
from hfbench.text import printable
from hfbench.tokens.render import Attempt, render
from hfbench.tokens.templates_text import MORE, Template, template_texts

PICKLE_SUFFIXES = (".bin", ".pt", ".pth", ".th", ".ckpt", ".pk", ".pkl", ".pickle", ".dill", ".joblib", ".npy")

WRITERS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
"""Ends of the names of classes that generate text."""

NO_CONFIG = ModelConfig(source=None, raw={}, problems=())


@dataclass(frozen=True, slots=True)
class Options:
    """How the model is meant to be loaded, as far as the caller says."""

    dtype: str | None = None
    quantization: str | None = None
    values: bool = False
    """Whether every value of the weights is read, too."""


@dataclass(frozen=True, slots=True)
class Section:
    """One object of config.json that describes a language model: its path with a dot at the end, and its values."""

    path: str
    values: Mapping[str, Any]

    @property
    def model_type(self) -> str | None:
        """The model type of this object itself."""
        value = self.values.get("model_type")
        return value if isinstance(value, str) else None


class Subject:
    """The files of a model folder, or one file of weights when `only` names it. Nothing here raises for content."""

    def __init__(self, location: Location, *, only: str = "", options: Options | None = None) -> None:
        self.location, self.folder, self.only = location, location.folder, only
        self.options = options or Options()
        self.trouble: Problem | None = None
        """What is wrong with the reference itself; an error leaves nothing else to judge."""
        self._read: dict[str, dict[str, Any]] = {}
        self.watch: Callable[[int, int], None] = lambda done, total: None
        """Told the bytes of values that are read and their total, while they are."""

    @cached_property
    def files(self) -> tuple[ModelFile, ...]:
        """All entries below the folder, or the one file."""
        if self.only:
            return (describe_file(self.folder / self.only, self.folder),)
        return tuple(list_files(self.folder))

    @cached_property
    def by_name(self) -> dict[str, ModelFile]:
        """The entries by their name relative to the folder."""
        return {each.name: each for each in self.files}

    @cached_property
    def config(self) -> ModelConfig:
        """The configuration as the models room reads it."""
        return NO_CONFIG if self.only else read_config(self.folder)

    @property
    def raw(self) -> dict[str, Any]:
        """The object in config.json; empty when there is none, or only Mistral's params.json."""
        return self.config.raw if self.config.source == CONFIG else {}

    @property
    def configured(self) -> bool:
        """True when config.json is an object, be it an empty one."""
        return self.config.source == CONFIG and (bool(self.config.raw) or not self.config.problems)

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """The root of config.json and the parts of it that describe the language model, the innermost last."""
        return tuple(_sections("", self.raw, depth=2))

    @property
    def text(self) -> Section:
        """The innermost object that counts layers, else the root: where the language model is described."""
        names = ("num_hidden_layers", "n_layer", "num_layers", "hidden_size")
        telling = [each for each in self.sections if any(name in each.values for name in names)]
        return telling[-1] if telling else Section("", self.raw)

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """The headers of all weights."""
        gathering = Gathering(self.folder, self.weights)
        for read in read_weights(self.folder, self.weights):
            gathering.add(read)
        return gathering.checkpoint()

    @cached_property
    def values(self) -> ValueScan | None:
        """The figures of all tensors, if the options ask for them. MissingError without numpy."""
        return scan_values(self.checkpoint, self.watch) if self.options.values else None

    @cached_property
    def weights(self) -> WeightSet:
        """The set of weight files that is judged."""
        if not self.only:
            return choose_weights(self.folder, self.files)
        shards = self.files if self.only.endswith(".safetensors") else ()
        return WeightSet("safetensors" if shards else "other", shards, None, ())

    @property
    def headers_only(self) -> bool:
        """True when weights were left on a hub: of their values nothing can be said."""
        return any(shard.held != "whole" for shard in self.weights.shards)

    @property
    def complete(self) -> bool:
        """True when every tensor of the model was seen: only then may a rule say that one is missing."""
        checkpoint = self.checkpoint
        known = checkpoint.format in ("safetensors", "safetensors-sharded")
        return known and bool(len(checkpoint.columns)) and not any(p.severity == "error" for p in checkpoint.problems)

    @cached_property
    def places(self) -> Places:
        """Where the language model is among the tensors."""
        return places(self.checkpoint.columns)

    @property
    def tensor_names(self) -> list[str]:
        """The names of all tensors, in the order of the files."""
        return self.checkpoint.columns.names

    @cached_property
    def tokenizer(self) -> TokenizerFacts:
        """The tokenizer's facts."""
        return TokenizerFacts(special_tokens={}) if self.only else read_tokenizer(self.folder)

    @property
    def has_tokenizer(self) -> bool:
        """True when a file holds a vocabulary, readable or not."""
        beside = {"tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja", "chat_template.json"}
        return bool(set(self.tokenizer.files) - beside)

    @cached_property
    def tokenizer_json(self) -> dict[str, Any]:
        """The object in tokenizer.json without its merges, empty when there is none."""
        return self.json("tokenizer.json", parse_tokenizer_json)

    @cached_property
    def tokenizer_config(self) -> dict[str, Any]:
        """The object in tokenizer_config.json, empty when there is none."""
        return self.json("tokenizer_config.json")

    @cached_property
    def generation_config(self) -> dict[str, Any]:
        """The object in generation_config.json, empty when there is none."""
        return self.json("generation_config.json")

    @cached_property
    def templates(self) -> tuple[Template, ...]:
        """The texts of all chat templates."""
        return template_texts(self.folder, self.tokenizer_config, self.json)

    @cached_property
    def attempts(self) -> tuple[Attempt, ...]:
        """What became of the templates when a process of its own rendered them."""
        tokens = {role: token.content for role, token in self.tokenizer.special_tokens.items()}
        return tuple(render(self.templates, tokens)) if self.templates else ()

    @cached_property
    def pickles(self) -> tuple[tuple[ModelFile, PickleScan], ...]:
        """The files of torch and bare pickles, and what they would import."""
        return tuple(self._scanned())

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """Everything found wrong while reading, each once."""
        if self.trouble is not None and self.trouble.severity == "error":
            return (self.trouble,)
        told = [self.trouble] if self.trouble else []
        told += [*self.config.problems, *self.checkpoint.problems, *self.tokenizer.problems]
        if not self.only:
            read = {problem.where for problem in self.tokenizer.problems}
            told += side_problems(self.folder, [name for name in self.by_name if name not in read])
            told += pickle_index_problems(self.folder, self.by_name)
        known = {problem.where for problem in told if problem.severity == "error"}
        told += [_of_entry(each) for each in self.files if each.problem and printable(each.name) not in known]
        return tuple(dict.fromkeys(told))

    @property
    def remote_code(self) -> dict[str, list[str]]:
        """The classes of auto_map by their role, from all files that may hold one."""
        found = auto_map(self.raw)
        for name in MAPPING_FILES:
            found.update(auto_map(self.json(name)))
        return found

    def told_in(self, role: str) -> str:
        """The file beside config.json whose auto_map has the role."""
        return next((name for name in MAPPING_FILES if role in auto_map(self.json(name))), "config.json")

    @cached_property
    def custom(self) -> bool:
        """True when the configuration class comes from the repository: library rules do not bind it.

        A library that knows the model type takes its own class, whatever auto_map names.
        """
        return "AutoConfig" in auto_map(self.raw) and not known_type(self.config.model_type)

    @cached_property
    def fit(self) -> Fit | None:
        """The tensors against the laws of the family; None where these are not known or another class is named."""
        classes = self.config.architectures
        if self.raw.get("is_encoder_decoder") or (classes and not of_type(classes[0], self.config.model_type)):
            return None
        return fit_of(self.raw, self.text.values, self.checkpoint.columns)

    @cached_property
    def layers(self) -> Layers | None:
        """The layers of the language model, None when there are none or it is not certain which they are."""
        fit = self.fit
        if fit is None or not fit.laws.counted or not fit.numbers:
            return self.places.layers
        return Layers(f"{fit.root}{fit.laws.layers}".rstrip("."), fit.numbers)

    @property
    def writes_text(self) -> bool:
        """True when the class that the configuration names generates text."""
        return any(each.endswith(WRITERS) for each in self.config.architectures)

    def has(self, name: str) -> bool:
        """True when the folder holds an entry of that name; never for a name that leads out of it."""
        path = PurePosixPath(name)
        return not path.is_absolute() and ".." not in path.parts and os.path.lexists(self.folder / name)

    def json(self, name: str, parse: Callable[[bytes], JsonObject] = parse_small) -> dict[str, Any]:
        """The object in a JSON file of the folder, read once; empty when it is absent or broken."""
        if name not in self._read:
            self._read[name] = {}
            if not self.only and self.has(name):
                try:
                    self._read[name] = read_object(self.folder / name, self.folder, parse=parse).value
                except JsonError:
                    pass  # another rule tells
        return self._read[name]

    def _scanned(self) -> Iterator[tuple[ModelFile, PickleScan]]:
        walk = Walk()
        for each in self.files:
            if not each.problem and each.held == "whole" and each.name.lower().endswith(PICKLE_SUFFIXES):
                try:
                    with open_regular(each.path, self.folder) as file:
                        if is_lfs_pointer(file.read(LOOK)):
                            continue
                        file.seek(0)
                        walk = Walk(opcodes=walk.opcodes, since=walk.since)
                        yield each, scan_file(file, each.bytes, walk)
                except (ModelError, OSError) as error:
                    yield each, PickleScan("unknown", broken=f"cannot be read ({error})")


def subject_of(folder: Path, *, only: str = "", options: Options | None = None) -> Subject:
    """The subject of a local folder."""
    return Subject(Location(str(folder), folder, "local"), only=only, options=options)


def _of_entry(file: ModelFile) -> Problem:
    """The fault of an entry, the milder the less it has to do with loading the model."""
    problem = file.as_problem()
    if file.kind == "other":
        return replace(problem, severity="info")
    beside = file.kind == "code" or ("/" in file.name and not file.name.startswith(f"{MORE}/"))
    return replace(problem, severity="warning") if beside else problem


def _sections(path: str, values: Mapping[str, Any], depth: int) -> list[Section]:
    found = [Section(path, values)]
    for part in TEXT_PARTS:
        nested = values.get(part)
        if isinstance(nested, dict) and depth:
            found += _sections(f"{path}{part}.", nested, depth - 1)
    return found


__all__ = ["NO_CONFIG", "Options", "Section", "Subject", "subject_of"]
