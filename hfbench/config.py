"""The user's configuration: TOML read into frozen dataclasses; an unknown key is an error that names the nearest."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from hfbench.errors import UsageError
from hfbench.paths import config_file
from hfbench.text import did_you_mean, printable


class ConfigError(UsageError):
    """The configuration file cannot be used."""


@dataclass(frozen=True, kw_only=True)
class ModelsConfig:
    """Where models are looked for."""

    roots: tuple[str, ...] = ()
    """Folders whose subfolders are models; `~` is the home folder."""
    cache: str = ""
    """The Hugging Face cache; empty follows HF_HUB_CACHE and HF_HOME."""


@dataclass(frozen=True, kw_only=True)
class UiConfig:
    """How the workbench looks and feels."""

    theme: str = "hfbench-dark"
    ascii: bool = False
    """Draw with ASCII only; chosen by itself when the terminal's encoding is not UTF-8."""
    mouse: bool = True
    refresh: float = 1.0
    """Seconds between two looks at the GPUs; at least 0.25."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings, defaults filled in."""

    models: ModelsConfig = ModelsConfig()
    ui: UiConfig = UiConfig()
    keys: dict[str, str] = field(default_factory=dict)
    """Binding id to key or comma-separated keys, as `hfbench config show` lists them."""


def read_config(path: Path | None = None) -> Config:
    """The configuration in a file, defaults when there is none; ConfigError names the key and its place."""
    import tomllib  # 17 ms, and --help needs none of it

    path = path or config_file()
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Config()
    except UnicodeDecodeError as error:
        raise ConfigError(f"byte {error.start} is not UTF-8", where=path, remedy="save the file as UTF-8") from error
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", where=path) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"is not TOML: {error}", where=path) from error
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, brackets in brackets
        raise ConfigError("is not a configuration: a value is too long or too deep", where=path) from error
    config: Config = _table(Config, data, "", path)
    if not 0.25 <= config.ui.refresh < math.inf:
        found = f"ui.refresh is {config.ui.refresh}, not a number of at least 0.25"
        raise ConfigError(found, where=path, remedy="a GPU driver pays for each look")
    return config


def plain(config: Config) -> dict[str, Any]:
    """The configuration as nested plain data."""
    return dataclasses.asdict(config)


def _table(kind: type, data: dict[str, Any], prefix: str, path: Path) -> Any:
    """One table of the file as its dataclass."""
    hints, given = get_type_hints(kind), {}
    for key, value in data.items():
        if key not in hints:
            near = did_you_mean(key, hints) or f"known: {', '.join(hints)}"
            raise ConfigError(f"unknown key {prefix + key!r}", where=path, remedy=near)
        given[key] = _value(hints[key], value, prefix + key, path)
    return kind(**given)


def _value(hint: Any, value: Any, name: str, path: Path) -> Any:
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if not isinstance(value, dict):
            raise ConfigError(f"{name} is {printable(repr(value))}, not a table", where=path, remedy=f"write [{name}]")
        return _table(hint, value, f"{name}.", path)
    if get_origin(hint) is tuple:
        if not isinstance(value, list):
            raise ConfigError(f"{name} is {printable(repr(value))}, not a list", where=path)
        return tuple(_value(get_args(hint)[0], item, name, path) for item in value)
    if get_origin(hint) is dict:
        if not isinstance(value, dict):
            raise ConfigError(f"{name} is {printable(repr(value))}, not a table", where=path, remedy=f"write [{name}]")
        return {key: _value(get_args(hint)[1], item, f"{name}.{key}", path) for key, item in value.items()}
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint:
        expected = {str: "text", bool: "true or false", float: "a number", int: "an integer"}[hint]
        raise ConfigError(f"{name} is {printable(repr(value))}, not {expected}", where=path)
    return value
