"""What a step is expected to give: `gen.tpot.p99 < 50 ms`, `gen.dtype == bf16`, `rate within 10% of 20 tok/s`."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hfbench.errors import UsageError
from hfbench.scripts.errors import Code
from hfbench.scripts.lookup import Found
from hfbench.scripts.scalars import OutOfRange, plain_value
from hfbench.scripts.tree import Plain
from hfbench.text import did_you_mean, printable
from hfbench.units import UNITS, convert, parse_quantity

EXAMPLE = "write for example gen.tpot.p99 < 50 ms"

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_PATH = r"\s*([A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*)\s*"
_COMPARED = re.compile(_PATH + r"(<=|>=|==|!=|<|>|=)(.*)")
_WITHIN = re.compile(_PATH + r"\swithin\s+([0-9.]+)\s*%\s*of\s(.*)")
_UNIT = re.compile(r"[-+]?\.?[0-9][-+0-9.eE]*\s*([A-Za-z%]+(?:/s)?)")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_./:+-]*")
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")


class BadExpectation(Exception):
    """The text cannot be read as an expectation."""

    def __init__(self, message: str, *, hint: str = EXAMPLE, code: Code = Code.BAD_EXPECTATION) -> None:
        self.message, self.hint, self.code = message, hint, code
        super().__init__(message)


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """One comparison. `share` is the width of a `within`, 0.1 for 10 %; `unit` is empty when none was written."""

    text: str
    line: int
    path: tuple[str, ...]
    op: str
    wanted: Plain
    unit: str = ""
    share: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How an expectation went. `actual` is in `unit`, `reason` says more than the numbers do.

    `ok` is None when it could not be asked.
    """

    ok: bool | None
    actual: Any = None
    unit: str = ""
    reason: str = ""


def parse_expectation(text: str, line: int) -> Expectation:
    """Read an expectation; BadExpectation says what is wrong with it."""
    if match := _WITHIN.fullmatch(text):
        return _within(text, line, match)
    match = _COMPARED.fullmatch(text)
    if match is None:
        raise BadExpectation(f"cannot read the expectation {_cut(text)}")
    path, op, right = tuple(match[1].split(".")), match[2], match[3].strip()
    if op == "=":
        raise BadExpectation(f"cannot read the expectation {_cut(text)}", hint="did you mean '=='?")
    wanted, unit = _wanted(text, right)
    if op not in ("==", "!=") and (isinstance(wanted, (str, bool)) or wanted is None):
        raise BadExpectation(f"{op} compares numbers, and {right[:40]!r} is none", hint="compare texts with == or !=")
    return Expectation(text=text, line=line, path=path, op=op, wanted=wanted, unit=unit)


def mismatch(declared: Any, expectation: Expectation) -> str:
    """Why values of a declared type can never be compared with what is wanted; empty when they can or nobody knows.

    A number that JSON cannot write is its name, so that a text may stand for a number with a fraction.
    """
    kinds = {int: "a number", float: "a number", bool: "true or false", str: "a text"}
    wanted = expectation.wanted
    have, want = kinds.get(declared), kinds.get(type(wanted))
    if have is None or want is None or have == want or (declared is float and isinstance(wanted, str)):
        return ""
    return f"{'.'.join(expectation.path)} is {have} and cannot be compared with {want}"


