"""Opens the screens of one thing: a model, a job, a form, a sweep; each is imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hfbench.config import Config
from hfbench.paths import jobs_root, sweeps_root
from hfbench.widgets.type_ahead import TypeAhead


class Opening(TypeAhead):
    """The application, as far as it opens screens over the one in front."""

    config: Config

    def open_model(self, reference: str, tab: str = "") -> None:
        """Show one model, at its overview unless another tab is named."""
        from hfbench.screens.model import ModelScreen

        self.push_screen(ModelScreen(reference, tab))

    def open_job(self, job_id: str) -> None:
        """Show one job."""
        from hfbench.jobs.directory import JobDirectory
        from hfbench.screens.job import JobScreen

        self.push_screen(JobScreen(JobDirectory(jobs_root() / job_id)))

    def open_sweep(self, name: str) -> None:
        """Show one sweep."""
        from hfbench.screens.sweep import SweepScreen

        self.push_screen(SweepScreen(sweeps_root() / name))

    def open_compare(self, sides: Sequence[str]) -> None:
        """Compare jobs or sweeps by their ids or names; all with the first."""
        from hfbench.screens.compare import CompareScreen

        self.push_screen(CompareScreen(tuple(sides)))

    def open_form(
        self,
        action: str,
        values: Mapping[str, object] | None = None,
        *,
        runs_in: str = "",
        on: str = "",
        texts: Mapping[str, str] | None = None,
    ) -> None:
        """Show the form of an action, filled with these values, and with texts as they would be typed."""
        from hfbench.screens.launch import LaunchScreen

        environments, executors = tuple(self.config.environments), self.config.executors
        self.push_screen(
            LaunchScreen(
                action, values, environments=environments, executors=executors, runs_in=runs_in, on=on, texts=texts
            )
        )

    def open_diff(self, a: str, b: str) -> None:
        """Show what sets one model apart from another."""
        from hfbench.screens.diff import DiffScreen

        self.push_screen(DiffScreen(a, b))

    def open_convert(self, reference: str) -> None:
        """Show what would become of a model in Megatron's files, or of a checkpoint of Megatron."""
        from hfbench.screens.convert import ConvertScreen

        self.push_screen(ConvertScreen(reference))
