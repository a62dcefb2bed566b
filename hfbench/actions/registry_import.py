"""registry.import: bring models of a disk into a private hub."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.actions.registry_backup import WAYS
from hfbench.line_width import cut
from hfbench.models.problem import counted
from hfbench.registry.needs import NEEDS
from hfbench.registry.upkeep.facts import Imported
from hfbench.text import printable
from hfbench.units import show_bytes

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

SHOWN = 40


@dataclass(frozen=True, kw_only=True)
class ImportResult:
    """The repositories that were brought in. `founder` is the account of a hub that was made for them."""

    done: Imported
    founder: str = ""

    @property
    def headline(self) -> str:
        """`3 repositories, 14.2 GiB: 41 files cloned, 4 known`."""
        done = self.done
        ways = {"linked": done.linked, "cloned": done.cloned, "copied": done.copied, "known": done.known}
        told = ", ".join(f"{count:,} {how}" for how, count in ways.items() if count) or "small files only"
        size = show_bytes(sum(repo.bytes for repo in done.repos))
        return f"{len(done.repos):,} {'repository' if len(done.repos) == 1 else 'repositories'}, {size}: {told}"

    def lines(self) -> list[str]:
        """Each repository with its revisions, then what was left out."""
        rows = [
            cut(
                f"{repo.kind:<8} {printable(repo.name)}  {counted(repo.files, 'file')}, {show_bytes(repo.bytes)}, "
                f"{', '.join(revision[:12] for revision in repo.revisions)}{'' if repo.new else '  was there'}"
            )
            for repo in self.done.repos
        ]
        left = [cut(f"! left out: {printable(line)}") for line in self.done.left[:SHOWN]]
        more = len(self.done.left) - SHOWN
        made = f"a new hub: hfbench registry token create {self.founder} makes a token for it"
        rows = [*([made] if self.founder else []), *rows]
        return [*rows, *left, *([f"and {more} more (--json lists all)"] if more > 0 else []), "", self.headline]


@action("registry.import", result=ImportResult, needs=NEEDS, extra="registry")
@dataclass(frozen=True, kw_only=True)
class RegistryImport:
    """Bring a Hugging Face cache, a tree of namespace/name folders, or one folder into a private hub.

    A folder that is absent or empty becomes a hub. Every file is hashed. Revisions of a cache keep their commit ids;
    contents of the source are never written to.
    """

    source: Path = param("Cache, tree of folders, or with --repo the folder of one model", kind="path", positional=True)
    repo: str = param("namespace/name: the source is the folder of this one model", default="")
    private: bool = param("Make new repositories private", default=False)
    folder: Path | None = param("Where the hub is kept; default this user's own", default=None, kind="path")
    way: str = param(
        "auto clones where the file system can, else copies; link shares the files, which become read-only",
        default="auto",
        choices=WAYS,
    )

    def perform(self, run: Run) -> ImportResult:
        """Bring in; UsageError when the source holds no repository."""
        from hfbench.paths import registry_root
        from hfbench.registry.founding import read_or_found
        from hfbench.registry.upkeep.importing import Importer
        from hfbench.registry.upkeep.session import on_hub
        from hfbench.registry.upkeep.sources import sources

        found = sources(self.source, self.repo)
        settings, founder = read_or_found(self.folder or registry_root())
        done = on_hub(settings, lambda hub: Importer(hub, self.way, private=self.private, tell=run.progress).run(found))
        return ImportResult(done=done, founder=founder)
