"""What a terminal draws with, and the shortest way from one such pen to another: fewer bytes over a slow line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

SGR = re.compile(r"\x1b\[([0-9;]*)m")
"""Select Graphic Rendition, ECMA-48 8.3.117; extended colours as xterm takes them, separated by semicolons."""

MOVES = re.compile(r"(?:\n?\x1b\[[0-9;]*H)+")
"""Only moves of the cursor: nothing is drawn. Textual ends a line with LF, and then names the place of the next one."""

RESETS = re.compile(r"0*(?:;|$)")
"""Parameters that begin with a reset."""

ATTRIBUTES = frozenset(["1", "2", "3", "4", "5", "6", "7", "8", "9", "21", "53"])
"""What may be on beside the colours: bold, dim, italic, underline, blink, reverse, conceal, strike, overline."""

PLAIN_COLOURS = {
    "fg": frozenset(map(str, [*range(30, 38), *range(90, 98)])),
    "bg": frozenset(map(str, [*range(40, 48), *range(100, 108)])),
}


@dataclass(frozen=True, slots=True)
class Pen:
    """Colours as the parameters that select them, empty for the terminal's own; attributes as theirs."""

    fg: str = ""
    bg: str = ""
    attributes: frozenset[str] = frozenset()


RESET = Pen()


class Unknown(ValueError):
    """Parameters this module does not know."""


class PenSaver:
    """Rewrites output so that a pen is selected only where it changes and something is drawn with it.

    Made for output that goes to one terminal from its first byte on. Between calls the terminal holds the pen that it
    would hold without this: whoever else writes to it finds it as expected.
    """

    def __init__(self) -> None:
        self.held = RESET
        self.wanted = RESET
        self._lost = False
        """True since parameters came that are not known here; all is passed on until a reset."""

    def save(self, output: str) -> str:
        """The same picture in fewer bytes."""
        if "\x1b[" not in output:
            return output
        texts_and_parameters = SGR.split(output)
        told = [self._drawn(texts_and_parameters[0])]
        for parameters, text in zip(texts_and_parameters[1::2], texts_and_parameters[2::2], strict=True):
            told += [self._selected(parameters), self._drawn(text)]
        return "".join([*told, self._moved()])

    def _selected(self, parameters: str) -> str:
        """What has to be written at once."""
        if self._lost and not RESETS.match(parameters):
            return f"\x1b[{parameters}m"
        try:
            self.wanted = selected(self.wanted, parameters)
        except Unknown:
            told, self._lost = f"{self._moved()}\x1b[{parameters}m", True
            return told
        if not self._lost:
            return ""
        self._lost, self.held = False, self.wanted
        return f"\x1b[{parameters}m"

    def _drawn(self, text: str) -> str:
        return text if not text or MOVES.fullmatch(text) else f"{self._moved()}{text}"

    def _moved(self) -> str:
        if self._lost or self.held == self.wanted:
            return ""
        held, self.held = self.held, self.wanted
        return change(held, self.wanted)


@lru_cache(maxsize=4096)
def selected(pen: Pen, parameters: str) -> Pen:
    """The pen after these parameters. Unknown where one of them has a meaning that is not kept here."""
    codes = iter(parameters.split(";"))
    for code in codes:
        if code in ("", "0", "00"):
            pen = RESET
        elif code in ATTRIBUTES:
            pen = replace(pen, attributes=pen.attributes | {code})
        elif code in PLAIN_COLOURS["fg"]:
            pen = replace(pen, fg=code)
        elif code in PLAIN_COLOURS["bg"]:
            pen = replace(pen, bg=code)
        elif code == "38":
            pen = replace(pen, fg=_extended(code, codes))
        elif code == "48":
            pen = replace(pen, bg=_extended(code, codes))
        elif code == "39":
            pen = replace(pen, fg="")
        elif code == "49":
            pen = replace(pen, bg="")
        else:
            raise Unknown(parameters)
    return pen


def _extended(code: str, rest: Iterator[str]) -> str:
    kind = next(rest, "")
    values = [next(rest, "") for _ in range({"5": 1, "2": 3}.get(kind, 0))]
    if not values or not all(values):
        raise Unknown(code)
    return ";".join([code, kind, *values])


@lru_cache(maxsize=4096)
def change(held: Pen, wanted: Pen) -> str:
    """The shortest sequence that turns one pen into another."""
    anew = f"\x1b[{';'.join(['0', *_codes(wanted)])}m"
    if not held.attributes <= wanted.attributes:
        return anew
    more = sorted(wanted.attributes - held.attributes)
    more += [wanted.fg or "39"] if wanted.fg != held.fg else []
    more += [wanted.bg or "49"] if wanted.bg != held.bg else []
    return min(f"\x1b[{';'.join(more)}m", anew, key=len)


def _codes(pen: Pen) -> list[str]:
    return [*sorted(pen.attributes), *filter(None, (pen.fg, pen.bg))]