def judge(expectation: Expectation, found: Found) -> Verdict:
    """Compare what was found with what is wanted."""
    actual, wanted = found.value, expectation.wanted
    if isinstance(actual, (list, dict)):
        what = f"a list of {len(actual)}" if isinstance(actual, list) else f"an object with {', '.join(actual)[:80]}"
        advice = "ask for its count or one of its items" if isinstance(actual, list) else "ask for one of them"
        return Verdict(ok=False, reason=f"{found.path} is {what}; {advice}")
    if _is_number(actual) and _is_number(wanted):
        return _judge_numbers(expectation, found)
    shown = Verdict(ok=False, actual=actual, unit=found.unit)
    if type(actual) is not type(wanted) and actual is not None and wanted is not None:
        reason = f"{found.path} is {_kind(actual)} and cannot be compared with {_kind(wanted)}"
        return Verdict(ok=False, actual=shown.actual, unit=shown.unit, reason=reason)
    if expectation.op not in ("==", "!="):
        return Verdict(ok=False, actual=actual, unit=found.unit, reason=f"{found.path} is {_kind(actual)}")
    return Verdict(ok=bool(_OPERATORS[expectation.op](actual, wanted)), actual=actual, unit=found.unit)


def _judge_numbers(expectation: Expectation, found: Found) -> Verdict:
    actual, wanted = found.value, expectation.wanted
    assert isinstance(wanted, (int, float))
    unit = found.unit
    if expectation.unit:
        own = found.unit or ("x" if UNITS[expectation.unit][0] == "ratio" else "")
        if own not in UNITS:
            reason = f"{found.path} has no unit; write the number alone"
            return Verdict(ok=False, actual=actual, unit=unit, reason=reason)
        try:
            actual, unit = convert(actual, own, expectation.unit), expectation.unit
        except UsageError as error:
            return Verdict(ok=False, actual=actual, unit=unit, reason=f"{found.path}: {error.found}")
    elif found.unit in UNITS and UNITS[found.unit][0] not in ("count", "ratio") and wanted != 0:
        reason = f"{found.path} is measured in {found.unit}; write the unit beside {wanted}"
        return Verdict(ok=False, actual=actual, unit=unit, reason=reason)
    if expectation.op == "within":
        ok = abs(actual - wanted) <= expectation.share * abs(wanted)
    else:
        ok = bool(_OPERATORS[expectation.op](actual, wanted))
    return Verdict(ok=ok, actual=actual, unit=unit)


def _within(text: str, line: int, match: re.Match[str]) -> Expectation:
    try:
        share = float(match[2]) / 100
    except ValueError:
        raise BadExpectation(f"{match[2]!r} is not a number of percent") from None
    wanted, unit = _wanted(text, match[3].strip())
    if not _is_number(wanted):
        raise BadExpectation(f"within compares numbers, and {match[3].strip()[:40]!r} is none")
    path = tuple(match[1].split("."))
    return Expectation(text=text, line=line, path=path, op="within", wanted=wanted, unit=unit, share=share)


def _wanted(text: str, right: str) -> tuple[Plain, str]:
    """The right side of a comparison: (value, unit)."""
    if quoted := _QUOTED.fullmatch(right):
        return (quoted[1] if quoted[1] is not None else quoted[2]), ""
    try:
        value = plain_value(right) if right else right
    except OutOfRange:
        raise BadExpectation(f"the number {right[:30]} does not fit 64 bits") from None
    if not isinstance(value, str):
        return value, ""
    if unit := _UNIT.fullmatch(right):
        if unit[1] not in UNITS:
            hint = did_you_mean(unit[1], UNITS) or "units are such as ms, s, MiB, GiB, tok/s, %"
            raise BadExpectation(f"unknown unit {unit[1]!r}", hint=hint, code=Code.UNKNOWN_UNIT)
        try:
            number, known = parse_quantity(right)
        except UsageError:
            raise BadExpectation(f"cannot read the expectation {_cut(text)}") from None
        if not math.isfinite(number):
            raise BadExpectation(f"the number {right[:30]} is not finite")
        return number, known or ""
    if _WORD.fullmatch(right):
        return right, ""
    raise BadExpectation(f"cannot read the expectation {_cut(text)}", hint=f"{EXAMPLE}; a text goes in quotes")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _kind(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"the text {_cut(value)}" if isinstance(value, str) else f"the number {value}"


def _cut(text: str) -> str:
    shown = printable(text)
    return repr(shown if len(shown) <= 60 else shown[:57] + "...")
