"""The numbers of a cell's steps as figures, named as the expectations of a script name them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from hfbench.jobs.doubt import doubt, samples_for, verdicts_in
from hfbench.jobs.figures import numbers_in
from hfbench.sweeps.model import Better, Figure, SweepSnapshot
from hfbench.units import UNITS

OUTPUTS = "output_ids"
DETAILS = ("n", "std", "mean", "min", "max", "ci_low", "ci_high", "drift", "outliers", "formula")
"""Parts of a summary that are seldom what somebody wants to see first."""

OF_SAMPLES = ("p50", "p90", "p99", "mean", "min", "max")
"""Parts of a summary that are as good as its samples."""


def figures(result: Mapping[str, Any] | None, metrics: Mapping[str, Any] | None, prefix: str = "") -> dict[str, Figure]:
    """The figures of one finished step, from the parts its event holds; `prefix` is the name its result was saved as.

    Last values of a job's metrics, which stand in an event where the result has none, belong to no result; percentiles
    of fewer samples than they take are left out.
    """
    whole = dict(result or {})
    if metrics and not all(isinstance(each, Mapping) and set(each) == {"last", "unit"} for each in metrics.values()):
        whole["metrics"] = metrics
    named = f"{prefix}." if prefix else ""
    numbers = {path: (value, unit) for path, value, unit in numbers_in(whole) if not path.endswith(".left_out")}
    words, found = verdicts_in(result), dict[str, Figure]()
    for path, (value, unit) in numbers.items():
        stem, _, part = path.rpartition(".")
        count = numbers.get(f"{stem}.n", (None, ""))[0] if part in OF_SAMPLES else None
        if count is not None and count < samples_for(part):
            continue
        against = "" if count is None else doubt(int(count), interval=f"{stem}.ci_low" in numbers, verdicts=words)
        found[f"{named}{path}"] = Figure(value, unit, better(path, unit), against)
    return found


def outputs_hash(result: Mapping[str, Any] | None) -> str:
    """The first digits of a hash of what a step gave out, its `output_ids`; empty where it gave nothing.

    A long list stands in an event by its own hash, which serves as well.
    """
    given = (result or {}).get(OUTPUTS)
    if not given:
        return ""
    return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:8]


def better(path: str, unit: str) -> Better:
    """Whether a smaller or a larger value is the better one, by its unit; empty where that does not tell."""
    part = path.rpartition(".")[2]
    if part in ("n", "drift", "outliers", "std"):
        return ""
    if unit.endswith("/s"):
        return "higher"
    return "lower" if UNITS.get(unit, ("", 1.0))[0] in ("time", "bytes") else ""


def prefixes(steps: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """What figures of each step, counted from 1, begin with: nothing where there is one step alone, else the name its
    result is saved as. Steps without a name are left out; where none has one, their actions' last words name them."""
    if len(steps) == 1:
        return {1: ""}
    saved = {number: str(step["save_as"]) for number, step in enumerate(steps, 1) if step.get("save_as")}
    if saved:
        return saved
    words = [str(step.get("action", "")).rpartition(".")[2] or "step" for step in steps]
    return {n: word if words.count(word) == 1 else f"{word}_{n}" for n, word in enumerate(words, 1)}


def metric_names(snapshot: SweepSnapshot) -> tuple[str, ...]:
    """All metrics that any cell has, those first that somebody sweeps for: medians, then what can be better or worse,
    then counts and details."""
    units: dict[str, Figure] = {}
    for cell in snapshot.cells:
        for name, figure in cell.metrics.items():
            units.setdefault(name, figure)
    places = {name: place for place, name in enumerate(units)}
    return tuple(sorted(units, key=lambda name: (_rank(name, units[name]), places[name])))


def _rank(name: str, figure: Figure) -> int:
    part = name.rpartition(".")[2]
    if part == "p50":
        return 0
    if part in DETAILS:
        return 3
    return 1 if figure.better else 2
