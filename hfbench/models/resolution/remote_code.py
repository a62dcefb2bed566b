"""Which Python files of a repository would run under trust_remote_code: found by reading, never run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfbench.models.files import ModelFile, read_text
from hfbench.models.problem import ModelError, quoted

MOST_SOURCE = 4 * 2**20
MOST_MODULES = 100

MODEL_ENTRIES = ("AutoModelForCausalLM", "AutoModelForImageTextToText", "AutoModelForSeq2SeqLM", "AutoModel")
"""Entries of auto_map that a loader of a generating model asks for, the first that is there wins."""

_REFERENCE = re.compile(r"(?:(?P<repo>[\w.-]+(?:/[\w.-]+)?)--)?(?P<module>\w+)\.(?P<name>\w+)")
_RELATIVE = re.compile(r"^[ \t]*(?:from[ \t]+\.(\w+)[\w.]*[ \t]+import|import[ \t]+\.(\w+))", re.MULTILINE)
_SIBLINGS = re.compile(r"^[ \t]*from[ \t]+\.[ \t]+import[ \t]+\(?([\w, \t]+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CodeEntry:
    """One entry of an auto_map: the class it names, where its file lies, and all files that its import runs."""

    entry: str
    reference: str
    repository: str | None
    """Another repository that the code comes from, None for this one."""
    files: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    fault: str = ""

    def told(self) -> dict[str, Any]:
        """As data for JSON."""
        return {
            "entry": self.entry,
            "reference": self.reference,
            "repository": self.repository,
            "files": list(self.files),
            "missing": list(self.missing),
            "fault": self.fault,
        }


def read_auto_map(auto_map: object, files: Mapping[str, ModelFile], folder: Path) -> list[CodeEntry]:
    """Every entry of an auto_map with the files that would run; an entry that names no class carries a fault."""
    if auto_map is None:
        return []
    if not isinstance(auto_map, dict):
        return [CodeEntry("auto_map", quoted(auto_map), None, fault="auto_map is not an object")]
    pairs = [
        (entry, each) for entry, value in auto_map.items() for each in (value if isinstance(value, list) else [value])
    ]
    return [_entry(str(entry), reference, files, folder) for entry, reference in pairs if reference is not None]


def entry_named(entries: list[CodeEntry], name: str) -> CodeEntry | None:
    """The entry of that name; of a pair of tokenizers the fast one, which comes last."""
    return next((each for each in reversed(entries) if each.entry == name), None)


def model_entry(entries: list[CodeEntry]) -> CodeEntry | None:
    """The entry from which the model's class would come."""
    return next((found for name in MODEL_ENTRIES if (found := entry_named(entries, name))), None)


def _entry(entry: str, reference: object, files: Mapping[str, ModelFile], folder: Path) -> CodeEntry:
    match = _REFERENCE.fullmatch(reference) if isinstance(reference, str) else None
    if match is None:
        return CodeEntry(entry, quoted(reference), None, fault="names no module and class")
    repository, module = match["repo"], match["module"]
    if repository:
        return CodeEntry(entry, str(reference), repository, files=(f"{module}.py",))
    run, missing = _imports(f"{module}.py", files, folder)
    return CodeEntry(entry, str(reference), None, files=run, missing=missing)


def _imports(first: str, files: Mapping[str, ModelFile], folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The file and all it imports from its own folder, in the order they are met, and those not there."""
    run: list[str] = []
    missing: list[str] = []
    pending = [first]
    while pending and len(run) < MOST_MODULES:
        name = pending.pop(0)
        if name in run or name in missing:
            continue
        if name not in files:
            missing.append(name)
            continue
        run.append(name)
        pending += [f"{module}.py" for module in _siblings(files[name], folder)]
    return tuple(run), tuple(missing)


def _siblings(file: ModelFile, folder: Path) -> Iterator[str]:
    try:
        text = read_text(file.path, MOST_SOURCE, folder)
    except ModelError:
        return
    for match in _RELATIVE.finditer(text):
        yield match[1] or match[2]
    for match in _SIBLINGS.finditer(text):
        yield from (name.split(" as ")[0].strip() for name in match[1].split(",") if name.strip())
