"""baseline.list: the measurements that were kept under a name."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.compare.baselines import Baseline
from hfbench.line_width import cut_end
from hfbench.models.problem import counted
from hfbench.text import printable
from hfbench.units import show_ago

if TYPE_CHECKING:
    from hfbench.jobs.run import Run


@dataclass(frozen=True, kw_only=True)
class BaselineListResult:
    """All baselines by name."""

    folder: str
    baselines: tuple[Baseline, ...]

    @property
    def headline(self) -> str:
        """`2 baselines`."""
        return counted(len(self.baselines), "baseline")

    def lines(self) -> list[str]:
        """One line a baseline."""
        if not self.baselines:
            return ["no baselines yet; hfbench baseline set NAME JOB keeps one"]
        width = max(len(each.name) for each in self.baselines)
        return [cut_end(f"{each.name:<{width}}  {printable(_told(each))}") for each in self.baselines]


def _told(each: Baseline) -> str:
    if each.problem:
        return each.problem
    kept = show_ago(time.time() - each.kept) if each.kept is not None else "?"
    cells = counted(each.cells, "cell") if each.cells > 1 else each.headline
    return ", ".join(filter(None, (kept, each.action, each.model.rstrip("/").rpartition("/")[2], cells, each.host)))


@action("baseline.list", result=BaselineListResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class BaselineList:
    """List the baselines: when each was kept, of what, and on which host."""

    def perform(self, run: Run) -> BaselineListResult:
        """Read their files."""
        from hfbench.compare.baselines import listed
        from hfbench.paths import baselines_root

        return BaselineListResult(folder=str(baselines_root()), baselines=tuple(listed()))
