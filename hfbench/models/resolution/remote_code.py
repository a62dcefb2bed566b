"""Which Python files of a repository would run under trust_remote_code: found by reading, never run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from hfbench.models.files import ModelFile, read_text
from hfbench.models.problem import ModelError
from hfbench.models.resolution.trace import shown

MOST_SOURCE = 4 * 2**20
MOST_MODULES = 100
MOST_READ = 16 * 2**20
"""Bytes of one file, files of one entry, and bytes of all entries together that are read to follow imports."""

LONGEST_REFERENCE = 400

MODEL_ENTRIES = ("AutoModelForCausalLM", "AutoModelForImageTextToText", "AutoModelForSeq2SeqLM", "AutoModel")
"""Entries of auto_map that a loader of a generating model asks for, the first that is there wins."""

PROCESSOR_ENTRIES = ("AutoProcessor", "AutoImageProcessor", "AutoVideoProcessor", "AutoFeatureExtractor")
"""Entries that a loader of a model with images, videos or sound asks for."""

ENTRIES = ("AutoConfig", "AutoTokenizer", *MODEL_ENTRIES, *PROCESSOR_ENTRIES)

_REFERENCE = re.compile(r"(?:(?P<repo>[\w.-]+(?:/[\w.-]+)?)--)?(?P<module>\w+)\.(?P<name>\w+)")
_RELATIVE = re.compile(r"^[ \t]*+from[ \t]++\.(\w++)[\w.]*+[ \t]++import\b", re.MULTILINE)
_SIBLINGS = re.compile(r"^[ \t]*+from[ \t]++\.[ \t]++import[ \t]++\(?([\w, \t]++)", re.MULTILINE)
"""Possessive all through: a line of four megabytes must not be tried again and again."""


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


class Modules:
    """The Python files of a folder and what each imports from beside it, read once and up to a bound."""

    def __init__(self, files: Mapping[str, ModelFile], folder: Path) -> None:
        self._files, self._folder, self._left = files, folder, MOST_READ
        self._imported: dict[str, tuple[str, ...]] = {}

    def run_by(self, first: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The file and all it imports from its own folder, in the order they are met, and those not there."""
        run: list[str] = []
        missing: list[str] = []
        pending = [first]
        while pending and len(run) < MOST_MODULES:
            name = pending.pop(0)
            if name in run or name in missing:
                continue
            if name not in self._files:
                missing.append(name)
                continue
            run.append(name)
            pending += self._imports(name)
        return tuple(run), tuple(missing)

    def _imports(self, name: str) -> tuple[str, ...]:
        if name not in self._imported:
            file = self._files[name]
            text = ""
            if file.bytes <= self._left:
                self._left -= file.bytes
                try:
                    text = read_text(file.path, MOST_SOURCE, self._folder)
                except ModelError:
                    pass  # it would run all the same; what it imports cannot be told
            modules = dict.fromkeys(islice(_siblings(text), MOST_MODULES))
            self._imported[name] = tuple(f"{module}.py" for module in modules)
        return self._imported[name]


def read_auto_map(auto_map: object, modules: Modules) -> list[CodeEntry]:
    """The entries that a loader asks for with the files that would run; one that names no class carries a fault."""
    if auto_map is None:
        return []
    if not isinstance(auto_map, dict):
        return [CodeEntry("auto_map", shown(auto_map), None, fault="auto_map is not an object")]
    found = []
    for name in ENTRIES:
        value = auto_map.get(name)
        pair = value[:2] if isinstance(value, list) else [value]
        found += [_entry(name, reference, modules) for reference in pair if reference is not None]
    return found


def entry_named(entries: list[CodeEntry], name: str) -> CodeEntry | None:
    """The entry of that name; of a pair of tokenizers the fast one, which comes last."""
    return next((each for each in reversed(entries) if each.entry == name), None)


def model_entry(entries: list[CodeEntry]) -> CodeEntry | None:
    """The entry from which the model's class would come."""
    return next((found for name in MODEL_ENTRIES if (found := entry_named(entries, name))), None)


def _entry(entry: str, reference: object, modules: Modules) -> CodeEntry:
    text = reference if isinstance(reference, str) else ""
    match = _REFERENCE.fullmatch(text) if len(text) <= LONGEST_REFERENCE else None
    if match is None:
        return CodeEntry(entry, shown(reference), None, fault="names no module and class")
    repository, module = match["repo"], match["module"]
    if repository:
        return CodeEntry(entry, text, repository, files=(f"{module}.py",))
    run, missing = modules.run_by(f"{module}.py")
    return CodeEntry(entry, text, None, files=run, missing=missing)


def _siblings(text: str) -> Iterator[str]:
    for match in _RELATIVE.finditer(text):
        yield match[1]
    for match in _SIBLINGS.finditer(text):
        yield from (name.split(" as ")[0].strip() for name in match[1].split(",") if name.strip())
