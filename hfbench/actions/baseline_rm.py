"""baseline.rm: forget measurements that were kept under a name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param

if TYPE_CHECKING:
    from hfbench.jobs.run import Run


@dataclass(frozen=True, kw_only=True)
class BaselineRmResult:
    """What was removed."""

    removed: tuple[str, ...]

    @property
    def headline(self) -> str:
        """`removed nightly`."""
        return f"removed {', '.join(self.removed)}"

    def lines(self) -> list[str]:
        """The same."""
        return [self.headline]


@action("baseline.rm", result=BaselineRmResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class BaselineRm:
    """Remove baselines; the jobs they were copied from are not touched."""

    names: tuple[str, ...] = param("Names of baselines", positional=True, kind="baseline")

    def perform(self, run: Run) -> BaselineRmResult:
        """All of them, or none when a name is not known."""
        from hfbench.compare.baselines import forget, must_exist

        for name in self.names:
            must_exist(name)
        for name in dict.fromkeys(self.names):
            forget(name)
        return BaselineRmResult(removed=tuple(dict.fromkeys(self.names)))
