"""Reads where a job is to run: `local`, `slurm:PARTITION`, `ray://HOST:PORT`, `ssh:HOST`, or a name of config.toml."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from hfbench.config import EXECUTOR_KINDS as KINDS
from hfbench.config import ExecutorConfig, read_config
from hfbench.errors import UsageError
from hfbench.text import did_you_mean

LOCAL = "local"
TARGETS = {"slurm": "partition", "ray": "address", "ssh": "host"}
"""The setting that says which one of its kind is meant."""
ONLY_FOR = {
    "gpus": ("slurm", "ray"),
    "cpus": ("slurm", "ray"),
    "memory": ("slurm", "ray"),
    "requeue": ("slurm", "ray"),
    "python": ("ray", "ssh"),
    "folder": ("ray", "ssh"),
    **dict.fromkeys(("gres", "time", "account", "options"), ("slurm",)),
}
"""The kinds that heed a setting, where not all do."""
FORMS = "local, slurm:PARTITION, ray://HOST:PORT, ray:auto, ssh:HOST, or a name of [executors] in config.toml"
WORD = re.compile(r"[A-Za-z0-9_.@:\[\]%/+-]+")
"""What a partition, host or address is made of. None of it begins with `-`: it becomes a word of a command."""


class BadPlace(UsageError):
    """What was given for `--on` names no place where a job could run."""


@dataclass(frozen=True, kw_only=True)
class Where:
    """A place where jobs run. `text` is what was asked for; `target` the partition, address or host, maybe empty."""

    kind: str = LOCAL
    target: str = ""
    text: str = LOCAL
    settings: ExecutorConfig = field(default_factory=ExecutorConfig)

    @property
    def is_local(self) -> bool:
        """True when the job is a process of this machine, started as ever."""
        return self.kind == LOCAL

    @property
    def shares_disk(self) -> bool:
        """True when what runs there sees this machine's folders: a local process, or a node of a Slurm cluster."""
        return self.kind in (LOCAL, "slurm")


def parse_on(text: str, named: Mapping[str, ExecutorConfig] | None = None) -> Where:
    """The place that `--on` names, checked in form alone; BadPlace otherwise. Empty is local.

    Settings may follow after commas: `slurm:gpu,gres=gpu:a100:1,time=30m`. `named` stands in for config.toml.
    """
    base, *settings = text.strip().split(",")
    if base in ("", LOCAL):
        if settings:
            raise BadPlace(f"{text!r}: local takes no settings", where="on", remedy="remove them")
        return Where()
    where = _by_form(base, text) or _by_name(base, text, read_config().executors if named is None else named)
    where = dataclasses.replace(where, text=text.strip(), settings=_with(where.settings, settings, text))
    _refuse_unheeded(where)
    return where


def known_places(named: Mapping[str, ExecutorConfig] | None = None) -> tuple[str, ...]:
    """What a form may offer: local, and the names of config.toml."""
    return LOCAL, *(read_config().executors if named is None else named)


def _by_form(base: str, text: str) -> Where | None:
    """The place of a text that says its kind itself; None when it can only be a name."""
    kind, colon, target = base.partition(":")
    if kind not in TARGETS or (kind != "slurm" and not colon):
        return None
    if colon and not target:
        what = TARGETS[kind]
        raise BadPlace(f"{text!r} names no {what}", where="on", remedy=f"write {kind}:{what.upper()}")
    target = base if target.startswith("//") else target
    return Where(kind=kind, target=_sound(target, text), text=text)


def _by_name(base: str, text: str, named: Mapping[str, ExecutorConfig]) -> Where:
    settings = named.get(base)
    if settings is None:
        near = did_you_mean(base.partition(":")[0], (*KINDS, *named))
        remedy = f"{near} Give {FORMS}" if near else f"give {FORMS}"
        raise BadPlace(f"no executor is called {base!r}", where="on", remedy=remedy)
    table = f"executors.{base}"
    if settings.kind not in KINDS:
        near = did_you_mean(settings.kind, KINDS) or f"kinds: {', '.join(KINDS)}"
        raise BadPlace(f"{table}.kind is {settings.kind!r}", where="config.toml", remedy=near)
    if settings.kind == LOCAL:
        return Where(text=text)
    what = TARGETS[settings.kind]
    target = str(getattr(settings, what))
    if not target and settings.kind != "slurm":
        raise BadPlace(f"{table} has no {what}", where="config.toml", remedy=f'add {what} = "..."')
    return Where(kind=settings.kind, target=_sound(target, text), text=text, settings=settings)


def _sound(target: str, text: str) -> str:
    """A target that is safe as a word of a command."""
    if target and (target.startswith("-") or not WORD.fullmatch(target)):
        raise BadPlace(f"{text!r} cannot be a place: {target!r} is no name", where="on", remedy=f"give {FORMS}")
    return target


def _with(settings: ExecutorConfig, words: list[str], text: str) -> ExecutorConfig:
    """The settings with those of the text on top; every one is checked here, whatever file it came from."""
    hints, given = get_type_hints(ExecutorConfig), dict[str, Any]()
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in hints or name in ("kind", "options", *TARGETS.values()):
            near = did_you_mean(name, hints) or "settings are written NAME=VALUE after a comma"
            raise BadPlace(f"{text!r} has no setting {name!r} to give", where="on", remedy=near)
        given[name] = _value(hints[name], value, name)
    settings = dataclasses.replace(settings, **given)
    for name in ("poll", "patience"):
        if not 0 < getattr(settings, name) < math.inf:
            raise BadPlace(f"{name} is {getattr(settings, name)}, not a number of seconds above 0", where=text)
    for name in ("gpus", "cpus"):
        if getattr(settings, name) < 0:
            raise BadPlace(f"{name} is {getattr(settings, name)}, which is below 0", where=text)
    return settings


def _refuse_unheeded(where: Where) -> None:
    """BadPlace for a setting that a place of this kind would pass over without a word."""
    usual = ExecutorConfig()
    for name, kinds in ONLY_FOR.items():
        if where.kind not in (LOCAL, *kinds) and getattr(where.settings, name) != getattr(usual, name):
            heeded = ", ".join(name for name, kinds in ONLY_FOR.items() if where.kind in kinds)
            remedy = f"leave it out; {where.kind} takes {heeded}, poll, patience"
            raise BadPlace(f"{name} is a setting of {' and '.join(kinds)} alone", where=where.text, remedy=remedy)


def _value(hint: Any, value: str, name: str) -> Any:
    """A setting of the text as its kind."""
    try:
        if hint is bool:
            return {"true": True, "false": False}[value]
        return hint(value)
    except (KeyError, ValueError):
        raise BadPlace(f"{name} is {value!r}, not {hint.__name__}", where="on") from None
