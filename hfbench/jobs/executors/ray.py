"""Jobs on a Ray cluster: a detached actor each, which runs the stock worker on its node and outlives the keeper."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hfbench.errors import HfbenchError, UsageError
from hfbench.exits import Exit
from hfbench.jobs.events import Died, Event, Failed, from_line
from hfbench.jobs.executors.base import Executor, ExecutorTrouble, Kept, Look, Need, OutOfReach, Phase
from hfbench.jobs.executors.mirror import Mirror
from hfbench.jobs.executors.ray_attempt import ANSWER, LONG_POLL, Attempt, actor_name, archive, told_to_actor
from hfbench.jobs.executors.ray_cluster import (
    NAMESPACE,
    NobodyListens,
    Node,
    Wanted,
    ask,
    connect,
    knock,
    lacking,
    nodes,
    wanted,
)
from hfbench.jobs.executors.spec import Where
from hfbench.jobs.process import signal_name

RETRIES = 1
"""How often a job is begun again whose worker died."""
SHORTEST_PAUSE = 0.15
"""Seconds between two looks at jobs that tell something all the time."""
BELIEVED = 60.0
"""Seconds for which the answer what a cluster has is believed when jobs are launched one by one."""
NEVER = 60.0
"""Seconds a job that was handed over waits while no node of the cluster could run it."""
FAULTS = (TypeError, AttributeError, LookupError, AssertionError)
"""Errors of hfbench itself, unless the head is gone: Ray's client stumbles over its own remains then."""

_answers: dict[str, tuple[float, tuple[Node, ...]]] = {}


