"""A run that measured several things in turns, taken apart: each row is a side, and their samples are pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from hfbench.compare.jobs import led_to
from hfbench.compare.metrics import NAMING, is_summary
from hfbench.compare.subject import Measured, Subject

SHARED = ("verdicts", "model", "device", "dtype", "threads")
"""What a result tells of all its rows; rows may tell otherwise."""
IN_TURNS = ("bench.modes", "bench.compare")
"""Actions whose rows were measured round by round, each in every round."""


def rows_of(subject: Subject) -> list[Subject]:
    """One subject a row that was measured; empty when the subject is no single run in turns of two rows or more."""
    if len(subject.measured) != 1 or subject.measured[0].action not in IN_TURNS:
        return []
    whole = subject.measured[0]
    rows = (whole.result or {}).get("rows")
    measured = (
        [row for row in rows if isinstance(row, Mapping) and any(map(is_summary, _inner(row)))]
        if isinstance(rows, list)
        else []
    )
    if len(measured) < 2:
        return []
    shared = {name: whole.result[name] for name in SHARED if whole.result and name in whole.result}
    return [
        replace(
            subject,
            name=_name(row, place),
            measured=(_measured(whole, row, shared),),
        )
        for place, row in enumerate(measured)
    ]


def _measured(whole: Measured, row: Mapping[str, Any], shared: Mapping[str, Any]) -> Measured:
    """A row as a run of its own; a row may be of another model."""
    params = _params(whole.params, row)
    own = params.get("model") != whole.params.get("model")
    return replace(
        whole,
        params=params,
        result={**shared, **_figures(row)},
        led_to=led_to(params, None) if own else whole.led_to,
    )


def _params(params: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a row: those of the run, with what the row has otherwise."""
    own = row.get("params")
    if isinstance(own, Mapping):
        return dict(own)
    kept = {name: value for name, value in params.items() if name != "modes"}
    return {**kept, "mode": row["mode"]} if isinstance(row.get("mode"), str) else kept


def _figures(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as a result; its ratio to another row is left out, as it is what a comparison finds."""
    return {name: value for name, value in row.items() if name not in ("ratio", "params", "model", "dtype")} | {
        name: row[name] for name in ("model", "dtype") if row.get(name)
    }


def _inner(row: Mapping[str, Any]) -> Iterator[Any]:
    for value in row.values():
        yield value
        if isinstance(value, Mapping) and not is_summary(value):
            yield from value.values()


def _name(row: Mapping[str, Any], place: int) -> str:
    return next((str(row[key]) for key in NAMING if isinstance(row.get(key), str) and row[key]), str(place))
