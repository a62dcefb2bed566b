"""The jobs of the Convert screen: starts them, follows them, and finds those of earlier days."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from textual.message import Message

from hfbench.actions.registry import find
from hfbench.errors import HfbenchError
from hfbench.screens.background import Background
from hfbench.screens.convert_asks import VERIFY, about, find_jobs, follow_job
from hfbench.screens.convert_wish import CONVERSIONS, Source
from hfbench.widgets.wall_lines import Doing

if TYPE_CHECKING:
    from hfbench.screens.base import BenchScreen


@dataclass
class JobLost(Message):
    """A job of this action could not be started or followed."""

    action: str
    error: HfbenchError


class ConvertJobs:
    """Tells a screen of one conversion and one proof at a time, in messages."""

    def __init__(self, screen: BenchScreen) -> None:
        self.screen = screen
        self.searched = False
        self._searching = Background(screen, partial(JobLost, ""))
        self._following = {name: Background(screen, partial(JobLost, name)) for name in (*CONVERSIONS, VERIFY)}

    @property
    def searching(self) -> bool:
        """True until earlier jobs were looked through."""
        return not self.searched or self._searching.busy

    def search(self, source: Source) -> None:
        """Look once, as soon as the jobs are known, whether this source was converted before or is just now."""
        jobs = self.screen.bench.machine.jobs
        if jobs is None or self.searched:
            return
        self.searched = True
        ids = [(row.id, row.action) for row in jobs if row.action in (*CONVERSIONS, VERIFY)]
        if ids:
            self._searching.start(partial(find_jobs, source, ids))

    def start(self, action: str, values: Mapping[str, object]) -> Doing:
        """Start a job and follow it; what is to be shown until it tells of itself."""

        def started(id: str) -> None:
            if self.screen.is_attached:  # it may have been left before the job had begun
                self.follow(action, id)

        def failed(error: HfbenchError) -> None:
            if self.screen.is_attached:
                self.screen.post_message(JobLost(action, error))

        self.screen.bench.start_job(find(action).build(values), started=started, failed=failed)
        return Doing(job="", action=action, about=about(action, values))

    def follow(self, action: str, id: str) -> None:
        """Tell how far a job is until it is over."""
        self._following[action].start(partial(follow_job, id))

    def stop(self) -> None:
        """Nobody looks any more; jobs go on."""
        for each in (self._searching, *self._following.values()):
            each.stop()
