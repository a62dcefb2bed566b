"""`hfbench config`: where the configuration is, what it says, whether it is right."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hfbench.commands.parser import Parser
from hfbench.config import Config, ConfigError, examine, names_no_binding, plain, read_config
from hfbench.exits import Exit, complain
from hfbench.paths import cache_root, config_file, jobs_root, leases_root, theme_folders
from hfbench.text import did_you_mean, printable

WHAT = {
    "path": "where it is",
    "show": "its settings",
    "check": "whether it, the theme files and the key map are right",
    "keys": "what a key map may name, and the keys that hold now",
}


class KeyBinding(NamedTuple):
    """One binding: its id in [keys], the keys that hold now, what it does, and the keys without a key map."""

    id: str
    keys: str
    label: str
    default: str


def main(words: Sequence[str]) -> int:
    """Run one `hfbench config` command; ConfigError when the file is wrong."""
    given = parser().parse_args(words)
    verbs: dict[str, Callable[[bool], int]] = {"path": _path, "show": _show, "check": _check, "keys": _keys}
    return verbs[given.what](given.json)


def parser() -> Parser:
    """What it takes."""
    made = Parser(prog="hfbench config", description="The user's configuration, a TOML file.")
    made.add_argument("what", choices=WHAT, metavar="WHAT", help="; ".join(f"{k}: {v}" for k, v in WHAT.items()))
    made.add_argument("--json", action="store_true", help="print JSON")
    return made


def toml_lines(settings: Mapping[str, Any]) -> list[str]:
    """The settings as TOML that reads back to the same."""
    lines: list[str] = []
    for table, values in _flat_tables(settings):
        lines += [f"[{table}]", *(f"{_key(key)} = {_literal(value)}" for key, value in values.items()), ""]
    return lines[:-1]


def _flat_tables(settings: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Tables with their names as TOML writes them; tables of tables give one each."""
    for name, values in settings.items():
        nested = {key: value for key, value in values.items() if isinstance(value, Mapping)}
        if not nested:
            yield name, values
        for key, value in nested.items():
            yield f"{name}.{_key(key)}", value


def _path(as_json: bool) -> int:
    places = {"config": config_file(), "jobs": jobs_root(), "cache": cache_root(), "leases": leases_root()}
    told = {name: str(path) for name, path in places.items()}
    print(json.dumps(told) if as_json else told["config"])
    return Exit.OK


def _show(as_json: bool) -> int:
    settings = plain(read_config())
    print(json.dumps(settings) if as_json else "\n".join(toml_lines(settings)))
    return Exit.OK


def _check(as_json: bool) -> int:
    """Say all that is wrong, a line each."""
    config, problems = examine()
    problems += [*_theme_problems(config), *_key_problems(config)]
    present = config_file().exists()
    if as_json:
        told: dict[str, Any] = {"ok": not problems, "present": present}
        if problems:
            told |= {"error": problems[0].parts(), "problems": [problem.parts() for problem in problems]}
        print(json.dumps(told))
    elif not problems:
        print("ok" if present else "ok: no file, defaults hold")
    for problem in problems:
        complain(problem)
    return Exit.USAGE if problems else Exit.OK


def _theme_problems(config: Config) -> list[ConfigError]:
    """Every fault of the user's theme files, and a theme that no file gives."""
    from hfbench.theming import load_themes  # Textual enters here, and in `_known_keys`

    themes = load_themes(theme_folders())
    problems = [
        ConfigError(fault.reason, where=f"{fault.file}: {fault.field}" if fault.field else fault.file)
        for fault in themes.failed
    ]
    wanted = config.ui.theme
    if wanted not in themes.loaded:
        near = did_you_mean(wanted, themes.loaded) or f"known: {', '.join(sorted(themes.loaded))}"
        problems.append(ConfigError(f"ui.theme: there is no theme {wanted!r}", where=config_file(), remedy=near))
    return problems


def _key_problems(config: Config) -> list[ConfigError]:
    if not config.keys:
        return []
    known = [binding.id for binding in _known_keys(config)]
    return [names_no_binding(name, known) for name in config.keys if name not in known]


def _keys(as_json: bool) -> int:
    """List what a key map may name, with the keys that hold now."""
    keys = _known_keys(read_config())
    if as_json:
        print(json.dumps([each._asdict() for each in keys]))
        return Exit.OK
    ids, held = (max(len(printable(str(each[column]))) for each in keys) for column in (0, 1))
    for each in keys:
        was = f"  (was {each.default})" if each.keys != each.default else ""
        print(f"{each.id:<{ids}}  {printable(each.keys):<{held}}  {each.label}{was}")
    return Exit.OK


def _known_keys(config: Config) -> list[KeyBinding]:
    from hfbench.app import bindings  # every screen: only for who asks about keys

    return [KeyBinding(name, config.keys.get(name, keys), label, keys) for name, keys, label in bindings()]


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
