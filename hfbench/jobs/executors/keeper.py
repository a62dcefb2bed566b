"""The process that stands in for workers elsewhere: it holds their jobs' locks, hands them over and sees to their end.

`python -m hfbench.jobs.executors.keeper DIR... --lock-fds N,N...`
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterable
from pathlib import Path

from hfbench.errors import HfbenchError, foreseen
from hfbench.exits import Exit
from hfbench.jobs.directory import KEPT_LOCK, JobDirectory, held
from hfbench.jobs.events import Cancelled, Died, Failed, Placed, Requeued, Waiting
from hfbench.jobs.executors.base import Executor, ExecutorTrouble, Kept, Look, Phase, placement_of
from hfbench.jobs.executors.known import executor_of
from hfbench.jobs.executors.story import Story, attempt_of
from hfbench.units import show_elapsed

FASTEST = 0.2
"""Seconds between two looks after something happened; they grow to the executor's `poll` while nothing does."""
STEP = 0.5
"""Seconds between two looks into the jobs' folders meanwhile."""
LAG = 2.0
"""Seconds a shared disk may take to show here what a worker that ended has written."""
SLACK = 10.0
"""Seconds an executor is given beyond the grace of a job before it is told to kill."""


def main(arguments: list[str] | None = None) -> int:
    """Keep jobs until all are over."""
    parser = argparse.ArgumentParser(prog="hfbench.jobs.executors.keeper", description=__doc__)
    parser.add_argument("directories", nargs="+", type=Path)
    parser.add_argument("--lock-fds", required=True, help="open descriptors that hold the jobs' locks, in their order")
    given = parser.parse_args(arguments)
    locks = [int(each) for each in given.lock_fds.split(",")]
    for lock in locks:
        os.set_inheritable(lock, False)  # sbatch and ssh are not to hold what tells that a keeper lives
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # jobs outlive whoever looks at them
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    stories = [
        Story(Kept(job, placement), lock)
        for job, lock in zip(map(JobDirectory, given.directories), locks, strict=True)
        if (placement := placement_of(job)) is not None
    ]
    if not stories:
        return Exit.FAILED
    os.environ.update(stories[0].kept.placement.variables)
    Keeper(executor_of(stories[0].kept.placement.where), stories).run()
    return Exit.OK


