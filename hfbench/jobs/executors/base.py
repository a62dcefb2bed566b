"""What an executor is: a place to which a keeper hands jobs, of which it asks how they are, and that stops them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from hfbench.codec import decode, encode
from hfbench.errors import HfbenchError, MissingError
from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.events import Event
from hfbench.jobs.executors.spec import Where

PLACEMENT = "executor.json"
"""In the folder of each job that a keeper holds: written before the job is submitted."""
PLACEMENT_VERSION = 1


FOUND_BY = ("SLURM_CONF", "SLURM_CLUSTERS", "RAY_ADDRESS")
"""Variables that say which cluster is meant."""


class ExecutorTrouble(HfbenchError):
    """An executor does not answer for now: the keeper tells the reason, waits and asks again. Nothing has failed."""


class OutOfReach(MissingError):
    """Nobody answers at a place: its address is wrong, or it is down. Whoever knows it as right may ask again."""


@dataclass(frozen=True, kw_only=True)
class Need:
    """What a job asks of a place before it has a folder: GPUs, and the command of its own environment, if any."""

    gpus: int = 0
    command: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Placement:
    """Where a job was handed to; a keeper that takes over needs nothing else. The content of executor.json."""

    v: int = PLACEMENT_VERSION
    where: Where
    token: str
    """Names the submission at the executor, chosen before it is made; jobs of one batch share it."""
    index: int = 0
    """The job's place in its batch."""
    id: str = ""
    """The executor's own name for the job; empty until the executor has told it."""
    node: str = ""
    attempt: int = 0
    """How often the executor has begun it again."""
    trouble: str = ""
    """What keeps the executor from knowing more of it just now."""
    log_base: int = 0
    """Bytes of output.log that are of earlier attempts."""
    need: Need = Need()
    variables: Mapping[str, str] = field(default_factory=dict)
    """By which the executor was found; whoever starts another keeper may not have them."""

    def write(self, job: JobDirectory) -> None:
        """Keep it in the job's folder."""
        job.write(PLACEMENT, encode(self))


def placement_of(job: JobDirectory) -> Placement | None:
    """Where a job was handed to; None for a local one, or when the file is absent or damaged."""
    try:
        return decode(Placement, data) if (data := job.read(PLACEMENT)) else None
    except (ValueError, TypeError):
        return None


@dataclass(frozen=True)
class Kept:
    """A job in the hands of a keeper: its folder, and where it stands. The executor reads, the keeper changes."""

    job: JobDirectory
    placement: Placement


class Phase(StrEnum):
    """What an executor says of a job."""

    WAITING = "waiting"
    """It has not begun, or is to begin again."""
    RUNNING = "running"
    """Its worker may write to the job's folder."""
    ENDED = "ended"
    """Nothing of it runs any more."""
    LOST = "lost"
    """The executor knows nothing of it: it never got it, or has forgotten it."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """One job as its executor sees it."""

    phase: Phase
    reason: str = ""
    """Waiting: for what, in words. Begun again: why."""
    node: str = ""
    """Where it runs or ran."""
    attempt: int = 0
    """How often it was begun again. When it is above `placement.attempt`, bring nothing over yet: the keeper first
    tells that what came before is void, and looks again."""
    end: Event | None = None
    """ENDED: the last event to write where the worker left none; Finished never is one."""
    trouble: str = ""
    """What keeps the executor from knowing more, such as a connection that was cut; the job goes on."""
    halted: str = ""
    """Why a job that has begun does nothing, such as a scheduler that suspended it; it may stay so for as long."""


class Executor(ABC):
    """One place where jobs run. Made in the launching process for `refuse`, and in a keeper for all the rest.

    Every method may raise ExecutorTrouble, which passes. Any other HfbenchError ends the jobs that were not handed over
    yet; to those that were it is trouble, too. None may wait longer than some seconds: a keeper has more to do.
    """

    batch: ClassVar[int] = 1
    """Jobs that one keeper takes at most."""
    arbiter: ClassVar[bool] = False
    """True where the executor itself gives devices to jobs: their workers then take no lease of hfbench."""

    def __init__(self, where: Where) -> None:
        self.where = where

    @abstractmethod
    def refuse(self, needs: Sequence[Need]) -> None:
        """Raise UsageError or MissingError for what this place can never run, with what it could.

        Called before there is a job's folder, in whatever process launches: no heavy import here, ask in a child.
        Trouble that may pass is no refusal: return, and the keeper will wait.
        """

    @abstractmethod
    def submit(self, jobs: Sequence[Kept]) -> Mapping[str, str]:
        """Hand over jobs of one batch: job id -> the executor's own id. Called again after trouble, or by a new keeper.

        A submission is known by `placement.token`: what the executor has of it already is found, not made twice.
        """

    @abstractmethod
    def look(self, jobs: Sequence[Kept]) -> Mapping[str, Look]:
        """How these jobs are: job id -> Look. Where the disk is not shared, bring over what they wrote meanwhile.

        What is brought over goes through `mirror.Mirror`, which holds the last event back until the result is there.
        """

    @abstractmethod
    def stop(self, jobs: Sequence[Kept], *, hard: bool) -> None:
        """Stop jobs: ask what runs, drop what waits; `hard` kills. Called while cancel.json lies in their folders."""

    def pause(self, seconds: float) -> None:
        """Wait so long, or until something came from these jobs; a plain executor sleeps."""
        time.sleep(seconds)

    def close(self, jobs: Iterable[Kept]) -> None:  # noqa: B027  # nothing to let go of is usual
        """All these jobs are over: let go of connections and of what was kept for them at the executor."""
