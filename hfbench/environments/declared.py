"""Environments by name: what the configuration declares, a path that was given, and this Python."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from hfbench.config import HERE, EnvironmentConfig, read_config
from hfbench.errors import MissingError, UsageError
from hfbench.paths import expand
from hfbench.text import did_you_mean


@dataclass(frozen=True, kw_only=True)
class Environment:
    """A Python that actions can run in."""

    name: str
    """Its name in the configuration, `here`, or the path that was given."""
    command: tuple[str, ...]
    """The interpreter, with what starts it before it."""
    timeout: float = EnvironmentConfig.timeout
    """Seconds it may take to tell its versions."""

    @property
    def python(self) -> Path | None:
        """The interpreter as a file of this machine; None behind a prefix, where nobody here can look."""
        return Path(self.command[0]) if len(self.command) == 1 else None

    @property
    def is_here(self) -> bool:
        """Whether it is the Python that runs hfbench."""
        return self.name == HERE

    def require_program(self) -> None:
        """MissingError unless the interpreter is a file that can be run; behind a prefix nobody here can look."""
        if self.python and not (self.python.is_file() and os.access(self.python, os.X_OK)):
            raise MissingError("there is no Python that can be run", where=self.python, remedy="give the path of one")


def here() -> Environment:
    """The Python that runs hfbench."""
    return Environment(name=HERE, command=(sys.executable,))


def declared() -> tuple[Environment, ...]:
    """The environments of the configuration, in its order; ConfigError when it is wrong."""
    return tuple(_of(name, each) for name, each in read_config().environments.items())


def find(name: str) -> Environment:
    """The environment of that name, of `here`, or of an interpreter's path.

    UsageError offers the nearest name when there is none; MissingError when its interpreter is not there.
    """
    known = {each.name: each for each in (here(), *declared())}
    if name in known:
        found = known[name]
    elif "/" in name:
        found = Environment(name=name, command=(str(expand(name)),))
    else:
        add = f'write [environments.{name}] with python = "/path/to/python" into the configuration'
        raise UsageError(f"no environment is called {name!r}", remedy=did_you_mean(name, known) or add)
    found.require_program()
    return found


def _of(name: str, config: EnvironmentConfig) -> Environment:
    command = config.command or (str(expand(config.python)),)
    return Environment(name=name, command=command, timeout=config.timeout)
