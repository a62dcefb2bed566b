"""The user's configuration: TOML read into frozen dataclasses; an unknown key is an error that names the nearest."""

from __future__ import annotations

import dataclasses
import errno
import json
import math
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from hfbench.errors import UsageError
from hfbench.paths import config_file
from hfbench.text import clip, did_you_mean, printable

LISTS_KEYS = "hfbench config keys"
"""The command that lists what a key map may name."""
HERE = "here"
"""The name of the Python that runs hfbench, where environments are named."""
EXECUTOR_KINDS = ("local", "slurm", "ray", "ssh")
LARGEST = 1 << 20
"""Bytes of a configuration file at most."""
LONGEST_VALUE = 60
"""Characters of a wrong value inside a sentence."""
EXPECTED = {dict: "a table", list: "a list", str: "text", bool: "true or false", float: "a number", int: "an integer"}


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
class EnginesConfig:
    """Where engines are looked for."""

    roots: tuple[str, ...] = ()
    """Folders with engines below them; `~` is the home folder. Empty is `engines` in the current folder."""


@dataclass(frozen=True, kw_only=True)
class UiConfig:
    """How the workbench looks and feels."""

    theme: str = "hfbench-dark"
    ascii: bool = False
    """Draw with ASCII only; chosen by itself when the terminal's encoding is not UTF-8."""
    mouse: bool = True
    refresh: float = 1.0
    """Seconds between two looks at the GPUs; at least 0.25."""
    baud: int = 0
    """Bits a second of a slow line, such as 9600: no more is painted than it carries. 0 asks the terminal."""


@dataclass(frozen=True, kw_only=True)
class EnvironmentConfig:
    """Another Python in which actions can run: an interpreter, or a command whose last word is one."""

    python: str = ""
    """Path of the interpreter; `~` is the home folder."""
    command: tuple[str, ...] = ()
    """A prefix such as a container or srun, and the interpreter as its last word."""
    timeout: float = 60.0
    """Seconds it may take to tell its versions."""


@dataclass(frozen=True, kw_only=True)
class LicencesConfig:
    """Under which licences a model may be built from: SPDX ids, or as model cards write them; `*` for anything."""

    allow: tuple[str, ...] = ()
    """When it names any, a model must have one of them."""
    deny: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SignaturesConfig:
    """Whose signatures are trusted where none are named."""

    keys: tuple[str, ...] = ()
    """Public keys in PEM; `~` is the home folder."""
    certificates: tuple[str, ...] = ()
    """Certificates in PEM, up to a root."""


@dataclass(frozen=True, kw_only=True)
class HubConfig:
    """How hubs are used."""

    endpoint: str = ""
    """The endpoint that is meant where none is named; HF_ENDPOINT goes before it."""
    offline: bool = False
    """Ask no network, as HF_HUB_OFFLINE does."""


@dataclass(frozen=True, kw_only=True)
class EndpointConfig:
    """One hub. Its token is told by reference: the file of settings never holds a secret."""

    url: str = ""
    token_env: str = ""
    """An environment variable."""
    token_file: str = ""
    """A file that holds the token and nothing else."""
    token_keyring: str = ""
    """`SERVICE/USER` of the system's keyring."""


