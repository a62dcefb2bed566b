"""baseline.set: keep a measurement under a name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.line_width import cut
from hfbench.text import printable

if TYPE_CHECKING:
    from hfbench.jobs.run import Run


@dataclass(frozen=True, kw_only=True)
class BaselineSetResult:
    """What was kept, and where."""

    name: str
    of: str
    cells: int
    file: str
    notes: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """`nightly: a copy of 2026-11-29T20-11-04-bench.generate-3f9a1c`."""
        return f"{self.name}: a copy of {self.of}"

    def lines(self) -> list[str]:
        """The same for people, with how to use it."""
        told = [cut(printable(self.headline)), f"file     {cut(self.file, 9)}"]
        return [*told, *map(printable, self.notes), f"compare  hfbench compare {self.name} JOB"]


@action("baseline.set", result=BaselineSetResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class BaselineSet:
    """Keep a job, a sweep or a result file as a baseline: a copy that stays when the job is removed."""

    name: str = param("Name of the baseline", positional=True)
    of: str = param("Job id, sweep or result file", positional=True)
    replace: bool = param("Take the place of a baseline of that name", default=False)

    def perform(self, run: Run) -> BaselineSetResult:
        """Read it whole and write the copy."""
        from hfbench.compare.baselines import keep
        from hfbench.compare.reading import read_subject

        subject = read_subject(self.of)
        file = keep(self.name, subject, replace_it=self.replace)
        return BaselineSetResult(
            name=self.name, of=subject.name, cells=subject.cells, file=str(file), notes=subject.notes
        )
