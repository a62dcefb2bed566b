"""What a key means, looked up by its name and by the objects it stands in."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from hfbench.models.runtimes import DATA

TABLE = "config_keys.toml"
ANY = "*"


@dataclass(frozen=True, slots=True)
class Section:
    """Meanings that hold below some objects, or in some files."""

    below: frozenset[str]
    files: frozenset[str]
    anywhere: bool
    keys: Mapping[str, str]


def meaning_of(path: Sequence[str], file: str = "") -> str:
    """One sentence, from the innermost object that gives the key a meaning of its own; empty when nobody knows it."""
    name = path[-1]
    for place in range(len(path) - 2, -1, -1):
        for section in sections():
            if path[place] not in section.below:
                continue
            if name in section.keys:
                return section.keys[name]
            if place == len(path) - 2 and ANY in section.keys:
                return section.keys[ANY]
    for section in sections():
        if file in section.files and name in section.keys:
            return section.keys[name]
    return next((each.keys[name] for each in sections() if each.anywhere and name in each.keys), "")


def known_names() -> frozenset[str]:
    """Every key that has a meaning somewhere."""
    return frozenset(name for section in sections() for name in section.keys if name != ANY)


@lru_cache(maxsize=1)
def sections() -> tuple[Section, ...]:
    """The table; its first section holds everywhere."""
    told = tomllib.loads((DATA / TABLE).read_text("utf-8"))
    return tuple(
        Section(
            below=frozenset(each.get("below", ())),
            files=frozenset(each.get("files", ())),
            anywhere=each.get("anywhere", name == "general"),
            keys=each["keys"],
        )
        for name, each in told.items()
    )
