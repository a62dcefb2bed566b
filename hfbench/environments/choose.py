"""Where a job runs: in the environment that was asked for, else here, else in the first that has what it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hfbench.environments.declared import Environment, declared, find
from hfbench.environments.probe import probe
from hfbench.environments.probed import LEAST_PYTHON, Probed
from hfbench.errors import MissingError, UsageError


class Needing(Protocol):
    """What is asked of an action's declaration."""

    @property
    def name(self) -> str:
        """Its dotted name."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Modules its worker must be able to import."""

    def missing(self) -> list[str]:
        """Those that this Python lacks."""

    def require(self) -> None:
        """MissingError where it lacks some."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a job runs, as its request keeps it; all empty for this Python."""

    environment: str = ""
    command: tuple[str, ...] = ()
    why: str = ""
    """A sentence where nobody asked for it."""


def place_for(action: Needing, asked: str = "") -> Place:
    """Where to run an action; the answers of environments are remembered, the first may take seconds.

    UsageError for a name that nobody declared, MissingError where that environment, or every one, lacks something.
    """
    if asked:
        return _asked_for(action, find(asked))
    lacking = action.missing()
    if not lacking or not (there := declared()):
        return Place()
    looked = []
    for environment in there:
        if not (unfit := unfit_for(action, probe(environment))):
            why = f"this Python lacks {', '.join(lacking)}: it runs in the environment {environment.name!r}"
            return Place(environment=environment.name, command=environment.command, why=why)
        looked.append(f"{environment.name} ({unfit})")
    try:
        action.require()
    except MissingError as error:
        found = f"{error.found}; environments looked at: {', '.join(looked)}"
        raise MissingError(found, where=error.where, remedy=error.remedy) from None
    return Place()


def refuse_inline(action: Needing, asked: str, detach: str) -> None:
    """UsageError where an environment was asked for an action that no worker runs; `detach` says how one would."""
    if asked:
        found = f"it only reads, in this process, and cannot run in the environment {asked!r}"
        raise UsageError(found, where=action.name, remedy=detach)


def unfit_for(action: Needing, told: Probed) -> str:
    """Why an environment cannot run an action, in a clause; empty when it can."""
    if not told.answered:
        return told.trouble
    if told.old:
        return f"Python {told.python}, and hfbench needs {'.'.join(map(str, LEAST_PYTHON))}"
    lacking = told.lacks(action.needs)
    if lacking:
        return f"no {', '.join(lacking)}"
    return told.trouble if "torch" in action.needs else ""


def _asked_for(action: Needing, environment: Environment) -> Place:
    if environment.is_here:
        return Place()
    told = probe(environment)
    if unfit := unfit_for(action, told):
        lacking = told.lacks(action.needs) if told.answered and not told.old else ()
        install = f"install them with: {' '.join(environment.command)} -m pip install {' '.join(lacking)}"
        raise MissingError(
            f"the environment {environment.name!r} cannot run {action.name}: {unfit}",
            where=" ".join(environment.command),
            remedy=install if lacking else "hfbench environments shows what each has",
        )
    return Place(environment=environment.name, command=environment.command)
