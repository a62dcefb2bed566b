"""What can be wrong with a script: a closed list of codes, and errors that know their line and column."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice

from hfbench.errors import UsageError
from hfbench.text import did_you_mean, printable

SHOWN = 100
"""Errors printed for one script; the rest is counted."""
COMPARED = 1000
"""Names looked at for the nearest one."""


class Code(StrEnum):
    """The kinds of errors, each with a golden example in the tests."""

    NOT_TEXT = "not-text"
    BAD_CHARACTER = "bad-character"
    YAML_SYNTAX = "yaml-syntax"
    TOO_DEEP = "too-deep"
    SEVERAL_DOCUMENTS = "several-documents"
    TAG = "tag"
    ANCHOR = "anchor"
    ALIAS = "alias"
    MERGE_KEY = "merge-key"
    BAD_KEY = "bad-key"
    DUPLICATE_KEY = "duplicate-key"
    NUMBER_OUT_OF_RANGE = "number-out-of-range"
    EMPTY_SCRIPT = "empty-script"
    MISSING_KEY = "missing-key"
    UNKNOWN_KEY = "unknown-key"
    UNKNOWN_VERSION = "unknown-version"
    WRONG_TYPE = "wrong-type"
    BAD_NAME = "bad-name"
    DUPLICATE_NAME = "duplicate-name"
    EMPTY_AXIS = "empty-axis"
    UNKNOWN_AXIS = "unknown-axis"
    UNKNOWN_AXIS_VALUE = "unknown-axis-value"
    TOO_MANY_CELLS = "too-many-cells"
    NO_CELLS = "no-cells"
    NOT_ONE_ACTION = "not-one-action"
    UNKNOWN_ACTION = "unknown-action"
    UNKNOWN_ARGUMENT = "unknown-argument"
    MISSING_ARGUMENT = "missing-argument"
    BAD_VALUE = "bad-value"
    BAD_TIMEOUT = "bad-timeout"
    BAD_ENVIRONMENT = "bad-environment"
    BAD_PLACE = "bad-place"
    BAD_ON_FAIL = "bad-on-fail"
    BAD_SUBSTITUTION = "bad-substitution"
    UNKNOWN_VARIABLE = "unknown-variable"
    VARIABLE_CYCLE = "variable-cycle"
    TOO_LONG = "too-long"
    BAD_EXPECTATION = "bad-expectation"
    UNKNOWN_UNIT = "unknown-unit"
    UNKNOWN_RESULT = "unknown-result"


@dataclass(frozen=True, order=True)
class Span:
    """A place in a script: line and column count from 1, in characters."""

    line: int
    column: int


START = Span(1, 1)


@dataclass(frozen=True, order=True)
class ScriptError:
    """One error or warning at a place."""

    span: Span
    code: str
    message: str
    hint: str = ""

    @property
    def line(self) -> int:
        """The line, from 1."""
        return self.span.line

    @property
    def column(self) -> int:
        """The column, from 1."""
        return self.span.column

    def sentence(self, file: str) -> str:
        """`file:line:column: message; hint`, safe to print."""
        ending = f"; {self.hint}" if self.hint else ""
        return printable(f"{file}:{self.line}:{self.column}: {self.message}{ending}")


class Problems:
    """Collects errors; the same one at the same place is kept once."""

    def __init__(self) -> None:
        self._found: dict[tuple[Span, str, str], ScriptError] = {}

    def add(self, code: Code, span: Span, message: str, hint: str = "", *, note: str = "") -> None:
        """Keep an error. `note` says more about its first appearance and does not make it another one."""
        key = (span, code, message)
        if key not in self._found:
            self._found[key] = ScriptError(span, code, f"{message}{note}", hint)

    def near(self, word: str, known: Iterable[str]) -> str:
        """A hint at the nearest known name; none once there are more errors than anybody is shown."""
        return did_you_mean(word, islice(known, COMPARED)) if len(self._found) < SHOWN else ""

    def __bool__(self) -> bool:
        return bool(self._found)

    def listed(self) -> tuple[ScriptError, ...]:
        """All errors in the order of their places."""
        return tuple(sorted(self._found.values()))


class InvalidScript(UsageError):
    """The script cannot be run; `errors` has every reason."""

    def __init__(self, file: str, errors: tuple[ScriptError, ...]) -> None:
        self.file, self.errors = file, errors
        count = "1 error" if len(errors) == 1 else f"{len(errors)} errors"
        super().__init__(f"the script has {count}", where=file)

    def sentences(self) -> list[str]:
        """One line an error, at most `SHOWN` of them."""
        lines = [error.sentence(self.file) for error in self.errors[:SHOWN]]
        more = len(self.errors) - SHOWN
        return [*lines, printable(f"{self.file}: {more} more errors")] if more > 0 else lines
