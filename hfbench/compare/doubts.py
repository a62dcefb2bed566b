"""Why a run is not to be believed: too few samples, no warm-up, or what its own verdicts say against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hfbench.compare.judging import OF_THE_RUN
from hfbench.compare.metrics import Metric, metrics_of
from hfbench.compare.subject import Measured, Subject
from hfbench.gpu.timing.formulas import RATIO
from hfbench.gpu.timing.samples import Samples
from hfbench.gpu.timing.statistics import LEAST_FOR_INTERVAL
from hfbench.gpu.timing.verdicts import FEW, Word, spoiling
from hfbench.jobs.doubt import DISTRUSTED, verdicts_of
from hfbench.models.problem import counted


def against(result: Mapping[str, Any] | None) -> dict[Word, str]:
    """What a result says against itself, a detail for each word; empty when nothing."""
    known = {str(word): word for word in Word if word is not Word.STABLE}
    told = ((str(each.get("word")), str(each.get("detail", ""))) for each in verdicts_of(result))
    return {known[word]: detail for word, detail in told if word in known}


def doubts_of(subject: Subject) -> tuple[str, ...]:
    """A sentence for each run that is not to be believed: its cell, where it has several, and why."""
    found = ((each.place, doubts(each)) for each in subject.measured)
    return tuple(f"{place}: {'; '.join(why)}" if place else "; ".join(why) for place, why in found if why)


def doubts(measured: Measured) -> list[str]:
    """Why a run that was measured is not to be believed, a part of a sentence each; empty for one that is."""
    return [*_few(measured.result), *_cold(measured.result), *_spoken(measured.result)]


def words_about(metric: Metric, result: Mapping[str, Any] | None) -> list[Word]:
    """The words for one metric: those of its run as a whole, and those of its own samples; `stable` where none is."""
    found = [word for word in against(result) if word in (*OF_THE_RUN, Word.OUTPUT_VARIES)]
    if metric.count < FEW:
        found.append(Word.FEW_SAMPLES)
    found += [each.word for each in spoiling(Samples(metric.name, RATIO, list(metric.values)))]
    return found or [Word.STABLE]


def _few(result: Mapping[str, Any] | None) -> Iterator[str]:
    counts = [each.count for each in metrics_of(result).values()]
    if counts and min(counts) < LEAST_FOR_INTERVAL:
        yield f"{counted(min(counts), 'sample')}, too few for an interval"


def _cold(result: Mapping[str, Any] | None) -> Iterator[str]:
    warm_up = (result or {}).get("warmup")
    told = warm_up if isinstance(warm_up, Mapping) else {}
    asked, made = told.get("asked"), told.get("iterations")
    if isinstance(asked, int) and made == 0:
        yield f"0 of {counted(asked, 'warm-up iteration')}" if asked else "no warm-up"


def _spoken(result: Mapping[str, Any] | None) -> Iterator[str]:
    return (f"{word}: {detail}" for word, detail in against(result).items() if word in DISTRUSTED)
