"""cache.free: remove models, orphans or what nobody used from the Hugging Face cache."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.errors import UsageError
from hfbench.hub.caching.facts import Freed, Spared
from hfbench.line_width import cut, paragraph
from hfbench.models.problem import counted
from hfbench.text import printable
from hfbench.units import parse_duration, show_bytes

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

SHOWN = 40
DAY = 86400.0


@dataclass(frozen=True, kw_only=True)
class FreeResult:
    """What was removed and what was spared, with the reason."""

    folder: str
    freed: tuple[Freed, ...]
    spared: tuple[Spared, ...]
    bytes: int
    dry_run: bool

    @property
    def headline(self) -> str:
        """`14.2 GiB freed`."""
        if self.dry_run:
            return f"{show_bytes(self.bytes)} would be freed; nothing was"
        return f"{show_bytes(self.bytes)} freed" if self.freed else "nothing to free"

    def lines(self) -> list[str]:
        """Each thing that went, then each that stayed."""
        rows = [cut(f"{show_bytes(each.bytes):>9}  {each.what}  {printable(each.path)}") for each in self.freed[:SHOWN]]
        more = [f"and {len(self.freed) - SHOWN} more (--json lists all)"] if len(self.freed) > SHOWN else []
        stayed = [
            line
            for each in self.spared
            for line in paragraph(f"! spared {printable(each.what)}: {printable(each.why)}", later="  ")
        ]
        told = f", {counted(len(self.spared), 'thing')} spared" if self.spared else ""
        return [*rows, *more, *stayed, f"{self.headline}{told}"]


@action("cache.free", result=FreeResult)
@dataclass(frozen=True, kw_only=True)
class CacheFree:
    """Free a model or a revision of the Hugging Face cache, orphans, or what nobody used for long.

    Blobs that another revision uses stay, and so does everything whose lock somebody holds.
    """

    model: str = param("org/name, or org/name@revision for one revision", default="", positional=True)
    orphans: bool = param("Blobs no revision names, dead downloads and stale locks", default=False)
    partials: bool = param("With --orphans: also downloads that the next pull would go on with", default=False)
    unused_since: str = param("Revisions nobody read for so long, such as 30d or 12h", default="")
    cache_dir: Path | None = param("Hugging Face cache to free", default=None, kind="path")
    dry_run: bool = param("Say what would go, and remove nothing", default=False)

    def perform(self, run: Run) -> FreeResult:
        """Remove what was asked for; UsageError when nothing was."""
        from hfbench.hub.caching.free import Freeing
        from hfbench.models.reference import cache_folder, hub_reference

        if not (self.model or self.orphans or self.unused_since):
            raise UsageError("says nothing to free", remedy="name a model, or give --orphans or --unused-since 30d")
        if self.partials and not self.orphans:
            raise UsageError("--partials goes with --orphans", remedy="give --orphans too")
        cache = self.cache_dir or cache_folder()
        freeing = Freeing(cache, dry_run=self.dry_run)
        if self.model:
            named = hub_reference(self.model)
            if named is None:
                raise UsageError(f"{self.model!r} names no model", remedy="write org/name or org/name@revision")
            freeing.model(named.repo, named.revision if "@" in self.model else "")
        if self.unused_since:
            freeing.unused(parse_duration(self.unused_since))
        if self.orphans:
            freeing.orphans(partials=self.partials)
        tally = freeing.tally
        return FreeResult(
            folder=str(cache),
            freed=tuple(tally.freed),
            spared=tuple(tally.spared),
            bytes=sum(each.bytes for each in tally.freed),
            dry_run=self.dry_run,
        )