class Ray(Executor):
    """A Ray cluster. All traffic goes through one connection of the keeper, which may break and come back."""

    batch = 256
    arbiter = True

    def __init__(self, where: Where) -> None:
        super().__init__(where)
        self._ray: Any = None
        self._actor: Any = None
        self._attempts: dict[str, Attempt] = {}

    def refuse(self, needs: Sequence[Need]) -> None:
        """UsageError for what no node could ever run, MissingError without Ray, OutOfReach where nobody listens and
        nobody did before; else no answer is no refusal.
        """
        wishes = [wanted(self.where, need) for need in needs]
        asked, there = _answers.get(self.where.target, (0.0, ()))
        if not asked or time.monotonic() > asked + BELIEVED:
            try:
                there = ask(self.where)
            except NobodyListens as error:
                if asked:
                    return
                remedy = "check the address, or start the head there: ray start --head --ray-client-server-port=PORT"
                raise OutOfReach(error.found, where=self.where.text, remedy=remedy) from error
            except ExecutorTrouble:
                return
            _answers[self.where.target] = time.monotonic(), there
        self._require(there, wishes)

    def submit(self, jobs: Sequence[Kept]) -> Mapping[str, str]:
        """Make an actor for each job; one that a killed keeper has made is found by its name."""
        with self._talking() as ray:
            self._require(nodes(ray), [wanted(self.where, kept.placement.need) for kept in jobs])
            for kept in jobs:
                self._attempts[kept.job.id] = self._begin(kept)
        return {kept.job.id: actor_name(kept.placement) for kept in jobs}

    def look(self, jobs: Sequence[Kept]) -> Mapping[str, Look]:
        """Take in what the actors had to tell."""
        with self._talking() as ray:
            found = {kept.job.id: self._attempt(kept) for kept in jobs if kept.placement.id}
            awaited = [attempt.news for attempt in found.values() if attempt]
            ready = set(ray.wait(awaited, num_returns=len(awaited), timeout=0)[0]) if awaited else set()
            return {kept.job.id: self._see(kept, found[kept.job.id], ready) for kept in jobs if kept.job.id in found}

    def stop(self, jobs: Sequence[Kept], *, hard: bool) -> None:
        """Ask the workers to stop; an actor that has not begun, or is to be killed, is ended with all it runs."""
        with self._talking() as ray:
            for kept in jobs:
                if (attempt := self._attempt(kept)) is None:
                    continue
                if attempt.node and not hard:
                    attempt.handle.stop.remote(False)
                else:
                    ray.kill(attempt.handle)

    def pause(self, seconds: float) -> None:
        """Wait for what an actor has to tell."""
        time.sleep(min(seconds, SHORTEST_PAUSE))
        awaited = [attempt.news for attempt in self._attempts.values() if attempt.news is not None]
        if self._ray is None or not awaited:
            time.sleep(max(0.0, seconds - SHORTEST_PAUSE))
            return
        with contextlib.suppress(ExecutorTrouble), self._talking() as ray:
            ray.wait(awaited, timeout=max(0.0, seconds - SHORTEST_PAUSE))

    def close(self, jobs: Iterable[Kept]) -> None:
        """Leave the cluster."""
        self._disconnect()

    def _require(self, there: Sequence[Node], wishes: Sequence[Wanted]) -> None:
        if why := lacking(there, wishes):
            raise UsageError(why, where=self.where.text, remedy="ask for less, or add a node that has it")

    @contextlib.contextmanager
    def _talking(self) -> Iterator[Any]:
        """Ray, connected. Whatever breaks the connection is trouble; the next call connects anew."""
        if self._ray is None:
            self._connect()
        try:
            yield self._ray
        except HfbenchError:
            raise
        except Exception as error:
            # A client that has lost its head says so in many ways: ConnectionError, RpcError, a plain Exception, ...
            self._disconnect()
            knock(self.where)
            if isinstance(error, FAULTS) or (isinstance(error, OSError) and error.filename):
                raise
            words = " ".join(str(error).split())[:200]
            raise ExecutorTrouble(f"the connection to Ray broke: {words}", where=self.where.text) from error

    def _connect(self) -> None:
        from hfbench.jobs.executors import ray_far

        knock(self.where)
        self._ray = connect(self.where)
        self._ray.cloudpickle.register_pickle_by_value(ray_far)
        self._actor = self._ray.remote(ray_far.Far)

    def _disconnect(self) -> None:
        self._attempts.clear()
        if self._ray is not None:
            with contextlib.suppress(Exception):
                self._ray.shutdown()
        self._ray = self._actor = None

    def _begin(self, kept: Kept) -> Attempt:
        """The actor of the present attempt, made unless there is one."""
        wish, name = wanted(self.where, kept.placement.need), actor_name(kept.placement)
        actor = self._actor.options(
            name=name,
            namespace=NAMESPACE,
            lifetime="detached",
            get_if_exists=True,
            max_restarts=0,
            num_cpus=wish.cpus,
            num_gpus=wish.gpus,
            scheduling_strategy="SPREAD",
            **({"memory": wish.memory} if wish.memory else {}),
        )
        return self._attempt_of(kept, actor.remote(name, kept.job.request, told_to_actor(kept, self.where)))

    def _attempt_of(self, kept: Kept, handle: Any) -> Attempt:
        return Attempt(self._ray, handle, kept.placement.attempt, Mirror(kept.job, kept.placement.log_base))

    def _attempt(self, kept: Kept) -> Attempt | None:
        """The present attempt, with a question under way; None when the cluster has no actor of that name."""
        attempt = self._attempts.get(kept.job.id)
        if attempt is None or attempt.number != kept.placement.attempt:
            if kept.placement.attempt:
                attempt = self._begin(kept)
            else:
                try:
                    attempt = self._attempt_of(kept, self._ray.get_actor(actor_name(kept.placement), NAMESPACE))
                except ValueError:
                    return None
            self._attempts[kept.job.id] = attempt
        attempt.ask()
        return attempt

    def _see(self, kept: Kept, attempt: Attempt | None, ready: set[Any]) -> Look:
        if attempt is None:
            lost = "the cluster knows nothing of it any more: its head was restarted, or its worker died unseen"
            return self._died(kept, lost)
        if attempt.news not in ready:
            return self._going_on(kept, attempt)
        news, attempt.news = attempt.news, None
        try:
            told = self._ray.get(news, timeout=ANSWER)
        except self._ray.exceptions.ActorUnavailableError:
            return Look(phase=Phase.RUNNING, attempt=attempt.number, trouble=f"{attempt.worker} does not answer")
        except self._ray.exceptions.RayActorError as error:
            return self._died(kept, self._how_it_died(attempt, error))
        except self._ray.exceptions.RayTaskError as error:
            self._let_go(attempt)
            cannot = HfbenchError(f"the node cannot run it: {error.cause}", where=attempt.node or self.where.text)
            return Look(phase=Phase.ENDED, attempt=attempt.number, end=Failed(error=cannot.parts()))
        return self._take_in(kept, attempt, told)

    def _going_on(self, kept: Kept, attempt: Attempt) -> Look:
        """The look at a job of which nothing is new."""
        if attempt.node:
            return Look(phase=Phase.RUNNING, node=attempt.node, attempt=attempt.number)
        now = time.monotonic()
        if now > attempt.look_again:
            wish = wanted(self.where, kept.placement.need)
            never = lacking(nodes(self._ray), [wish])
            attempt.waits_for = never or f"no node has {wish} free"
            attempt.unmet_since = (attempt.unmet_since or now) if never else 0.0
            attempt.look_again = now + LONG_POLL
            if never and now > attempt.unmet_since + NEVER:
                self._ray.kill(attempt.handle)
                error = UsageError(never, where=self.where.text, remedy="add a node that has it, and launch it again")
                return Look(phase=Phase.ENDED, attempt=attempt.number, end=Failed(error=error.parts()))
        return Look(phase=Phase.WAITING, reason=attempt.waits_for, attempt=attempt.number)

    def _take_in(self, kept: Kept, attempt: Attempt, told: Mapping[str, Any]) -> Look:
        """Bring over what an actor tells; a worker that died is begun again."""
        attempt.node, attempt.pid = told["node"], told["pid"]
        look = Look(phase=Phase.RUNNING, node=attempt.node, attempt=attempt.number)
        if told["wants_hfbench"]:
            if not attempt.sent:
                attempt.sent = True
                attempt.handle.install.remote(archive())
            return look
        lines, log, status = told["events"], told["log"], told["status"]
        attempt.mirror.add_log(log)
        last = from_line(lines.rstrip(b"\n").rpartition(b"\n")[2]) if lines else None
        if last is not None and last.final:
            if status is None or log:
                return look  # its last word comes when all else is here
            if isinstance(last, Died) and last.signal == "SIGKILL" and self._may_begin_again(kept):
                self._let_go(attempt)
                return self._died(kept, f"{attempt.worker} died: {last.reason}")
        attempt.mirror.add_events(lines, lambda: attempt.bring(kept.job))
        if attempt.mirror.over:
            self._let_go(attempt)
        elif status is not None and not lines and not log:
            self._let_go(attempt)
            return self._without_a_word(kept, attempt, status)
        return look

    def _without_a_word(self, kept: Kept, attempt: Attempt, status: int) -> Look:
        """The look at a worker that ended without a last event."""
        if status < 0 or status == Exit.TERMINATED:
            how = f"killed by {signal_name(-status)}" if status < 0 else "stopped by a signal"
            return self._died(kept, f"{attempt.worker} died: {how}")
        reason = f"the worker on {attempt.node} exited with status {status} without a result"
        return Look(phase=Phase.ENDED, attempt=attempt.number, end=Died(reason=reason, status=status))

    def _died(self, kept: Kept, reason: str) -> Look:
        """The look at a job whose worker died: it is begun again, but not for ever."""
        number = kept.placement.attempt
        if (attempt := self._attempts.pop(kept.job.id, None)) is not None:
            with contextlib.suppress(Exception):
                self._ray.kill(attempt.handle)
        if self._may_begin_again(kept):
            return Look(phase=Phase.WAITING, attempt=number + 1, reason=reason)
        again = ", after it had been begun again" if number else ""
        end: Event = Died(reason=f"{reason}{again}")
        return Look(phase=Phase.ENDED, attempt=number, end=end)

    def _may_begin_again(self, kept: Kept) -> bool:
        unwanted = (kept.job.path / "cancel.json").exists() or not kept.job.path.is_dir()
        return self.where.settings.requeue and not unwanted and kept.placement.attempt < RETRIES

    def _how_it_died(self, attempt: Attempt, error: Exception) -> str:
        """In words: with its node, by a signal from outside, or before it could begin."""
        if not attempt.node:
            *_, why = str(error).strip().splitlines()
            return f"its Ray worker died before it began: {why[:300]}"
        lost = all(node.name != attempt.node for node in nodes(self._ray))
        return f"{attempt.worker} died: {'its node was lost' if lost else 'its process was killed or crashed'}"

    def _let_go(self, attempt: Attempt) -> None:
        """Free what the actor of a job that is over holds; one that is gone holds nothing."""
        with contextlib.suppress(Exception):
            attempt.let_go()
