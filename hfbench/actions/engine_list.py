"""engine.list: the engines in some folders, and whether each will load here."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.engines.listing import Listed, Unread
from hfbench.models.problem import counted

if TYPE_CHECKING:
    from hfbench.jobs.run import Run


USUAL = Path("engines")


@dataclass(frozen=True, kw_only=True)
class ListResult:
    """Engines by path, each with its verdict."""

    roots: tuple[str, ...]
    engines: tuple[Listed, ...]
    unread: tuple[Unread, ...] = ()
    """Folders that could not be looked into, or not to their end."""

    @property
    def failed(self) -> bool:
        """Whether a folder could not be looked into."""
        return bool(self.unread)

    @property
    def exit(self) -> int:
        """0 all were looked into, 1 some were not, 2 none of those that were named is there."""
        lost = {each.root for each in self.unread if each.root == each.folder}
        return 0 if not self.unread else 2 if self.roots and lost >= set(self.roots) and not self.engines else 1

    @property
    def headline(self) -> str:
        """`3 engines: 2 loads here, 1 will not load`."""
        verdicts = Counter(each.verdict for each in self.engines)
        told = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items())
        return f"{counted(len(self.engines), 'engine')}{': ' if told else ''}{told}"

    def lines(self) -> list[str]:
        """A row an engine, as wide as the terminal."""
        from hfbench.actions.engine_text import list_lines

        return list_lines(self)


@action("engine.list", result=ListResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class EngineList:
    """List the engines in folders, and whether each will load here; files are not hashed.

    Without folders, engines that jobs have built are listed too, wherever they lie.
    """

    roots: tuple[Path, ...] = param(
        "Folders to look in; default those of the configuration, else ./engines", default=(), kind="path"
    )

    def perform(self, run: Run) -> ListResult:
        """Look into the folders and ask the rules of each engine."""
        from hfbench.config import read_config
        from hfbench.engines.jobs import built_by_jobs
        from hfbench.engines.listing import list_engines
        from hfbench.paths import expand

        named = self.roots or tuple(map(expand, read_config().engines.roots))
        usual = () if named or not USUAL.is_dir() else (USUAL,)  # nobody asked for it: it may be absent
        built = () if self.roots else tuple(built_by_jobs())
        unread: list[Unread] = []
        engines = list_engines((*(expand(str(root)) for root in named), *usual, *built), unread=unread.append)
        roots = tuple(map(str, named or (USUAL,)))
        return ListResult(roots=roots, engines=tuple(engines), unread=tuple(unread))
