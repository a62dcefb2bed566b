"""registry.fsck: check a private hub down to the bytes of its files, and repair what can be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.exits import Exit
from hfbench.line_width import cut, paragraph
from hfbench.models.problem import counted
from hfbench.registry.needs import NEEDS
from hfbench.registry.upkeep.facts import Damage
from hfbench.text import printable
from hfbench.units import show_bytes

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

SHOWN = 50


@dataclass(frozen=True, kw_only=True)
class FsckResult:
    """What was looked at and what is damaged."""

    folder: str
    repos: int
    commits: int
    blobs: int
    xorbs: int
    bytes_read: int
    damages: tuple[Damage, ...]
    orphans: int
    orphan_bytes: int
    repaired: bool

    @property
    def failed(self) -> bool:
        """True when something is damaged that was not mended, or is lost."""
        return any(each.lost or not each.mended for each in self.damages)

    @property
    def exit(self) -> int:
        """1 for damage, 0 for a hub that is whole."""
        return Exit.FAILED if self.failed else Exit.OK

    @property
    def headline(self) -> str:
        """`clean: 3 repositories, 12 commits, 14.2 GiB read`, or how many things are damaged."""
        if not self.damages:
            read = f"{show_bytes(self.bytes_read)} read" if self.bytes_read else "sizes compared, contents not read"
            return f"clean: {_repositories(self.repos)}, {counted(self.commits, 'commit')}, {read}"
        lost = sum(each.lost for each in self.damages)
        mended = sum(bool(each.mended) for each in self.damages)
        done = f", {mended} dealt with" if self.repaired else ""
        return f"{counted(len(self.damages), 'thing')} damaged, {lost} of them missed by a revision{done}"

    def lines(self) -> list[str]:
        """Each damage with the files it is at, then what lies there for nothing."""
        lines = [line for damage in self.damages[:SHOWN] for line in _told(damage)]
        if len(self.damages) > SHOWN:
            lines.append(f"and {len(self.damages) - SHOWN} more (--json lists all)")
        if self.orphans:
            size = show_bytes(self.orphan_bytes)
            lines += paragraph(
                f"~ {counted(self.orphans, 'file')} of {size} that nothing names: gc removes them", later="  "
            )
        if self.failed and not self.repaired:
            lines.append("hfbench registry fsck --repair restores what it can, and lets the rest be uploaded again")
        return [*lines, *([""] if lines else []), self.headline]


@action("registry.fsck", result=FsckResult, needs=NEEDS, extra="registry")
@dataclass(frozen=True, kw_only=True)
class RegistryFsck:
    """Check a private hub: every revision, and every stored byte against its hash.

    The hub may be served meanwhile. A repair sets damaged files aside and removes nothing.
    """

    folder: Path | None = param("Where the hub is kept; default this user's own", default=None, kind="path")
    repair: bool = param("Restore from whole copies; of the rest, let clients send the bytes again", default=False)
    quick: bool = param("Compare sizes alone, read no contents", default=False)

    def perform(self, run: Run) -> FsckResult:
        """Check, and repair where asked; MissingError when there is no hub."""
        from hfbench.registry.upkeep.fsck import check
        from hfbench.registry.upkeep.session import on_hub, settings_of

        settings = settings_of(self.folder)
        found = on_hub(settings, lambda hub: check(hub, quick=self.quick, repair=self.repair, tell=run.progress))
        return FsckResult(
            folder=settings.folder,
            repos=found.repos,
            commits=found.commits,
            blobs=found.blobs,
            xorbs=found.xorbs,
            bytes_read=found.bytes_read,
            damages=found.damages,
            orphans=found.orphans,
            orphan_bytes=found.orphan_bytes,
            repaired=self.repair,
        )


def _told(damage: Damage) -> Iterator[str]:
    sign = "x" if damage.lost else "!"
    mended = f"; {damage.mended}" if damage.mended else ""
    yield from paragraph(
        f"{sign} {damage.what} {printable(damage.name)}: {printable(damage.found)}{mended}", later="  "
    )
    for place in damage.places:
        refs = f" ({', '.join(place.refs)})" if place.refs else ""
        yield cut(f"    {printable(place.repo)}  {printable(place.path)}  {place.commit}{printable(refs)}")
    if damage.more_places:
        yield f"    and {damage.more_places} more places"


def _repositories(count: int) -> str:
    return f"{count:,} {'repository' if count == 1 else 'repositories'}"
