"""The keys that a person's word means."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from hfbench.errors import HfbenchError
from hfbench.models.explain.facts import ExplainedKey
from hfbench.models.explain.meanings import known_names, meaning_of
from hfbench.models.problem import quoted
from hfbench.text import did_you_mean

MOST_COMPARED = 2_000
"""Keys among which a word alike is looked for."""


class NoSuchKey(HfbenchError):
    """No key of the model's configuration files is meant."""


def matching(keys: Sequence[ExplainedKey], word: str) -> tuple[ExplainedKey, ...]:
    """Keys of that whole path, else of that last name, else all below an object of that name; `*` stands for anything.

    NoSuchKey says what a key that is known, but not in this model, means; else it offers one that is alike.
    """
    for same in (_whole, _last, _below):
        if found := tuple(each for each in keys if same(each.key, word)):
            return found
    if word.rpartition(".")[2] in known_names():
        meaning = meaning_of(word.split("."))
        raise NoSuchKey(f"neither a file nor its class gives this key, which means: {meaning}", where=word)
    names = dict.fromkeys([*(each.key for each in keys[:MOST_COMPARED]), *(_name(each.key) for each in keys)])
    raise NoSuchKey(f"there is no key {quoted(word)}", remedy=did_you_mean(word[:100], names) or "leave the key out")


def _name(path: str) -> str:
    return path.rpartition(".")[2]


def _whole(path: str, word: str) -> bool:
    return fnmatchcase(path, word)


def _last(path: str, word: str) -> bool:
    return fnmatchcase(path, f"*.{word}")


def _below(path: str, word: str) -> bool:
    return fnmatchcase(path, f"{word}.*") or fnmatchcase(path, f"*.{word}.*")
