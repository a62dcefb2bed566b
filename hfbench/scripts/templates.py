"""`{{ name }}` inside texts: how it is read and filled in. Names only: there is no code in a script."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from hfbench.scripts.errors import Code
from hfbench.scripts.tree import Plain, Value

MAX_TEXT = 64 * 1024
"""Characters a text may grow to."""

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BRACES = re.compile(r"(?<!\\)(\\*)\{\{")


class TemplateProblem(Exception):
    """What is wrong with a text; `fragment` is the part of it to point at."""

    def __init__(self, code: Code, message: str, *, hint: str = "", fragment: str = "{{") -> None:
        self.code, self.message, self.hint, self.fragment = code, message, hint, fragment
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Name:
    """A variable's place in a text; `raw` is how it is written."""

    name: str
    raw: str


@lru_cache(maxsize=4096)
def pieces(text: str) -> tuple[str | Name, ...]:
    """The literal parts and names of a text, in order; TemplateProblem when braces do not enclose a name.

    A backslash before two braces is taken away and the braces stay: `\\{{ x }}` is the text `{{ x }}`.
    """
    found: list[str | Name] = []
    at = 0
    while braces := _BRACES.search(text, at):
        if braces[1]:
            found.append(text[at : braces.start()] + braces[1][1:] + "{{")
            at = braces.end()
            continue
        end = text.find("}}", braces.end())
        inside = text[braces.end() : end].strip() if end >= 0 else ""
        if not NAME.fullmatch(inside):
            what = f"found {_shown(inside)}" if end >= 0 else "the braces are never closed"
            raise TemplateProblem(
                Code.BAD_SUBSTITUTION,
                f"a variable's name is expected between {{{{ and }}}}, {what}",
                hint=r"for the braces themselves write \{{",
                fragment=text[braces.start() : end + 2] if end >= 0 else "{{",
            )
        found += [text[at : braces.start()], Name(inside, text[braces.start() : end + 2])]
        at = end + 2
    return tuple(piece for piece in (*found, text[at:]) if piece != "")


def names_in(text: str) -> list[Name]:
    """The variables a text uses."""
    return [piece for piece in pieces(text) if isinstance(piece, Name)]


def fill(text: str, values: Mapping[str, Value]) -> Value:
    """The text with its variables filled in; a text that is one variable and nothing else keeps its type."""
    parts = pieces(text)
    if len(parts) == 1 and isinstance(parts[0], Name):
        return values[parts[0].name]
    filled, length = [], 0
    for part in parts:
        filled.append(_as_text(part, values[part.name]) if isinstance(part, Name) else part)
        length += len(filled[-1])
        if length > MAX_TEXT:
            raise TemplateProblem(Code.TOO_LONG, f"the text grows beyond {MAX_TEXT} characters")
    return "".join(filled)


def escape(text: str) -> str:
    """The text as a script writes it, so that `fill` gives it back."""
    return _BRACES.sub(r"\\\g<0>", text)


def _as_text(name: Name, value: Value) -> str:
    if isinstance(value, list) or value is None:
        what = "a list" if isinstance(value, list) else "nothing"
        message = f"{name.name!r} is {what} and cannot stand inside a text"
        raise TemplateProblem(Code.BAD_SUBSTITUTION, message, fragment=name.raw)
    return plain_text(value)


def plain_text(value: Plain) -> str:
    """A scalar as a script would write it without quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
