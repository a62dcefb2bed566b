"""engine.flags: the flags of trtllm-build, and what is wrong with those that are given."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.line_width import paragraph
from hfbench.models.problem import counted

if TYPE_CHECKING:
    from hfbench.engines.trtllm.flags import Flag
    from hfbench.jobs.run import Run

LABEL = 36
MOST_LINES = 4


@dataclass(frozen=True, kw_only=True)
class FlagRow:
    """One flag as the table has it, or what became of one that is gone."""

    flag: str
    type: str
    choices: tuple[str, ...] = ()
    default: str = ""
    unverified: bool = False
    """Whether the default, or the fate, is from memory or from another release."""
    found: str = ""
    """What is wrong with it, or with the value that was given; empty when nothing is."""
    remedy: str = ""


@dataclass(frozen=True, kw_only=True)
class EngineFlagsResult:
    """Flags of the program for these releases; `failed` when one that was asked about is wrong."""

    program: str
    first: str
    last: str
    rows: tuple[FlagRow, ...]
    failed: bool

    @property
    def headline(self) -> str:
        """How many there are, or how many are wrong."""
        wrong = sum(bool(row.found) for row in self.rows)
        if wrong:
            return f"{counted(wrong, 'flag')} wrong"
        return f"{counted(len(self.rows), 'flag')} of {self.program} {self.first} to {self.last}"

    def lines(self) -> list[str]:
        """A flag a paragraph, as wide as the terminal."""
        return [self.headline, "", *(line for row in self.rows for line in _told(row))]


@action("engine.flags", result=EngineFlagsResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class EngineFlags:
    """List the flags of trtllm-build, or check some, each a name or flag=value."""

    flags: tuple[str, ...] = param("Flags to look at; default all", default=(), positional=True)

    def perform(self, run: Run) -> EngineFlagsResult:
        """Read the table; a flag that is unknown, obsolete or has a wrong value is told, not raised."""
        from hfbench.engines.trtllm.flags import build_flags

        table = build_flags()
        rows = tuple(_checked(text) for text in self.flags) or tuple(map(_row, table.flags.values()))
        return EngineFlagsResult(
            program=table.program,
            first=table.first,
            last=table.last,
            rows=rows,
            failed=any(row.found for row in rows),
        )


def _checked(text: str) -> FlagRow:
    from hfbench.engines.trtllm.flags import FlagFault, build_flags

    word, equals, value = text.partition("=")
    try:
        flag = build_flags().find(word)
        if equals:
            flag.read(value)
    except FlagFault as fault:
        return FlagRow(flag=fault.flag, type="", found=fault.found, remedy=fault.remedy)
    return _row(flag)


def _row(flag: Flag) -> FlagRow:
    default: Any = flag.default
    return FlagRow(
        flag=flag.name,
        type=flag.type,
        choices=flag.choices,
        default="" if default is None else str(default),
        unverified=flag.default_unverified,
    )


def _told(row: FlagRow) -> Iterator[str]:
    if row.found:
        text = f"{row.found}: {row.remedy}" if row.remedy else row.found
    else:
        default = f"default {row.default}{' (unverified)' if row.unverified else ''}" if row.default else ""
        text = "; ".join(filter(None, [" | ".join(row.choices) or row.type, default]))
    head = f"{row.flag:<{LABEL}}"
    for number, line in enumerate(paragraph(text, LABEL, most=MOST_LINES) or [""]):
        yield f"{' ' * LABEL if number else head}{line}".rstrip()
