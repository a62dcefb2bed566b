"""The Pythons the doctor looks at: this one and those of the configuration, with their packages by metadata."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hfbench.environments.declared import declared, here
from hfbench.environments.probe import probe_all
from hfbench.environments.probed import Probed

if TYPE_CHECKING:
    from hfbench.doctor.system import System

_METADATA = re.compile(r"(.+?)-([^-]+)(?:-py[\d.]+)?\.(?:dist-info|egg-info)")


@dataclass(frozen=True, kw_only=True)
class Interpreter:
    """One Python: its name in the configuration or `here`, the words that start it, and what it said of itself."""

    name: str
    command: tuple[str, ...]
    told: Probed
    timeout: float = 60.0

    @property
    def local(self) -> bool:
        """Whether its folders are folders of this machine; behind a prefix nobody here can look."""
        return len(self.command) == 1


def read_pythons() -> tuple[Interpreter, ...]:
    """This Python and those that are declared, all asked at once; the answers are remembered until they change."""
    environments = (here(), *declared())
    return tuple(
        Interpreter(name=each.name, command=each.command, told=told, timeout=each.timeout)
        for each, told in zip(environments, probe_all(environments), strict=True)
    )


def installed(system: System, python: Interpreter) -> dict[str, str]:
    """All distributions of a Python by normalised name, those of earlier folders first; none behind a prefix."""
    folders: Sequence[str] = python.told.folders if python.local else ()
    found: dict[str, str] = {}
    for folder in reversed(folders):
        found |= distributions(system.names(folder))
    return found


def distributions(names: Iterable[str]) -> dict[str, str]:
    """Versions of distributions by the names of their metadata folders, `nvidia_ml_py-13.615.dist-info`."""
    found = filter(None, map(_METADATA.fullmatch, names))
    return {re.sub(r"[-_.]+", "-", match[1]).lower(): match[2] for match in found}
