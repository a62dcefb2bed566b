"""Asks hubs beside the screens: which there are, lists of models in a child process, jobs that open a model."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from hfbench.errors import HfbenchError, Interrupted, error_from_parts
from hfbench.jobs.state import State
from hfbench.paths import jobs_root
from hfbench.screens.background import Background, Stopped
from hfbench.screens.messages import Latest
from hfbench.widgets.hub_rows import HubPage
from hfbench.widgets.progress_text import Phase

if TYPE_CHECKING:
    from textual.widget import Widget

    from hfbench.actions.aside import Aside
    from hfbench.actions.hub_search import HubSearchResult
    from hfbench.app import Workbench
    from hfbench.config import Config
    from hfbench.hub.endpoints import Endpoint
    from hfbench.jobs.snapshot import JobSnapshot

# Jobs and actions are imported by the functions that start and follow them: the first frame does not wait for them.

Post = Callable[[Message], None]
OPEN, SEARCH = "hub.open", "hub.search"
PAGE = 50
"""Models asked for at a time."""


@dataclass
class EndpointsKnown(Message):
    """The hubs there are and the name of the one that is meant where none is named; or why that cannot be told."""

    endpoints: tuple[Endpoint, ...] = ()
    default: str = ""
    error: HfbenchError | None = None


@dataclass
class PageListed(Message):
    """A page came for what was asked."""

    asked: HubPage
    result: HubSearchResult


@dataclass
class PageLost(Message):
    """No page comes, for the reason told."""

    error: HfbenchError


@dataclass
class OpeningMoved(Latest):
    """How far the job is that opens a model."""

    job: str
    phases: tuple[Phase, ...]


@dataclass
class Opened(Message):
    """The model is open, and this is what means it."""

    reference: str


@dataclass
class OpeningLost(Message):
    """The model was not opened; `error` says why, None where the job was cancelled."""

    error: HfbenchError | None


def known_endpoints(config: Config) -> EndpointsKnown:
    """The hubs that the configuration and the environment name; nothing is asked of them."""
    from hfbench.hub.endpoints import endpoint, endpoints

    try:
        return EndpointsKnown(tuple(endpoints(config).values()), endpoint("", config).name)
    except HfbenchError as error:
        return EndpointsKnown(error=error)


class HubLists:
    """Asks for one page at a time. The child stays for the next page; asking to stop ends it, whatever it waits for."""

    def __init__(self, node: Widget) -> None:
        self._idle: deque[Aside] = deque()
        self._gone = False
        self._asking = Background(node, PageLost)

    def ask(self, page: HubPage) -> None:
        """`PageListed` or `PageLost` follows, unless another page is asked for meanwhile."""
        self._asking.start(lambda stopped, post: self._ask(page, stopped, post))

    def stop(self) -> None:
        """The answer is no longer wanted."""
        self._asking.stop()

    def close(self) -> None:
        """Nobody looks any more."""
        self._gone = True
        self.stop()
        while self._idle:
            self._idle.pop().close()

    def _ask(self, page: HubPage, stopped: Stopped, post: Post) -> None:
        from hfbench.actions.aside import Aside

        try:
            aside = self._idle.pop()
        except IndexError:
            aside = Aside()  # the first one, or the one before is still being ended
        try:
            result = aside.ask(SEARCH, {**page.values(), "limit": PAGE}, stopped)
        except Interrupted:
            return
        finally:
            aside.close() if self._gone or self._idle else self._idle.append(aside)
        post(PageListed(page, result))


class HubOpening:
    """Opens one model at a time, as a job that is followed."""

    def __init__(self, node: Widget) -> None:
        self._node = node
        self._job = ""
        self._wish = 0
        """Counts what was asked for: a job that begins after it was given up is cancelled."""
        self._following = Background(node, OpeningLost)
        self._cancelling = Background(node, OpeningLost)

    def start(self, bench: Workbench, reference: str) -> None:
        """`OpeningMoved` and in the end `Opened` or `OpeningLost` follow."""
        from hfbench.actions.registry import find

        self._wish += 1
        wish = self._wish

        def started(id: str) -> None:
            if wish != self._wish:
                self._cancel(id)
                return
            self._job = id
            self._following.start(lambda stopped, post: follow_opening(id, stopped, post))

        def failed(error: HfbenchError) -> None:
            if wish == self._wish and self._node.is_attached:
                self._node.post_message(OpeningLost(error))

        bench.start_job(find(OPEN).build({"model": reference}), started=started, failed=failed)

    def give_up(self) -> None:
        """Cancel the job; nothing more is told of it."""
        self._wish += 1
        self._following.stop()
        if self._job:
            self._cancel(self._job)
            self._job = ""

    def leave(self) -> None:
        """Nobody looks any more; the job goes on."""
        self._following.stop()

    def _cancel(self, id: str) -> None:
        def cancelling(stopped: Stopped, post: Post) -> None:
            from hfbench.jobs.cancel import request_cancel
            from hfbench.jobs.directory import JobDirectory

            request_cancel(JobDirectory(jobs_root() / id))

        self._cancelling.start(cancelling)


def follow_opening(id: str, stopped: Stopped, post: Post) -> None:
    """Tell how far a job is until it is over, and then what it opened."""
    from hfbench.jobs.directory import JobDirectory
    from hfbench.jobs.follow import snapshots
    from hfbench.screens.job_text import phases

    for snapshot in snapshots(JobDirectory(jobs_root() / id), stop=stopped):
        if snapshot.state.over:
            post(_end(snapshot))
            return
        post(OpeningMoved(id, phases(snapshot)))


def _end(snapshot: JobSnapshot) -> Message:
    reference = (snapshot.result or {}).get("reference")
    if snapshot.state is State.FINISHED and isinstance(reference, str):
        return Opened(reference)
    if snapshot.error:
        return OpeningLost(error_from_parts(snapshot.error))
    if snapshot.state is State.CANCELLED:
        return OpeningLost(None)
    sentence = f"the job {snapshot.state}: {snapshot.sentence()}"
    return OpeningLost(HfbenchError(sentence, where=snapshot.short_id, remedy="the Jobs screen tells more"))