@dataclass(frozen=True, kw_only=True)
class ExecutorConfig:
    """One place where jobs run other than this machine's own processes; `hfbench/jobs/executors/spec.py` judges it."""

    kind: str = ""
    """`local`, `slurm`, `ray` or `ssh`."""
    partition: str = ""
    """Slurm: empty is the cluster's default."""
    address: str = ""
    """Ray: `ray://HOST:PORT`, or `auto`."""
    host: str = ""
    """ssh: a name of your ssh configuration, or `USER@HOST`."""
    python: str = ""
    """The interpreter of the far side that has hfbench; Ray and ssh."""
    folder: str = ""
    """Where jobs are kept on the far side while they run; Ray and ssh."""
    gpus: int = 0
    """For each job; 0 asks for one where the action or its device does."""
    cpus: int = 0
    memory: str = ""
    """Slurm's `--mem`; Ray takes it in bytes, or as 16G."""
    gres: str = ""
    """Slurm's `--gres`; it goes before `gpus`."""
    time: str = ""
    """Slurm's `--time`: the limit of the executor, beside hfbench's own `--timeout`."""
    account: str = ""
    options: tuple[str, ...] = ()
    """Further words for `sbatch`, one an entry."""
    requeue: bool = True
    """Whether Slurm may run a job again whose node was lost or that gave way to another."""
    poll: float = 10.0
    """Seconds between two questions to the executor, at most."""
    patience: float = 86_400.0
    """Seconds for which an executor may be out of reach before its jobs are given up."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """All settings, defaults filled in."""

    models: ModelsConfig = ModelsConfig()
    ui: UiConfig = UiConfig()
    keys: dict[str, str] = field(default_factory=dict)
    """Binding id to key or comma-separated keys, as `hfbench config keys` lists them."""
    environments: dict[str, EnvironmentConfig] = field(default_factory=dict)
    """Other Pythons by name, in the order they are asked: `[environments.NAME]`."""
    licences: LicencesConfig = LicencesConfig()
    signatures: SignaturesConfig = SignaturesConfig()
    engines: EnginesConfig = EnginesConfig()
    hub: HubConfig = HubConfig()
    endpoints: dict[str, EndpointConfig] = field(default_factory=dict)
    """Hubs by name: `[endpoints.lab]` with `url = "http://lab:8080"`."""
    executors: dict[str, ExecutorConfig] = field(default_factory=dict)
    """Places to run jobs by name: `[executors.h100]` with `kind = "slurm"` and `partition = "gpu"`."""


def read_config(path: Path | None = None) -> Config:
    """The configuration in a file, defaults when there is none; ConfigError names the key and its place."""
    config, problems = examine(path)
    if problems:
        raise problems[0]
    return config


def stamp_of(path: Path) -> tuple[int, int] | None:
    """What tells a file from what it was before it was written; None where there is none."""
    try:
        told = path.stat()
    except (OSError, ValueError):
        return None
    return told.st_mtime_ns, told.st_size


def examine(path: Path | None = None) -> tuple[Config, list[ConfigError]]:
    """The configuration in a file and all that is wrong with it, in the file's order; defaults stand in for that."""
    import tomllib  # 17 ms, and --help needs none of it

    path = path or config_file()
    try:
        data = tomllib.loads(_read(path))
    except FileNotFoundError:
        return Config(), []
    except UnicodeDecodeError as error:
        return Config(), [ConfigError(f"byte {error.start} is not UTF-8", where=path, remedy="save the file as UTF-8")]
    except OSError as error:
        return Config(), [ConfigError(f"cannot be read: {error.strerror}", where=path)]
    except tomllib.TOMLDecodeError as error:
        return Config(), [ConfigError(f"is not TOML: {error}", where=path)]
    except (ValueError, RecursionError):  # a number of 5,000 digits, brackets in brackets
        return Config(), [ConfigError("is not a configuration: a value is too long or too deep", where=path)]
    reading = _Reading(path)
    config: Config = reading.table(Config, data, "")
    models, engines = (_named_roots(reading, each, getattr(config, each).roots) for each in ("models", "engines"))
    config = replace(
        config, models=replace(config.models, roots=models), engines=replace(config.engines, roots=engines)
    )
    if not 0.25 <= config.ui.refresh < math.inf:
        found = f"ui.refresh is {config.ui.refresh}, not a number of at least 0.25"
        reading.tell(found, remedy="a GPU driver pays for each look")
        config = replace(config, ui=replace(config.ui, refresh=UiConfig.refresh))
    usable = {name: each for name, each in config.environments.items() if _is_usable(name, each, reading)}
    for name, executor in config.executors.items():
        _judge_executor(name, executor, reading)
    return replace(config, environments=usable), reading.problems


def _judge_executor(name: str, executor: ExecutorConfig, reading: _Reading) -> None:
    """Tell what is wrong with an executor; whoever asks for it hears the same."""
    if executor.kind not in EXECUTOR_KINDS:
        near = did_you_mean(executor.kind, EXECUTOR_KINDS)
        reading.tell(f"executors.{name}.kind is {executor.kind!r}", near or f"give {', '.join(EXECUTOR_KINDS)}")
    if name in EXECUTOR_KINDS or not name.strip() or set(name) & set(":,"):
        told = "choose one that is no kind and holds neither : nor ,"
        reading.tell(f"{name!r} cannot be the name of an executor", told)


def _is_usable(name: str, environment: EnvironmentConfig, reading: _Reading) -> bool:
    """Whether an environment says what to start; what is wrong with it is told."""
    table, count = f"environments.{name}", len(reading.problems)
    words = (environment.python, *environment.command)
    if name == HERE or not name.strip() or "/" in name:
        found = f"{name!r} cannot be the name of an environment"
        reading.tell(found, f"{HERE!r} is the Python of hfbench, and a name with a / is a path: choose another")
    if bool(environment.python) == bool(environment.command):
        found = "both python and command" if environment.python else "neither python nor command"
        reading.tell(f"{table} has {found}", 'give one: python = "/path/to/python" or command = ["srun", "python3"]')
    elif not words[-1] or any("\0" in word for word in words):
        reading.tell(f"{table} names no program that could be started", "give the path of a Python as the last word")
    if not 0 < environment.timeout < math.inf:
        reading.tell(f"{table}.timeout is {environment.timeout}, not a number of seconds above 0")
    return len(reading.problems) == count


