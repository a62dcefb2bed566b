"""Which entries of the palette a query names: by the name itself, then by words of what it does."""

from __future__ import annotations

import re
from collections.abc import Sequence

WORDS = re.compile(r"[^\W_]+")
WHOLE, BEGINNING, WORD, LETTERS, SUMMARY = 1.0, 0.9, 0.8, 0.5, 0.4
"""Scores: the whole name, its beginning, beginnings of its words, its letters in their order, words of the summary."""


def score(query: str, name: str, summary: str) -> float:
    """How well a query names an entry: 0 where it does not, and more the nearer the name comes to it."""
    query, name = query.strip().casefold(), name.casefold()
    asked = WORDS.findall(query)
    if not asked:
        return 0.0
    closeness = 0.09 * len(query) / max(len(query), len(name))
    if query == name:
        return WHOLE
    if name.startswith(query):
        return BEGINNING + closeness
    if _begin_words(asked, name):
        return WORD + closeness
    if _in_order("".join(asked), name):
        return LETTERS + closeness
    return SUMMARY if _begin_words(asked, summary.casefold()) else 0.0


def places(query: str, name: str) -> tuple[int, ...]:
    """Where the letters of a query stand in a name: together if they do anywhere, else one after another."""
    query, name = "".join(query.casefold().split()), name.casefold()
    if (at := name.find(query)) >= 0:
        return tuple(range(at, at + len(query)))
    found, at = list[int](), 0
    for letter in query:
        if (at := name.find(letter, at)) < 0:
            return ()
        found.append(at)
        at += 1
    return tuple(found)


def _begin_words(asked: Sequence[str], text: str) -> bool:
    """Whether every word that is asked for begins one of the text."""
    words = WORDS.findall(text)
    return all(any(word.startswith(each) for word in words) for each in asked)


def _in_order(letters: str, name: str) -> bool:
    """Whether a word of the name begins with the first letter, and the others follow in their order."""
    starts = (found.start() for found in WORDS.finditer(name) if found[0].startswith(letters[0]))
    return any(_follows(letters, name[start:]) for start in starts)


def _follows(letters: str, text: str) -> bool:
    left = iter(text)
    return all(letter in left for letter in letters)
