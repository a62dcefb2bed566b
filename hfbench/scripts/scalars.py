"""What an unquoted scalar stands for: YAML 1.2, without its infinities."""

from __future__ import annotations

import math
import re

from hfbench.scripts.tree import Plain

_NULL = {"", "~", "null", "Null", "NULL"}
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_LARGEST = 2**63


class OutOfRange(ValueError):
    """A number that 64 bits cannot hold."""


def plain_value(text: str) -> Plain:
    """What an unquoted scalar stands for in YAML 1.2: `yes`, `on` and `12:30` are text; OutOfRange beyond 64 bits."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _INT.fullmatch(text):
        return _bounded(text, 10)
    if _BASED.fullmatch(text):
        return _bounded(text, 0)
    if _FLOAT.fullmatch(text):
        if math.isinf(number := float(text)):
            raise OutOfRange(text)
        return number
    return text


def _bounded(text: str, base: int) -> int:
    if len(text) > 70 or abs(number := int(text, base)) >= _LARGEST:
        raise OutOfRange(text)
    return number
