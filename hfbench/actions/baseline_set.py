"""baseline.set: keep a measurement under a name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.errors import HfbenchError, UsageError
from hfbench.line_width import cut, paragraph
from hfbench.models.problem import counted
from hfbench.text import printable

if TYPE_CHECKING:
    from hfbench.jobs.run import Run


@dataclass(frozen=True, kw_only=True)
class BaselineSetResult:
    """What is kept, and where; `there` says that it was kept before and left as it is."""

    name: str
    of: str
    cells: int
    file: str
    notes: tuple[str, ...] = ()
    there: bool = False
    doubts: tuple[str, ...] = ()
    """Why what is kept is not to be believed, a sentence a run."""

    @property
    def headline(self) -> str:
        """`nightly: a copy of 2026-11-29T20-11-04-bench.generate-3f9a1c`."""
        return f"{self.name}: a copy of {self.of}{', left as it was' if self.there else ''}"

    def lines(self) -> list[str]:
        """The same for people, with how to use it."""
        told = [cut(printable(self.headline)), f"file     {cut(self.file, 9)}"]
        told += [line for each in self.doubts for line in paragraph(printable(each), first="doubt    ", later=" " * 9)]
        return [*told, *map(printable, self.notes), f"compare  hfbench compare {self.name} JOB"]


@action("baseline.set", result=BaselineSetResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class BaselineSet:
    """Keep a job, a sweep or a result file as a baseline: a copy that stays when the job is removed."""

    name: str = param("Name of the baseline", positional=True, kind="baseline")
    of: str = param("Job id, sweep or result file", positional=True)
    replace: bool = param("Take the place of a baseline of that name", default=False)
    once: bool = param("Leave a baseline of that name as it is, for scripts that run every night", default=False)

    def perform(self, run: Run) -> BaselineSetResult:
        """Read it whole and write the copy; UsageError where the name is taken and neither option says what then.

        A run that is not to be believed is kept all the same, with a warning.
        """
        from hfbench.compare.baselines import describe, file_of, keep, read_baseline
        from hfbench.compare.doubts import doubts_of
        from hfbench.compare.reading import read_subject

        if self.once and self.replace:
            raise UsageError("--once and --replace were given", where="baseline.set", remedy="give one of them")
        if self.once and file_of(self.name).exists():
            kept = describe(self.name)
            if kept.problem:
                raise HfbenchError(kept.problem, where=file_of(self.name), remedy="set it anew with --replace")
            return self._told(
                BaselineSetResult(
                    name=self.name,
                    of=kept.of,
                    cells=kept.cells,
                    file=str(file_of(self.name)),
                    there=True,
                    doubts=doubts_of(read_baseline(self.name)),
                ),
                run,
            )
        subject = read_subject(self.of)
        file = keep(self.name, subject, replace_it=self.replace)
        return self._told(
            BaselineSetResult(
                name=self.name,
                of=subject.name,
                cells=subject.cells,
                file=str(file),
                notes=subject.notes,
                doubts=doubts_of(subject),
            ),
            run,
        )

    def _told(self, kept: BaselineSetResult, run: Run) -> BaselineSetResult:
        """The result, with its doubts told where a script's reader sees them, too."""
        if kept.doubts:
            more = f" (and {counted(len(kept.doubts) - 1, 'more run')})" if len(kept.doubts) > 1 else ""
            run.log(f"the baseline {self.name} is not to be believed: {kept.doubts[0]}{more}", level="warning")
        return kept
