"""Replaces the characters that no XML and no HTML document may hold."""

from __future__ import annotations

import re

PLANES = "".join(f"{chr(plane << 16 | 0xFFFE)}{chr(plane << 16 | 0xFFFF)}" for plane in range(17))
FORBIDDEN = re.compile(f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef{PLANES}]")
"""Controls, lone surrogates and noncharacters: a parser stops at one, even where it is written as a reference."""


def well_formed(text: str) -> str:
    """A document with U+FFFD, the replacement character, in place of each."""
    return FORBIDDEN.sub("\ufffd", text)
