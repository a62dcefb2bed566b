"""resolve: every step from a reference to what each runtime would load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.models.resolution.trace import Step
from hfbench.models.runtimes import RUNTIMES, TITLES
from hfbench.text import clip_middle

if TYPE_CHECKING:
    from hfbench.jobs.run import Run

WIDTH = 80
LABEL = 15
MOST_LINES = 6
"""Lines of one step: a hostile name must not fill the screen."""

SIGNS = {"ok": "+", "note": "~", "warning": "!", "error": "x", "skipped": "-"}


@dataclass(frozen=True, kw_only=True)
class ResolveResult:
    """The steps in order and the verdict of each runtime; `failed` when none of them loads the model.

    A verdict holds `loads`, `class` (of the configuration), `model_class`, `reason`, `files`, `ignored`, `notes`,
    `version` of the rules, `judged` (`configuration` when the folder has no weights) and `installed`.
    """

    model: str
    folder: str | None
    source: str | None
    commit: str | None
    steps: tuple[Step, ...]
    runtimes: Mapping[str, Mapping[str, Any]]
    failed: bool

    def lines(self) -> list[str]:
        """Steps, then verdicts side by side, at most 80 columns wide."""
        shown = [line for step in self.steps for line in _step_lines(step)]
        return [clip_middle(self.model, WIDTH, ellipsis="..."), *shown, "", *_verdict_lines(self.runtimes)]


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


def _step_lines(step: Step) -> Iterator[str]:
    sentence = "; ".join(filter(None, [step.found, step.why]))
    for number, line in enumerate(_wrapped(sentence, WIDTH - LABEL - 2)):
        head = f"{SIGNS[step.state]} {step.step:<{LABEL}}" if not number else " " * (LABEL + 2)
        yield f"{head}{line}".rstrip()


def _verdict_lines(runtimes: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for runtime in RUNTIMES:
        verdict = runtimes[runtime]
        title = TITLES[runtime]
        sign = SIGNS["ok"] if verdict["loads"] else SIGNS["error"]
        told = "loads" if verdict["loads"] else "does not load"
        text = f"{told} ({verdict['version']}): {verdict['reason']}"
        for number, line in enumerate(_wrapped(text, WIDTH - LABEL - 2)):
            yield (f"{sign} {title:<{LABEL}}" if not number else " " * (LABEL + 2)) + line


def _wrapped(text: str, width: int) -> list[str]:
    return wrap(text, width, max_lines=MOST_LINES, placeholder=" ...", break_on_hyphens=False) or [""]
