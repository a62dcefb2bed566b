"""What the list of the cache and the page of one repository have in common: the keys, and what is known."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from textual import on, work
from textual.binding import Binding, BindingType

from hfbench.actions.registry import find
from hfbench.jobs.history import JobRow
from hfbench.jobs.state import State
from hfbench.screens.background import Background
from hfbench.screens.base import BenchScreen
from hfbench.screens.cache_asks import FREE, CacheListed, FreePlanned, list_cache, plan_free
from hfbench.screens.cache_jobs import CacheJobs, CacheJobsRead
from hfbench.screens.confirm import Confirm
from hfbench.text import printable
from hfbench.units import show_bytes
from hfbench.widgets.cache_rows import KnownCache, Verified

ORPHANS = {"orphans": True}
SHOWN = 3
"""Things named in the question; the others are counted."""


class CacheKeys(BenchScreen):
    """A screen about the cache. Subclasses give `wish`, `place`, `pulled` and `known_changed`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("d", "free", "free", id="cache.free"),
        Binding("O", "free_orphans", "orphans", id="cache.orphans"),
        Binding("v", "verify", "verify", id="cache.verify"),
        Binding("p", "pull", "pull", id="cache.pull"),
        Binding("slash", "filter", "filter", id="screen.filter"),
        Binding("u", "update", "update", show=False, id="cache.update"),
        Binding("y", "copy_place", "copy path", show=False, id="cache.copy"),
    ]

    def __init__(self, known: KnownCache | None = None) -> None:
        super().__init__()
        self.known = known
        self.listed = known is not None
        """Whether the cache was looked at, with whatever outcome."""
        self._listing = Background(self, lambda error: CacheListed(error=error))
        self._planning = Background(self, lambda error: FreePlanned({}, error=error))
        self._jobs = CacheJobs(self)
        self._read: CacheJobsRead | None = None
        self._freeing: set[str] = set()
        """Jobs started here, of which the end is to be told."""

    @property
    def wish(self) -> tuple[Mapping[str, object], str] | None:
        """What `d` would ask `cache.free`, and the folder all of it must lie in; None where there is nothing."""
        raise NotImplementedError

    @property
    def place(self) -> str:
        """The path of what the cursor is on; empty when it is on nothing."""
        raise NotImplementedError

    @property
    def pulled(self) -> str:
        """The model that `p` would pull; empty for a form without one."""
        raise NotImplementedError

    def known_changed(self, message: CacheListed | None = None) -> None:
        """The cache was looked at again, or a job told something of it."""
        raise NotImplementedError

    @property
    def at_rest(self) -> bool:
        """Looked at."""
        return super().at_rest and self.listed

    @property
    def here(self) -> bool:
        """Whether there are widgets to show anything in."""
        return self.is_attached and self.app.is_running

    def on_mount(self) -> None:
        """Look."""
        self._jobs.look(self.bench.machine.known_jobs)
        self.action_update()

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._listing.stop()
        self._planning.stop()
        self._jobs.stop()

    def on_screen_resume(self) -> None:
        """Something may have been freed or pulled meanwhile."""
        super().on_screen_resume()
        if self.listed and self.in_front:
            self.action_update()

    def machine_changed(self) -> None:
        """Jobs began or ended, such as one that frees."""
        super().machine_changed()
        self._jobs.look(self.bench.machine.known_jobs)

    def action_update(self) -> None:
        """Look again."""
        self._listing.start(list_cache)

    @on(CacheListed)
    def _listed(self, message: CacheListed) -> None:
        self.listed = True
        if message.known is not None:
            self.known = KnownCache(
                report=message.known.report, free_bytes=message.known.free_bytes, verified=self._verified()
            )
        elif message.error is not None:
            self.known = None
        if self.here:
            self.known_changed(message)

    @on(CacheJobsRead)
    def _jobs_read(self, message: CacheJobsRead) -> None:
        again = self._read is not None
        self._read = message
        if self.known is not None:
            self.known = KnownCache(
                report=self.known.report, free_bytes=self.known.free_bytes, verified=self._verified()
            )
        if self.here:
            for row in message.rows:
                if row.id in self._freeing and row.state.over:
                    self._freeing.discard(row.id)
                    self._tell(row)
            self.known_changed()
            if again:
                self.action_update()

    def _verified(self) -> Verified | None:
        return self._read.verified if self._read else self.known.verified if self.known else None

    def _tell(self, row: JobRow) -> None:
        fine = row.state is State.FINISHED
        told = row.headline if fine else row.note
        self.notify(
            f"job {row.short_id}: {told or row.state}", severity="information" if fine else "error", markup=False
        )

    # -- keys -----------------------------------------------------------------

    def action_free(self) -> None:
        """Ask what freeing the row would free; the question follows."""
        if wish := self.wish:
            self._planning.start(partial(plan_free, *wish))

    def action_free_orphans(self) -> None:
        """Ask what freeing all orphans, dead downloads and stale locks would free; the question follows."""
        if self.known is not None:
            self._planning.start(partial(plan_free, ORPHANS, ""))

    @on(FreePlanned)
    @work
    async def _planned(self, message: FreePlanned) -> None:
        plan = message.plan
        if plan is None:
            self.bench.complain(message.error or "nothing is known of what would be freed")
            return
        spared = "".join(f"; spared {printable(each.what)}: {printable(each.why)}" for each in plan.spared[:SHOWN])
        if not plan.freed:
            self.notify(f"nothing to free{spared}", markup=False)
            return
        what = ", ".join(printable(each.what) for each in plan.freed[:SHOWN])
        more = f" and {len(plan.freed) - SHOWN} more" if len(plan.freed) > SHOWN else ""
        if await self.app.push_screen_wait(Confirm(f"free {show_bytes(plan.bytes)}: {what}{more}{spared}?")):
            self.bench.start_job(find(FREE).build(message.values), started=self._free_started)

    def _free_started(self, job: str) -> None:
        self._freeing.add(job)
        self.notify(f"job {job.rpartition('-')[2]} frees it", markup=False)

    def action_verify(self) -> None:
        """Hash every blob in a job, and compare with its name."""
        if self.known is not None:
            self.bench.start_job(find("cache").build({"verify": True}))

    def action_pull(self) -> None:
        """The form of a pull, for the model under the cursor."""
        self.bench.open_form("pull", {"model": self.pulled} if self.pulled else {})

    async def action_copy_place(self) -> None:
        """The path of what the cursor is on."""
        if self.place:
            await self.copy(self.place)