class Keeper:
    """Keeps the jobs of one batch at one executor."""

    def __init__(self, executor: Executor, stories: Iterable[Story]) -> None:
        self.executor, self.stories = executor, list(stories)
        self.settings = executor.where.settings
        self.changed = True

    @property
    def open(self) -> list[Story]:
        """The jobs that are not over."""
        return [story for story in self.stories if not story.over]

    def run(self) -> None:
        """Stay until every job is over. A fault of the keeper itself ends its jobs with a sentence."""
        try:
            self._run()
        except HfbenchError as error:
            self._give_up(error)
        except Exception as error:
            traceback.print_exc()
            self._give_up(foreseen(error, traceback="the job's log shows the traceback"))
        finally:
            with contextlib.suppress(Exception):
                self.executor.close([story.kept for story in self.stories])

    def _run(self) -> None:
        pause = FASTEST
        while self.open:
            self.changed = False
            try:
                self._submit()
                self._stop()
                self._look()
            except ExecutorTrouble as trouble:
                self._suffer(trouble)
            except HfbenchError as error:
                self._refused(error)
                self._suffer(error)
            pause = FASTEST if self.changed else min(self.settings.poll, pause * 1.3)
            self._pause(min(pause, self.settings.poll))

    def _pause(self, seconds: float) -> None:
        """Wait until it is time to ask the executor again, or something is seen in the jobs' folders."""
        end = time.monotonic() + seconds
        while self.open and (left := end - time.monotonic()) > 0:
            asked, step = time.monotonic(), min(left, STEP)
            self.executor.pause(step)
            if time.monotonic() < asked + step:
                return  # something came from the executor
            if any(story.finished or (story.cancelled and not story.asked_at) for story in self.open):
                return

    def _submit(self) -> None:
        """Hand over what the executor has not got yet."""
        for story in self.open:
            if not story.kept.placement.id and story.cancelled:
                story.end(Cancelled(reason="stopped on request before it was handed over"))
        unsent = [story for story in self.open if not story.kept.placement.id and story.job.path.is_dir()]
        if not unsent:
            return
        ids = self.executor.submit([story.kept for story in unsent])
        self.changed = True
        for story in unsent:
            if name := ids.get(story.job.id):
                story.place(id=name)
                story.tell(Placed(on=self.executor.where.text, id=name))

    def _stop(self) -> None:
        """Hand requests to stop on; what has not ended in its grace is killed."""
        now, soft, hard = time.monotonic(), list[Story](), list[Story]()
        for story in self.open:
            if not story.cancelled:
                continue
            if not story.asked_at:
                soft.append(story)
            elif not story.killed and now > story.asked_at + story.job.grace + SLACK:
                hard.append(story)
        for stories, kills in ((soft, False), (hard, True)):
            if stories:
                self.executor.stop([story.kept for story in stories], hard=kills)
                self.changed = True
            for story in stories:
                story.asked_at, story.killed = story.asked_at or now, kills

    def _look(self) -> None:
        looked = self.executor.look([story.kept for story in self.open])
        for story in self.open:
            if (look := looked.get(story.job.id)) is not None:
                self._take_in(story, look)

    def _take_in(self, story: Story, look: Look) -> None:
        """Tell what is new about a job."""
        placement = story.kept.placement
        if story.finished:
            self.changed = True
            story.end()
            return
        story.writes = self.executor.where.shares_disk and look.phase is Phase.RUNNING
        if look.attempt > placement.attempt:
            self._begin_again(story, look)
            return
        if look.halted:
            self._stand_still(story, look.halted)
        else:
            self._bear(story, look.trouble)
        if story.over:
            return
        if look.node and look.node != placement.node:
            self.changed = True
            story.place(node=look.node)
            story.tell(Placed(on=self.executor.where.text, id=placement.id, node=look.node))
        if look.phase is Phase.WAITING and look.reason != story.told_reason:
            self.changed, story.told_reason = True, look.reason
            story.tell(Waiting(reason=look.reason))
        if look.phase in (Phase.ENDED, Phase.LOST):
            self._settle(story, look)
        else:
            story.ended_at, story.ending = 0.0, None

    def _begin_again(self, story: Story, look: Look) -> None:
        """The executor runs a job anew, and readers are told that the earlier attempt is void: here while it waits, by
        its worker when that has begun. An attempt that was given up and still writes is left to end.
        """
        if self.executor.where.shares_disk and held(story.job.path / KEPT_LOCK):
            story.writes = True
            if attempt_of(story.job) < look.attempt:
                return
        self.changed, story.told_reason = True, ""
        size = story.job.log.stat().st_size if story.job.log.exists() else 0
        story.place(attempt=look.attempt, node="", log_base=size)
        if not self.executor.where.shares_disk or look.phase is Phase.WAITING:
            story.tell(Requeued(reason=look.reason or "the executor begins it again", attempt=look.attempt))

    def _settle(self, story: Story, look: Look) -> None:
        """Nothing of the job runs any more: write its last event, once it is sure that the worker wrote none."""
        now = time.monotonic()
        story.ended_at, self.changed = story.ended_at or now, True
        story.ending = story.ending or look.end
        if self.executor.where.shares_disk:
            if held(story.job.path / KEPT_LOCK):
                story.ended_at = now  # the executor lost sight of it, but it goes on and will say how it ends
            if now < story.ended_at + LAG:
                return
        if story.cancelled and not isinstance(story.ending, Failed):
            how = "killed on request" if story.killed else "stopped on request"
            story.end(Cancelled(reason=how))
        else:
            lost = f"{self.executor.where.text} knows nothing of it any more, and its worker left no word"
            story.end(story.ending or Died(reason=look.reason or lost))

    def _refused(self, error: HfbenchError) -> None:
        """What was not handed over never will be; of what was, this says nothing: it may run all the same."""
        for story in self.open:
            if not story.kept.placement.id:
                story.end(Failed(error=error.parts()))

    def _suffer(self, trouble: HfbenchError) -> None:
        """The executor does not answer, whatever it was asked."""
        for story in self.open:
            if story.finished:
                story.end()
            else:
                self._bear(story, str(trouble))

    def _bear(self, story: Story, trouble: str) -> None:
        """Tell of a job's trouble, or that it is over; give the job up when patience is at its end."""
        self.changed |= story.suffer(trouble)
        waited = time.monotonic() - story.suffers_since
        if story.suffers_since and waited > self.settings.patience:
            story.end(Died(reason=f"given up after {show_elapsed(waited)}: {trouble}"))

    def _stand_still(self, story: Story, why: str) -> None:
        """Tell why a job that has begun does nothing; no patience has an end for that."""
        self.changed |= story.suffer(why)
        story.suffers_since = 0.0

    def _give_up(self, error: HfbenchError) -> None:
        """End all open jobs with an error, and stop what may run of them."""
        with contextlib.suppress(Exception):
            self.executor.stop([story.kept for story in self.open if story.kept.placement.id], hard=True)
        for story in self.open:
            with contextlib.suppress(OSError, HfbenchError):
                story.end(Failed(error=error.parts()))


if __name__ == "__main__":
    sys.exit(main())
