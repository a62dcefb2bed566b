"""`hfbench config`: where the configuration is, what it says, whether it is right."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any

from hfbench.config import plain, read_config
from hfbench.exits import Exit
from hfbench.paths import cache_root, config_file, jobs_root, leases_root


def main(words: Sequence[str]) -> int:
    """Run one `hfbench config` command; ConfigError when the file is wrong."""
    parser = argparse.ArgumentParser(prog="hfbench config", description="The user's configuration, a TOML file.")
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
        print(json.dumps(settings) if given.json else "\n".join(_toml(settings)))
    else:
        present = config_file().exists()
        print(
            json.dumps({"ok": True, "present": present})
            if given.json
            else ("ok" if present else "ok: no file, defaults hold")
        )
    return Exit.OK


def _toml(settings: Mapping[str, Any]) -> list[str]:
    """The settings as TOML that reads back to the same; JSON's strings, numbers and lists are TOML's too."""
    lines: list[str] = []
    for table, values in settings.items():
        lines += [
            f"[{table}]",
            *(f"{json.dumps(k) if '.' in k else k} = {json.dumps(v)}" for k, v in values.items()),
            "",
        ]
    return lines[:-1]