def _named_roots(reading: _Reading, table: str, roots: tuple[str, ...]) -> tuple[str, ...]:
    """Those folders that have a name; the others are told."""
    named = tuple(root for root in roots if root.strip() and "\0" not in root)
    for _ in range(len(roots) - len(named)):
        reading.tell(f"{table}.roots names a folder without a name", remedy="remove the empty entry")
    return named


def _read(path: Path) -> str:
    """The text of a regular file; OSError for any other, which could be waited for or read without end."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        kind = os.fstat(file.fileno())
        if not stat.S_ISREG(kind.st_mode) or kind.st_size > LARGEST:
            raise OSError(errno.EINVAL, "it is no regular file of a sensible size", str(path))
        return file.read(LARGEST).decode("utf-8")


def names_no_binding(name: str, known: Iterable[str]) -> ConfigError:
    """The complaint about an entry of [keys] whose name is not among the known binding ids."""
    near = did_you_mean(name, known)
    remedy = f"{near} `{LISTS_KEYS}` lists them all" if near else f"{LISTS_KEYS} lists them"
    return ConfigError(f"keys.{name} names no binding", where=config_file(), remedy=remedy)


def plain(config: Config) -> dict[str, Any]:
    """The configuration as nested plain data."""
    return dataclasses.asdict(config)


class _Reading:
    """Turns the tables of one file into dataclasses and keeps what is wrong on the way."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[ConfigError] = []

    def tell(self, found: str, remedy: str = "") -> None:
        """Keep something that is wrong."""
        self.problems.append(ConfigError(found, where=self.path, remedy=remedy))

    def table(self, kind: type, data: dict[str, Any], prefix: str) -> Any:
        """One table of the file as its dataclass."""
        hints, given = get_type_hints(kind), {}
        for key, value in data.items():
            if key not in hints:
                near = did_you_mean(key, hints) or f"known: {', '.join(hints)}"
                if kind is EndpointConfig and key == "token":
                    near = "a token is never kept here: name it with token_env, token_file or token_keyring"
                self.tell(f"unknown key {prefix + key!r}", near)
            elif (read := self._value(hints[key], value, prefix + key)) is not None:
                given[key] = read
        return kind(**given)

    def _value(self, hint: Any, value: Any, name: str) -> Any:
        """A value of the kind the dataclass wants; None when it is of another, which is told."""
        wanted = _toml_type(hint)
        if wanted is float and type(value) is int and abs(value) < 2**53:
            value = float(value)
        as_wanted = type(value) is wanted
        if not as_wanted:
            remedy = f"write [{name}]" if wanted is dict else ""
            if wanted is list and isinstance(value, str):
                remedy = f"write {name.rpartition('.')[2]} = {json.dumps(value.split(), ensure_ascii=False)}"
            self.tell(f"{name} is {_shown(value)}, not {EXPECTED[wanted]}", remedy)
            return None
        if wanted is dict:
            if isinstance(hint, type):
                return self.table(hint, value, f"{name}.")
            inner = get_args(hint)[1]
            return self._texts(value, name) if inner is str else self._tables(inner, value, name)
        if wanted is list:
            items = [self._value(get_args(hint)[0], item, name) for item in value]
            return tuple(item for item in items if item is not None)
        return value

    def _tables(self, kind: type, table: dict[str, Any], prefix: str) -> dict[str, Any]:
        """A table of tables of one kind, by their names."""
        read = {name: self._value(kind, value, f"{prefix}.{name}") for name, value in table.items()}
        return {name: value for name, value in read.items() if value is not None}

    def _texts(self, table: dict[str, Any], prefix: str) -> dict[str, str]:
        """A table of texts. Tables inside it are names with dots that nobody quoted: `app.quit = "Q"`."""
        texts: dict[str, str] = {}
        for name, value in _flat(table):
            if name in texts:
                self.tell(f"{prefix}.{name} stands twice, with and without quotes", "keep one of them")
            elif (read := self._value(str, value, f"{prefix}.{name}")) is not None:
                texts[name] = read
        return texts


def _toml_type(hint: Any) -> type:
    """What TOML gives for a field of this type."""
    if dataclasses.is_dataclass(hint):
        return dict
    toml: dict[Any, type] = {tuple: list, None: hint}
    return toml.get(get_origin(hint), dict)


def _flat(table: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The values of nested tables, in order, under their names joined by dots; however deep they are."""
    waiting = list(reversed(table.items()))
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(f"{name}.{key}", inner) for key, inner in reversed(value.items())]
        else:
            yield name, value


def _shown(value: object) -> str:
    """A value of the file inside a sentence."""
    if isinstance(value, (dict, list)):
        return "a table" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and abs(value) >= 2**64:
        return "a huge number"  # Python refuses to spell out those of 4,300 digits
    return clip(printable(repr(value)), LONGEST_VALUE, ellipsis="...")
