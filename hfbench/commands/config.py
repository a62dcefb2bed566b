"""`hfbench config`: where the configuration is, what it says, whether it is right."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from hfbench.commands.parser import Parser
from hfbench.config import plain, read_config
from hfbench.exits import Exit
from hfbench.paths import cache_root, config_file, jobs_root, leases_root
from hfbench.text import printable


def main(words: Sequence[str]) -> int:
    """Run one `hfbench config` command; ConfigError when the file is wrong."""
    parser = Parser(prog="hfbench config", description="The user's configuration, a TOML file.")
    parser.add_argument(
        "what", choices=("path", "show", "check"), help="its place, its settings, or only whether it is right"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(words)
    if given.what == "path":
        places = {"config": config_file(), "jobs": jobs_root(), "cache": cache_root(), "leases": leases_root()}
        told = {name: str(path) for name, path in places.items()}
        print(json.dumps(told) if given.json else told["config"])
        return Exit.OK
    settings = plain(read_config())
    if given.what == "show":
        print(json.dumps(settings) if given.json else "\n".join(toml_lines(settings)))
    else:
        present = config_file().exists()
        print(
            json.dumps({"ok": True, "present": present})
            if given.json
            else ("ok" if present else "ok: no file, defaults hold")
        )
    return Exit.OK


def toml_lines(settings: Mapping[str, Any]) -> list[str]:
    """The settings as TOML that reads back to the same."""
    lines: list[str] = []
    for table, values in settings.items():
        lines += [f"[{table}]", *(f"{_key(key)} = {_literal(value)}" for key, value in values.items()), ""]
    return lines[:-1]


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _string(name)


def _literal(value: object) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_literal, value))}]"
    return json.dumps(value)


def _string(text: str) -> str:
    """A TOML string that is safe to print: what a terminal would act on is written as an escape."""
    safe = (c if printable(c) == c and c not in '"\\' else f"\\U{ord(c):08x}" for c in text)
    return f'"{"".join(safe)}"'
