"""Where a job stands, as a word: for whoever shows jobs without reading them."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where a job stands. A word, so that it can be shown without colour."""

    STARTING = "starting"
    QUEUED = "queued"
    RUNNING = "running"
    CANCELLING = "cancelling"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DIED = "died"

    @property
    def over(self) -> bool:
        """True when nothing more will happen."""
        return self in (State.FINISHED, State.FAILED, State.CANCELLED, State.DIED)
