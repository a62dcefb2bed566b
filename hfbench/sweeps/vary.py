"""Reads the values a field of a sweep takes: `1,8,32`, `16..128*2`, `1..4`, or choices by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Protocol

from hfbench.errors import UsageError
from hfbench.text import printable

MOST_VALUES = 10_000
"""Values of one field at most: a script has no more cells."""

SEPARATED = ("model", "device", "duration")
"""Kinds of texts that a comma separates also where no quotation marks stand."""

_ITEM = re.compile(r'\s*("(?:[^"]|"")*"|[^",]*)\s*(,|$)')
_NUMBER = r"[+-]?(?:\d{1,18}(?:\.\d{0,18})?|\.\d{1,18})(?:e[+-]?\d{1,3})?"
_RANGE = re.compile(rf"({_NUMBER})\s*\.\.\s*({_NUMBER})\s*(?:([*+])\s*({_NUMBER}))?", re.IGNORECASE)


class Field(Protocol):
    """What is asked of a field of an action: its name, its type, and how a text of one value is read."""

    @property
    def name(self) -> str:
        """As the action declares it."""

    @property
    def type(self) -> type:
        """Of one value."""

    @property
    def many(self) -> bool:
        """Whether one value is a list itself."""

    @property
    def choices(self) -> tuple[str, ...]:
        """What it chooses from."""

    @property
    def kind(self) -> str:
        """What its text stands for."""

    @property
    def secret(self) -> bool:
        """Whether it must not be written down."""

    def parse(self, text: str) -> Any:
        """One value."""


def can_vary(field: Field) -> bool:
    """Whether a form may vary a field: a comma in one that takes a list is its own; secrets are not written down."""
    return not field.many and not field.secret


def separates(field: Field) -> bool:
    """Whether a comma in a form separates values; in free text and paths it may be part of one."""
    numbers = field.type in (int, float, bool)
    return can_vary(field) and (numbers or bool(field.choices) or field.kind in SEPARATED)


def is_list(field: Field, text: str) -> bool:
    """Whether a text typed into a form stands for the values of a sweep and not for one.

    Free text and paths are a list when every item stands in quotation marks: `"a","b"`.
    """
    if not can_vary(field):
        return False
    if separates(field):
        return len(_raw_items(text)) > 1 or (field.type in (int, float) and _RANGE.fullmatch(text.strip()) is not None)
    items = _raw_items(text)
    return len(items) > 1 and all(item.startswith('"') for item in items)


def values_of(field: Field, text: str) -> tuple[Any, ...]:
    """The values a text lists, each read as the field reads one, none twice.

    `A..B` counts by one, `A..B+S` by S, `A..B*F` multiplies by F; B belongs to it when it is met. Whatever the field
    raises for one value goes on to the caller; UsageError names what else is wrong.
    """
    if field.secret:
        raise UsageError("is secret, and secrets are not written into scripts", where=field.name)
    values: list[Any] = []
    for item in _items(field, text):
        for one in _ranged(field, item):
            value = field.parse(one)
            if value in values and any(type(each) is type(value) and each == value for each in values):
                raise UsageError(f"{printable(one)} stands there twice: give it once", where=field.name)
            values.append(value)
    return tuple(values)


def joined(texts: tuple[str, ...]) -> str:
    """Texts of values as `values_of` reads them."""
    return ",".join(quoted(text) for text in texts)


def spelled(field: Field, texts: Sequence[str]) -> str:
    """The texts of several values as `values_of` reads them, in as few words as it takes: a range where they make one.

    UsageError when no text of a form stands for them.
    """
    listed = joined(tuple(texts)) if separates(field) else ",".join(_marked(text) for text in texts)
    ranged = _range_of(texts) if field.type in (int, float) else ""
    if not is_list(field, listed):
        raise UsageError(f"no text of a form stands for {listed}", where=field.name)
    return ranged or listed


def quoted(text: str) -> str:
    """The text of one value, in quotation marks where it could be read as several."""
    plain = text == text.strip() != "" and not set(text) & set(',"')
    return text if plain else _marked(text)


def _marked(text: str) -> str:
    """In quotation marks."""
    return '"' + text.replace('"', '""') + '"'


def _range_of(texts: Sequence[str]) -> str:
    """The range that stands for these whole numbers, of four on: of fewer the list is as short. Empty without one."""
    if len(texts) < 4 or not all(text.isdecimal() for text in texts):
        return ""
    numbers = [int(text) for text in texts]
    (first, second, *_), whole = numbers, f"{texts[0]}..{texts[-1]}"
    step, factor = second - first, second // first if first else 0
    if all(after - before == step > 0 for before, after in pairwise(numbers)):
        return whole if step == 1 else f"{whole}+{step}"
    return f"{whole}*{factor}" if factor and all(b == a * factor > a for a, b in pairwise(numbers)) else ""


def _items(field: Field, text: str) -> list[str]:
    items = _raw_items(text)
    if not items:
        raise UsageError("has a quotation mark in the wrong place", where=field.name)
    if "" in items:
        raise UsageError(
            "has nothing between two commas" if text.strip() else "has no value, which makes 0 cells", where=field.name
        )
    return [item[1:-1].replace('""', '"') if item.startswith('"') else item for item in items]


def _raw_items(text: str) -> list[str]:
    """The items as written, quotation marks included; none when those stand in a wrong place."""
    items, at = [], 0
    while True:
        found = _ITEM.match(text, at)
        if found is None:
            return []
        items.append(found[1].strip())
        at = found.end()
        if found[2] != ",":
            return items


def _ranged(field: Field, item: str) -> Iterator[str]:
    """The texts a range stands for; any other item stands for itself."""
    found = _RANGE.fullmatch(item) if field.type in (int, float) else None
    if found is None:
        yield item
        return
    first, last, sign, by = found[1], found[2], found[3] or "+", found[4] or "1"
    if sign == "+" and float(by) <= 0:
        raise UsageError(f"{item} never ends: add more than 0", where=field.name)
    if sign == "*" and (float(by) <= 1 or float(first) <= 0):
        raise UsageError(f"{item} never ends: begin above 0 and multiply by more than 1", where=field.name)
    if float(first) > float(last):
        raise UsageError(f"{item} holds no value, which makes 0 cells: begin with the smaller one", where=field.name)
    if not any(sign in each.lower() for each in (first, last, by) for sign in ".e"):
        yield from _counted(field, item, int(first), int(last), int(by), multiply=sign == "*")
    else:
        yield from _counted(field, item, float(first), float(last), float(by), multiply=sign == "*")


def _counted(field: Field, item: str, first: float, last: float, by: float, *, multiply: bool) -> Iterator[str]:
    """Each value up to the last, which rounding does not keep out."""
    end = last + abs(last) * 1e-12 if isinstance(last, float) else last
    value = first
    for number in range(1, MOST_VALUES + 1):
        yield f"{value:.12g}" if isinstance(value, float) else str(value)
        value = value * by if multiply else first + by * number
        if value > end:
            return
    raise UsageError(f"{item} holds more than {MOST_VALUES:,} values: take larger steps", where=field.name)
