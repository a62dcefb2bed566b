"""What auto_map names, and which Python files its classes come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

MAPPING_FILES = ("tokenizer_config.json", "preprocessor_config.json", "processor_config.json")
"""Files beside config.json with an auto_map."""

MOST_ROLES = 100
"""Entries of one auto_map; real ones have a dozen."""


@dataclass(frozen=True, slots=True)
class CodeFile:
    """One module; `repo` is the other repository it comes from, empty for the model's own."""

    file: str
    repo: str = ""


def code_files(classes: Iterable[str]) -> list[CodeFile]:
    """The files that `module.Class` and `org/repo--module.Class` stand for, each once."""
    found = []
    for each in classes:
        repo, mark, name = each.rpartition("--")
        module = name.rpartition(".")[0] or name
        path = module.replace(".", "/") if all(map(str.isidentifier, module.split("."))) else module
        found.append(CodeFile(f"{path}.py", repo if mark else ""))
    return list(dict.fromkeys(found))


def auto_map(values: Mapping[str, Any]) -> dict[str, list[str]]:
    """The classes that a configuration names, by their role."""
    given = values.get("auto_map")
    if isinstance(given, (list, tuple)):  # old tokenizers write the two classes alone
        given = {"AutoTokenizer": given}
    found = {}
    for role, named in islice(given.items(), MOST_ROLES) if isinstance(given, dict) else ():
        classes = named if isinstance(named, (list, tuple)) else [named]
        found[str(role)] = [each for each in classes if isinstance(each, str) and each]
    return {role: classes for role, classes in found.items() if classes}
