"""Tables of the flags of each server, with the version and the day they were read."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

SERVERS = ("vllm", "sglang", "trtllm")


@dataclass(frozen=True, kw_only=True)
class ServerFlag:
    """One option of a server. `absent` says why it has none, `env` is a variable where it is no flag."""

    flag: str = ""
    choices: tuple[str, ...] = ()
    switch: bool = False
    env: str = ""
    absent: str = ""
    unverified: bool = False


@dataclass(frozen=True, kw_only=True)
class Server:
    """One server: how it is started and what its options are called."""

    name: str
    title: str
    version: str
    read: str
    source: str
    program: tuple[str, ...]
    model: str
    """The flag before the model, empty where it is a positional argument."""
    context: str
    estimate: str
    runtime: str
    port: int
    flags: Mapping[str, ServerFlag]


@lru_cache(maxsize=len(SERVERS))
def server(name: str) -> Server:
    """The table of a server; KeyError-free: `name` is one of SERVERS."""
    told = tomllib.loads((files("hfbench.engines.serving") / "data" / f"{name}.toml").read_text("utf-8"))
    flags = {
        key: ServerFlag(**{**row, "choices": tuple(row.get("choices", ()))}) for key, row in told.pop("flags").items()
    }
    return Server(name=name, flags=flags, **{**told, "read": str(told["read"]), "program": tuple(told["program"])})
