"""registry.backup: copy a private hub while it is served."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.exits import Exit
from hfbench.models.problem import counted
from hfbench.registry.needs import NEEDS
from hfbench.registry.upkeep.facts import BackedUp
from hfbench.text import printable
from hfbench.units import show_bytes

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

WAYS = ("auto", "link", "clone", "copy")


@dataclass(frozen=True, kw_only=True)
class BackupResult:
    """The copy and how its files came there."""

    copy: BackedUp

    @property
    def failed(self) -> bool:
        """True when files that the database names were not there."""
        return bool(self.copy.missing)

    @property
    def exit(self) -> int:
        """1 when files were missing."""
        return Exit.FAILED if self.failed else Exit.OK

    @property
    def headline(self) -> str:
        """`1,204 files, 14.2 GiB: 12 copied, 1,192 there before`."""
        copy = self.copy
        ways = {"linked": copy.linked, "cloned": copy.cloned, "copied": copy.copied, "there before": copy.known}
        told = ", ".join(f"{count:,} {how}" for how, count in ways.items() if count) or "nothing to copy"
        return f"{counted(copy.files, 'file')}, {show_bytes(copy.bytes)}: {told}"

    def lines(self) -> list[str]:
        """What is missing, and how to check and serve the copy."""
        gone = [f"x {printable(name)} is named by the database and is not there" for name in self.copy.missing]
        folder = printable(self.copy.folder)
        hints = [f"hfbench registry fsck --folder {folder}", f"hfbench registry serve --folder {folder}"]
        return [*gone, *hints, "", self.headline]


@action("registry.backup", result=BackupResult, needs=NEEDS, extra="registry")
@dataclass(frozen=True, kw_only=True)
class RegistryBackup:
    """Copy a private hub into a folder, consistent while it is served: its database, its key, its content.

    The copy is a hub on SQLite whatever the original is on. A second backup brings only what is new.
    """

    destination: Path = param("Folder for the copy; best on another disk", kind="path", positional=True)
    folder: Path | None = param("Where the hub is kept; default this user's own", default=None, kind="path")
    way: str = param(
        "auto clones where the file system can, else copies; link shares files with the original, and so its damage",
        default="auto",
        choices=WAYS,
    )

    def perform(self, run: Run) -> BackupResult:
        """Copy; UsageError when the folder is something else."""
        from hfbench.registry.upkeep.backup import back_up
        from hfbench.registry.upkeep.session import on_hub, settings_of

        settings = settings_of(self.folder)
        return BackupResult(copy=on_hub(settings, lambda hub: back_up(hub, self.destination, self.way, run.progress)))
