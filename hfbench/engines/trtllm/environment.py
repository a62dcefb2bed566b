"""Where TensorRT-LLM is: this Python or a declared environment, told by asking it, never by importing it here."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hfbench.engines.trtllm.flags import build_flags, conversion
from hfbench.engines.versions import numbers
from hfbench.environments import Environment, Probed, declared, here, probe
from hfbench.errors import MissingError, UsageError

DISTRIBUTION = "tensorrt-llm"
BUILD = "trtllm-build"


@dataclass(frozen=True, kw_only=True)
class Toolkit:
    """TensorRT-LLM in one environment."""

    environment: Environment
    probed: Probed
    version: str

    @property
    def has_plans(self) -> bool:
        """Whether it still has the TensorRT backend: the last line with it is that of the flag table."""
        return _line(self.version) <= _line(build_flags().last)

    @property
    def is_listed(self) -> bool:
        """Whether the flag table holds for it."""
        return _line(build_flags().first) <= _line(self.version) <= _line(build_flags().last)

    @property
    def is_local(self) -> bool:
        """Whether its files and GPUs are those of this machine, and not behind a prefix."""
        return self.environment.python is not None

    def program(self, name: str) -> list[str]:
        """The words that start one of its programs; MissingError where it is not beside the interpreter."""
        command = self.environment.command
        if self.environment.python is None:
            return [*command[:-1], name]  # found by the PATH behind the prefix
        path = Path(command[0]).parent / name
        if not (path.is_file() and os.access(path, os.X_OK)):
            remedy = f"install TensorRT-LLM of at most {build_flags().last} there"
            raise MissingError(f"has no program {name}", where=path.parent, remedy=remedy)
        return [str(path)]

    def script(self, relative: str, examples: str = "") -> list[str]:
        """The words that run one of its examples; MissingError where the folder does not hold it."""
        folder = examples or os.environ.get("TRTLLM_EXAMPLES", "") or conversion()["containers"]
        path = Path(folder) / relative
        if self.is_local and not path.is_file():
            remedy = "check out TensorRT-LLM of the same version, and give --set examples=ITS/examples"
            raise MissingError("the conversion of TensorRT-LLM is not there", where=path, remedy=remedy)
        return [*self.environment.command, str(path)]


def toolkits() -> Iterator[Toolkit]:
    """TensorRT-LLM wherever it is: this Python, then the declared environments in their order."""
    from hfbench.engines.machine import distributions

    if DISTRIBUTION in distributions(sys.path):
        yield from _of(here())
    for environment in declared():
        yield from _of(environment)


def find_toolkit() -> Toolkit:
    """The first one that builds plans, else the first there is; MissingError when there is none."""
    found = list(toolkits())
    if not found:
        raise MissingError(
            "TensorRT-LLM is in no environment",
            where="engine.build",
            remedy=f"declare one with TensorRT-LLM {build_flags().first} to {build_flags().last}: "
            '[environments.trtllm] python = "/path/to/python" in the configuration',
        )
    return next((each for each in found if each.has_plans), found[0])


def require_listed(toolkit: Toolkit) -> None:
    """UsageError for a version older than the flag table."""
    if not toolkit.is_listed:
        table = build_flags()
        raise UsageError(
            f"TensorRT-LLM {toolkit.version} is older than the table of flags, for {table.first} to {table.last}",
            where=f"environment {toolkit.environment.name}",
            remedy="use a newer one",
        )


def _of(environment: Environment) -> Iterator[Toolkit]:
    probed = probe(environment)
    if version := probed.versions.get(DISTRIBUTION):
        yield Toolkit(environment=environment, probed=probed, version=version)


def _line(version: str) -> tuple[int, ...]:
    """Major and minor number: `1.2.1` and `1.2.0rc4` are of one line."""
    return tuple(numbers(version)[:2])
