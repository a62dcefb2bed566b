"""Replaces the characters that documents may not hold: some no XML and no HTML, and some no file at all."""

from __future__ import annotations

import re

PLANES = "".join(f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(17))
FORBIDDEN = re.compile(f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef{PLANES}]")
"""Controls, lone surrogates and noncharacters: a parser stops at one, even where it is written as a reference."""


SURROGATES = re.compile("[\ud800-\udfff]")


def writable(text: str) -> str:
    """A text with U+FFFD, the replacement character, for each lone surrogate: UTF-8 has none."""
    return SURROGATES.sub("\ufffd", text)


def well_formed(text: str) -> str:
    """A document with U+FFFD, the replacement character, in place of each."""
    return FORBIDDEN.sub("\ufffd", text)
