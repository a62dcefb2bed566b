"""registry.gc: remove from a private hub what no repository needs any more."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.models.problem import counted
from hfbench.registry.needs import NEEDS
from hfbench.units import show_bytes

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

DAY = 86400.0


@dataclass(frozen=True, kw_only=True)
class GcResult:
    """What went, or would go."""

    folder: str
    commits: int
    trees: int
    blobs: int
    xorbs: int
    files: int
    bytes: int
    dry_run: bool

    @property
    def headline(self) -> str:
        """`14.2 GiB freed`."""
        if not self.bytes and not self._rows():
            return "nothing to remove"
        return (
            f"{show_bytes(self.bytes)} would be freed; nothing was"
            if self.dry_run
            else f"{show_bytes(self.bytes)} freed"
        )

    def lines(self) -> list[str]:
        """What went by its kind."""
        return [*(counted(count, name) for name, count in self._rows().items()), self.headline]

    def _rows(self) -> dict[str, int]:
        counts = {"commit": self.commits, "folder list": self.trees, "file content": self.blobs, "xorb": self.xorbs}
        return {name: count for name, count in (counts | {"stray file": self.files}).items() if count}


@action("registry.gc", result=GcResult, needs=NEEDS, extra="registry")
@dataclass(frozen=True, kw_only=True)
class RegistryGc:
    """Remove from a private hub what no repository needs: content of deleted ones, and of uploads without a commit.

    The hub may be served meanwhile: what was sent, or named by a client, within the grace period stays.
    """

    folder: Path | None = param("Where the hub is kept; default this user's own", default=None, kind="path")
    grace: float = param("How long what nothing names stays", default=DAY, kind="duration", unit="s", ge=0)
    unreachable: bool = param(
        "Also drop commits that no branch or tag leads to; whoever asks for one by its id gets an error",
        default=False,
    )
    dry_run: bool = param("Say what would go, and remove nothing", default=False)

    def perform(self, run: Run) -> GcResult:
        """Remove; UsageError for a grace period that an upload could exceed while the hub is served."""
        from hfbench.registry.upkeep.collecting import collect
        from hfbench.registry.upkeep.session import on_hub, require_grace, settings_of

        settings = settings_of(self.folder)
        if not self.dry_run:
            require_grace(settings, self.grace)
        done = on_hub(
            settings,
            lambda hub: collect(hub, self.grace, unreachable=self.unreachable, dry_run=self.dry_run, tell=run.progress),
        )
        return GcResult(
            folder=settings.folder,
            commits=done.commits,
            trees=done.trees,
            blobs=done.blobs,
            xorbs=done.xorbs,
            files=done.files,
            bytes=done.bytes,
            dry_run=self.dry_run,
        )
