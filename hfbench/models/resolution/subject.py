"""Everything of a model folder that the steps look at, read once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from hfbench.models.checkpoint import Checkpoint, open_checkpoint
from hfbench.models.config import CONFIG, MISTRAL_CONFIG
from hfbench.models.context import TEXT_PARTS
from hfbench.models.files import ModelFile, list_files
from hfbench.models.json_text import JsonError, cut_depth, read_object
from hfbench.models.reference import Location
from hfbench.models.resolution.remote_code import Modules

CONSOLIDATED = "consolidated*.safetensors"
READ = (CONFIG, MISTRAL_CONFIG, "tokenizer_config.json", "preprocessor_config.json", "processor_config.json")
"""The configurations that the steps look into."""

REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9_][\w.-]{0,95}")
"""`organisation/name`, as the Hub spells a repository."""


@dataclass(frozen=True)
class Subject:
    """A folder, its files and its configurations. What cannot be read stands in `faults` by file name."""

    location: Location
    offline: bool
    files: tuple[ModelFile, ...]
    config: Mapping[str, Any] | None
    params: Mapping[str, Any] | None
    tokenizer_config: Mapping[str, Any]
    processor_config: Mapping[str, Any] = field(default_factory=dict)
    """preprocessor_config.json and processor_config.json in one: only their auto_map is of interest."""
    faults: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The folder that is looked at."""
        return self.location.folder

    @property
    def shadows(self) -> bool:
        """True when the folder was found under a name that a Hub repository may have."""
        return self.location.source == "local" and bool(REPOSITORY.fullmatch(self.location.given))

    @cached_property
    def by_name(self) -> dict[str, ModelFile]:
        """Entries by their name relative to the folder."""
        return {each.name: each for each in self.files}

    @cached_property
    def modules(self) -> Modules:
        """The Python files of the folder, for whoever asks what would run."""
        return Modules(self.by_name, self.folder)

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """The headers of the weights, read when the first step asks for them."""
        return open_checkpoint(self.folder, self.files)

    @cached_property
    def weights(self) -> list[str]:
        """Names of all entries that look like weights, subfolders included."""
        return [each.name for each in self.files if each.kind == "weights"]

    @property
    def config_only(self) -> bool:
        """True when the folder holds no weights at all, not even the index of some."""
        return not self.weights

    def consolidated(self) -> list[str]:
        """Files that make vLLM think of Mistral's format: matched by name in any subfolder."""
        if self.location.source == "cache" and self.offline:
            return []  # vLLM lists the files of a repository on the Hub, and gets none when it is offline
        return [each.name for each in self.files if fnmatchcase(each.name.rpartition("/")[2], CONSOLIDATED)]

    def sections(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The root of the configuration and its language parts, each with the prefix of its keys."""
        if self.config is None:
            return
        yield "", self.config
        pending: list[tuple[str, Mapping[str, Any], int]] = [("", self.config, 2)]
        while pending:
            prefix, section, depth = pending.pop(0)
            for part in TEXT_PARTS:
                nested = section.get(part)
                if isinstance(nested, dict) and depth:
                    yield f"{prefix}{part}.", nested
                    pending.append((f"{prefix}{part}.", nested, depth - 1))


def read_subject(location: Location, *, offline: bool) -> Subject:
    """Read a folder. Never raises for what its files hold; HfbenchError when it cannot be listed."""
    files = tuple(list_files(location.folder))
    faults = {each.name: f"{each.name}: {each.problem}" for each in files if each.name in READ and each.problem}
    return Subject(
        location=location,
        offline=offline,
        files=files,
        config=_object(location.folder, CONFIG, faults),
        params=_object(location.folder, MISTRAL_CONFIG, faults),
        tokenizer_config=_object(location.folder, "tokenizer_config.json", faults) or {},
        processor_config={
            **(_object(location.folder, "preprocessor_config.json", faults) or {}),
            **(_object(location.folder, "processor_config.json", faults) or {}),
        },
        faults=faults,
    )


def _object(folder: Path, name: str, faults: dict[str, str]) -> dict[str, Any] | None:
    path = folder / name
    if not os.path.lexists(path):
        return None  # or in a folder that may be listed and not entered: the listing says so
    if os.path.isdir(path):
        faults[name] = f"{name} is a folder, which counts as absent"
        return None
    try:
        value = read_object(path, folder).value
    except JsonError as error:
        faults[name] = str(error.problem(where=name))
        return None
    cut_depth(value)
    return value
