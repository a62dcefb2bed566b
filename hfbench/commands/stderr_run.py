"""The run of an action in this process. What shows it is loaded by the first thing there is to show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from hfbench.jobs.run import Run

if TYPE_CHECKING:
    from hfbench.commands.watch import ProgressLine
    from hfbench.jobs.events import Event


class StderrRun(Run):
    """Its warnings go to stderr, and on a terminal a line tells how far it is, unless it is to be quiet."""

    def __init__(self, *, quiet: bool = False) -> None:
        super().__init__(emit=self._show)
        self._quiet = quiet
        self._line: ProgressLine | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._line:
            self._line.clear()

    def _show(self, event: Event) -> None:
        from hfbench.commands.watch import ProgressLine

        self._line = self._line or ProgressLine(quiet=self._quiet)
        self._line.show(event)
