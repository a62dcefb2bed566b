"""What the watchers tell the screens: frozen snapshots, one message each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from hfbench.errors import HfbenchError

if TYPE_CHECKING:
    from hfbench.gpu.telemetry import GpuSnapshot
    from hfbench.jobs.history import JobRow


class Latest(Message):
    """A message of which only the newest matters: those still in the queue are dropped."""

    def can_replace(self, message: Message) -> bool:
        """The newest of a kind stands for all."""
        return type(message) is type(self)


@dataclass
class Trouble(Message):
    """Something done beside the screen went wrong."""

    error: HfbenchError


@dataclass
class GpusSampled(Latest):
    """What the GPUs do, and when it was read (time.monotonic)."""

    snapshot: GpuSnapshot
    at: float


@dataclass
class JobsListed(Latest):
    """All jobs, newest first, or the sentence why they cannot be listed."""

    rows: tuple[JobRow, ...]
    trouble: str = ""
