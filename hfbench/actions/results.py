"""Results as data: the fields of a result class and what it derives for lists, scripts and exit codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hfbench.codec import encode
from hfbench.exits import Exit

DERIVED = ("headline", "failed", "exit")
"""Properties a result class may have: a line for lists, whether the thing asked about is wrong, and the exit code."""


def result_data(result: object) -> dict[str, Any]:
    """A result as JSON data, written the same by a job, a script and the command line."""
    found = encode(result)
    data: dict[str, Any] = found if isinstance(found, dict) else {} if found is None else {"value": found}
    for name in DERIVED:
        if name not in data and (value := getattr(result, name, None)) is not None:
            data[name] = encode(value)
    return data


def exit_of(data: Mapping[str, Any]) -> int:
    """The exit code of a result: its own, else 1 when it says that it failed."""
    own = data.get("exit")
    return own if isinstance(own, int) else int(Exit.FAILED if data.get("failed") else Exit.OK)
