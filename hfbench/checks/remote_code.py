"""Which Python files the classes of auto_map come from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


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
        found.append(CodeFile(module.replace(".", "/") + ".py", repo if mark else ""))
    return list(dict.fromkeys(found))
