"""resolve: every step from a reference to what each runtime would load."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.exits import Exit
from hfbench.line_width import cut, paragraph
from hfbench.models.problem import listed
from hfbench.models.resolution.trace import State, Step
from hfbench.models.resolution.verdicts import CONFIGURATION_ALONE
from hfbench.models.runtimes import RUNTIMES, TITLES, Runtime

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

SIGN = 2
LABEL = 15
MOST_LINES = 6
"""Lines of one step: a hostile name must not fill the screen."""

SIGNS = {"ok": "ok", "note": "~", "warning": "!", "error": "x", "skipped": "-"}


@dataclass(frozen=True, kw_only=True)
class ResolveResult:
    """The steps in order and the verdict of each runtime; `failed` when none of them loads the model.

    A verdict holds `loads`, `class` (of the configuration), `model_class`, `reason`, `files`, `ignored`, `notes`,
    `warning`, `version` of the rules, `judged` (`configuration` when the folder has no weights), `installed`, and
    `unread`, the version that is installed but was not understood.
    """

    model: str
    folder: str | None
    source: str | None
    commit: str | None
    steps: tuple[Step, ...]
    runtimes: Mapping[str, Mapping[str, Any]]
    failed: bool

    @property
    def exit(self) -> int | None:
        """2 where the reference leads nowhere, as for every other action; None leaves it to `failed`."""
        return int(Exit.USAGE) if self.folder is None else None

    def lines(self) -> list[str]:
        """Steps, then verdicts side by side, as wide as the terminal."""
        head = cut(self.model)
        return [head, "", *_told_steps(self.steps), "", *_told_verdicts(self.runtimes)]


@action("resolve", result=ResolveResult, inline=True)
@dataclass(frozen=True, kw_only=True)
class Resolve:
    """Trace how a reference becomes a model in transformers, vLLM, TensorRT-LLM and Megatron-core."""

    model: str = param("Folder, or repository in the Hugging Face cache", kind="model", positional=True)
    cache_dir: Path | None = param("Hugging Face cache to look in", default=None, kind="path")
    offline: bool = param("Resolve as a runtime without the network does", default=False)

    def perform(self, run: Run) -> ResolveResult:
        """Follow the reference; one that leads nowhere is told in the steps, not raised."""
        from hfbench.models.resolution.resolve import trace_model

        found = trace_model(self.model, cache_dir=self.cache_dir, offline=self.offline)
        location = found.location
        return ResolveResult(
            model=found.model,
            folder=str(location.folder) if location else None,
            source=location.source if location else None,
            commit=location.commit if location else None,
            steps=found.steps,
            runtimes={runtime: verdict.told() for runtime, verdict in found.runtimes.items()},
            failed=found.loads_nowhere,
        )


def spoken(runtime: Runtime, verdict: Mapping[str, Any]) -> str:
    """Why a runtime loads the model or not, without what stands beside it anyway: its name, and what was judged."""
    reason = str(verdict["reason"]).removesuffix(CONFIGURATION_ALONE)
    return reason.removeprefix(f"{TITLES[runtime]} {verdict['version']} ")


def state_of(verdict: Mapping[str, Any]) -> State:
    """How a verdict is marked: one that loads may still deserve a warning."""
    return "error" if not verdict["loads"] else "warning" if verdict.get("warning") else "ok"


def version_of(verdict: Mapping[str, Any]) -> str:
    """Which rules a verdict goes by: those of the package that is installed, or those that came with hfbench."""
    if verdict["installed"]:
        return f"{verdict['version']}, installed"
    unread = f"; {verdict['unread']} is installed and could not be read" if verdict.get("unread") else ""
    return f"{verdict['version']}{unread}"


def short_version(version: str) -> str:
    """The number alone: `0.16.1` of `0.16.1 by Megatron-Bridge 0.3.1`."""
    return version.partition(",")[0].partition(" by ")[0]


def _told_steps(steps: Iterable[Step]) -> Iterator[str]:
    """The steps; places that were skipped for one reason stand on one line."""
    for (state, sentence), run in groupby(steps, lambda each: (each.state, _sentence(each))):
        alike = list(run)
        if state == "skipped":
            yield from _lines(SIGNS[state], ", ".join(step.step for step in alike), sentence)
        else:
            for step in alike:
                yield from _lines(SIGNS[state], step.step, sentence)


def _sentence(step: Step) -> str:
    return "; ".join(filter(None, [step.found, step.why]))


def _told_verdicts(runtimes: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A paragraph a runtime; what is the same for all of them is said once."""
    verdicts = {runtime: runtimes[runtime] for runtime in RUNTIMES}
    alone = any(verdict["judged"] == "configuration" and verdict["loads"] for verdict in verdicts.values())
    yield "Runtimes, judged on the configuration alone: there are no weights" if alone else "Runtimes"
    reasons = {spoken(runtime, verdict) for runtime, verdict in verdicts.items()}
    if len(reasons) == 1 and not any(verdict["loads"] for verdict in verdicts.values()):
        yield from _lines(SIGNS["error"], "all four", f"does not load: {reasons.pop()}")
        return
    for runtime, verdict in verdicts.items():
        told = "loads" if verdict["loads"] else "does not load"
        text = f"{told} ({version_of(verdict)}): {spoken(runtime, verdict)}"
        if verdict["loads"] and verdict["ignored"]:
            text += f"; passes over {listed(verdict['ignored'], 2)}"
        yield from _lines(SIGNS[state_of(verdict)], TITLES[runtime], text)


def _lines(sign: str, label: str, text: str) -> Iterator[str]:
    """A sign, a label and a text of at most MOST_LINES lines beside them."""
    head = f"{sign:<{SIGN}} {label:<{LABEL}}"
    indent = " " * len(head)
    parts = paragraph(text, len(head), most=MOST_LINES) or [""]
    for number, part in enumerate(parts):
        yield f"{indent if number else head}{part}".rstrip()
