"""Shows the manual page on a terminal: through `man` where there is one, else as plain text."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator

from hfbench.line_width import paragraph

SPECIAL = {"\\&": "", "\\-": "-", "\\e": "\\", "\\(aq": "'", "\\(ga": "`", "\\(ha": "^", "\\(ti": "~", "\\(dq": '"'}
"""What `commands/man.py` writes for characters that roff would take for something else."""
ESCAPE = re.compile(r"\\f[BIPR]|\\\[u([0-9A-F]+)\]|\\\(..|\\.")


def show(page: str) -> None:
    """Show a page of roff in a pager of the user's choice, as `man` does."""
    if (man := shutil.which("man")) is not None:
        done = subprocess.run([man, "-l", "-"], input=page.encode(), stderr=subprocess.PIPE, check=False)
        if done.returncode == 0:
            return
    print(*plain(page), sep="\n")  # no man, or one that reads no page from its input


def plain(page: str) -> Iterator[str]:
    """The lines of a page that uses only the macros of `commands/man.py`."""
    indent = 4
    tag = False
    for line in page.splitlines():
        macro, _, rest = line.partition(" ") if line.startswith(".") else ("", "", line)
        told = ESCAPE.sub(_character, rest)
        match macro:
            case ".TH" | ".br":
                pass
            case ".SH":
                indent = 4
                yield from ("", told)
            case ".SS":
                indent = 4
                yield from ("", *paragraph(told, first="  ", later="      "))
            case ".TP":
                indent, tag = 8, True
            case _:
                left = " " * (4 if tag else indent)
                yield from paragraph(told, first=left, later=left)
                tag = False


def _character(found: re.Match[str]) -> str:
    if found[1]:
        return chr(int(found[1], 16))
    return SPECIAL.get(found[0], "")
