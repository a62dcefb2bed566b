"""engine.list: the engines in some folders, and whether each will load here."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.engines.listing import Listed
from hfbench.models.problem import counted

if TYPE_CHECKING:
    from hfbench.jobs.run import Run


@dataclass(frozen=True, kw_only=True)
class ListResult:
    """Engines by path, each with its verdict."""

    roots: tuple[str, ...]
    engines: tuple[Listed, ...]

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
    """List the engines in folders, and whether each will load here; files are not hashed."""

    roots: tuple[Path, ...] = param(
        "Folders to look in; default those of the configuration, else ./engines", default=(), kind="path"
    )

    def perform(self, run: Run) -> ListResult:
        """Look into the folders and ask the rules of each engine."""
        from hfbench.config import read_config
        from hfbench.engines.listing import list_engines
        from hfbench.paths import expand

        roots = self.roots or tuple(map(expand, read_config().engines.roots)) or (Path("engines"),)
        return ListResult(roots=tuple(map(str, roots)), engines=tuple(list_engines(roots)))
