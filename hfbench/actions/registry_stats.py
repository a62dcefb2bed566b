"""registry.stats: a private hub in numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.models.problem import counted
from hfbench.registry.needs import NEEDS
from hfbench.registry.upkeep.facts import Use
from hfbench.text import printable
from hfbench.units import show_bytes

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

LABEL = 14


@dataclass(frozen=True, kw_only=True)
class StatsResult:
    """The numbers of a hub."""

    use: Use

    @property
    def headline(self) -> str:
        """`3 repositories, 14.2 GiB kept in 5.1 GiB (2.8 times)`."""
        use = self.use
        saved = f" ({use.saved:.1f} times)" if use.kept_bytes else ""
        repos = f"{use.repos:,} {'repository' if use.repos == 1 else 'repositories'}"
        return f"{repos}, {show_bytes(use.told_bytes)} kept in {show_bytes(use.kept_bytes)}{saved}"

    def lines(self) -> list[str]:
        """The hub, its store, its namespaces, its largest repositories."""
        use = self.use
        served = "served" if use.serving else "not served"
        rows = {
            "hub": f"{printable(use.folder)}, {use.database}, {use.storage}, {served}",
            "people": f"{counted(use.users, 'user')}, {counted(use.tokens, 'token')}",
            "history": f"{counted(use.commits, 'commit')}, {counted(use.blobs, 'content')}",
            "store": f"{show_bytes(use.xorb_bytes)} in xorbs, {show_bytes(use.blob_bytes)} in whole files",
            "cache": f"{show_bytes(use.cache_bytes)} rebuilt, {show_bytes(use.upload_bytes)} of uploads on their way",
            "disk": f"{show_bytes(use.free_bytes)} free",
        }
        if use.damaged_bytes:
            rows["damaged"] = f"{show_bytes(use.damaged_bytes)} set aside by fsck"
        lines = [f"{label:<{LABEL}}{text}" for label, text in rows.items()]
        for space in use.namespaces:
            limit = f" of {show_bytes(space.quota)}" if space.quota else ""
            lines.append(
                f"{'namespace':<{LABEL}}{printable(space.name)}  {show_bytes(space.bytes)}{limit}  {space.repos}"
            )
        for repo in use.largest:
            private = "  private" if repo.private else ""
            size = f"{show_bytes(repo.bytes):>9}  {counted(repo.commits, 'commit'):>12}"
            lines.append(f"{repo.kind:<{LABEL}}{size}  {printable(repo.name)}{private}")
        return [*lines, "", self.headline]


@action("registry.stats", result=StatsResult, needs=NEEDS, extra="registry")
@dataclass(frozen=True, kw_only=True)
class RegistryStats:
    """Tell what a private hub holds, what that takes up on the disk, and what sharing saves."""

    folder: Path | None = param("Where the hub is kept; default this user's own", default=None, kind="path")

    def perform(self, run: Run) -> StatsResult:
        """Count and measure; MissingError when there is no hub."""
        from hfbench.registry.upkeep.session import on_hub, settings_of
        from hfbench.registry.upkeep.use import measure

        return StatsResult(use=on_hub(settings_of(self.folder), measure))
