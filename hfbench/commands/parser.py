"""The argument parser of all commands: its complaints are sentences like any other error."""

from __future__ import annotations

import argparse
import os
import re

from hfbench.commands.display import remedy_for
from hfbench.errors import UsageError
from hfbench.text import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself would be a tenth of what `--help` costs
    from typing import NoReturn

UNKNOWN = r"unrecognized arguments: (\S+)"
CHOICE = r"invalid choice: '(.*?)' \(choose from (.*)\)"


class Parser(argparse.ArgumentParser):
    """Raises UsageError where argparse would print its usage and exit; options are never guessed from a prefix."""

    def __init__(self, *, allow_abbrev: bool = False, **more: object) -> None:
        super().__init__(allow_abbrev=allow_abbrev, **more)  # type: ignore[arg-type]

    def _get_formatter(self) -> argparse.HelpFormatter:
        """With a width, which argparse would import shutil and three compressors to find."""
        return self.formatter_class(prog=self.prog, width=_columns() - 2)  # type: ignore[call-arg]  # all take one

    def error(self, message: str) -> NoReturn:
        """UsageError with the nearest option or choice."""
        remedy = f"{self.prog} --help lists them"
        if found := re.search(UNKNOWN, message):
            unknown = found[1].partition("=")[0]
            remedy = remedy_for(unknown) or did_you_mean(unknown, self._option_string_actions) or remedy
        elif found := re.search(CHOICE, message):
            remedy = did_you_mean(found[1], re.findall(r"[\w.-]+", found[2])) or remedy
        command = self.prog.removeprefix("hfbench").strip()  # every diagnostic begins with `hfbench:` anyway
        raise UsageError(message, where=command, remedy=remedy)


def _columns() -> int:
    """As shutil tells it: COLUMNS, else the terminal on stdout, else 80."""
    told = os.environ.get("COLUMNS", "")
    if told.isdecimal() and int(told) > 0:
        return int(told)
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:
        return 80
