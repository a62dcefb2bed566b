"""Names and summaries of declared actions, read from their files without running them: `--help` needs no more."""

from __future__ import annotations

import os
import re
from collections import namedtuple

ACTIONS_PATH = "HFBENCH_ACTIONS"
"""Environment variable: further folders with action files, separated by `:`."""

Entry = namedtuple("Entry", ["name", "summary", "module"])
"""What a file declares: an action's dotted name, the first line of its docstring, and the module's name."""

# Taking the files apart with `ast` would be two thirds of what `--help` costs.
_DECLARED = re.compile(
    rb'^@action\(\s*"(?P<name>[^"\n]+)"'
    rb"(?:(?!^class |^def |^@action\b).)*"  # the rest of the decorator, and other decorators
    rb"^class [^\n]*:\n"
    rb'(?:\s*"""\s*(?P<summary>.*?)\s*(?:"""|\n))?',
    re.MULTILINE | re.DOTALL,
)


def declared_actions(folder: str = os.path.dirname(__file__)) -> list[Entry]:
    """Every `@action("name", ...)` class in the Python files of a folder, by name."""
    found: list[Entry] = []
    for file in sorted(os.listdir(folder)):
        if file.endswith(".py"):
            with open(os.path.join(folder, file), "rb") as opened:
                text = opened.read()
            for declared in _DECLARED.finditer(text):
                summary = (declared["summary"] or b"").decode().rstrip(".")
                found.append(Entry(declared["name"].decode(), summary, file[:-3]))
    return sorted(found)
