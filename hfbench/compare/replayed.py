"""The events that a replay of a script, or the conductor of a sweep, wrote: steps and expectations of every cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hfbench.compare.jobs import led_to, local_job, measured_of
from hfbench.compare.metrics import number
from hfbench.compare.subject import Asked, CellKey, Measured, cell_key, value_key
from hfbench.jobs.snapshot import read_job
from hfbench.models.problem import counted

FINISHED = {"ok": "finished"}
"""How a step ended that went well, in the word of jobs."""


class Replayed:
    """The steps and expectations that the events of a replay tell of; of several attempts the latest counts."""

    def __init__(self, lines: Sequence[Mapping[str, Any]]) -> None:
        self.environment: dict[str, Any] = {}
        self.measured: list[Measured] = []
        self.asked: list[Asked] = []
        self.lost = 0
        steps: dict[tuple[CellKey, str], Mapping[str, Any]] = {}
        asked: dict[tuple[CellKey, str, str], Mapping[str, Any]] = {}
        for each in lines:
            event, place, step = each.get("event"), cell_key(_cell(each)), value_key(each.get("step"))
            if event == "run_started" and isinstance(each.get("environment"), dict):
                self.environment = each["environment"]
            elif event == "step_finished":
                steps[place, step] = each
            elif event == "assert":
                asked[place, step, str(each.get("expr"))] = each
        many = len({step for _, step in steps}) > 1
        self.measured = [self._measured(each, many=many) for each in steps.values()]
        self.asked = [_asked(each, many=many) for each in asked.values()]
        self._cells = {place for place, _ in steps}

    @property
    def usual_action(self) -> str:
        """The action of the first step, for cells that never came to one."""
        return self.measured[0].action if self.measured else "unknown action"

    @property
    def notes(self) -> list[str]:
        """What is missing of jobs that are gone."""
        if not self.lost:
            return []
        return [f"of {counted(self.lost, 'step')} the jobs are gone: their metrics are summaries without samples"]

    def has(self, values: Mapping[str, Any]) -> bool:
        """Whether a step of a cell has ended."""
        return cell_key(values) in self._cells

    def _measured(self, event: Mapping[str, Any], *, many: bool) -> Measured:
        values = _cell(event)
        step = f"{event.get('step')} {event.get('action')}" if many else ""
        job = local_job(event.get("job"))
        if job is not None:
            return measured_of(job, read_job(job), values=values, step=step)
        self.lost += bool(event.get("job"))
        error = event.get("error")
        return Measured(
            values=values,
            step=step,
            action=str(event.get("action") or "unknown action"),
            result=_whole(event),
            environment=self.environment,
            state=FINISHED.get(status := str(event.get("status") or "ok"), status),
            reason=str(error.get("found", "")) if isinstance(error, dict) else "",
            job=str(event.get("job") or ""),
            created=number(event.get("at")),
            seconds=number(event.get("duration_s")),
            led_to=led_to({}, _whole(event)),
        )


def _cell(event: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the cell an event is about; none for a script without a matrix."""
    told = event.get("cell")
    return told if isinstance(told, dict) else {}


def _whole(event: Mapping[str, Any]) -> dict[str, Any] | None:
    """A result with the metrics that an event keeps beside it."""
    result, metrics = event.get("result"), event.get("metrics")
    if not isinstance(result, dict):
        return None
    return {**result, "metrics": metrics} if isinstance(metrics, dict) and metrics else dict(result)


def _asked(event: Mapping[str, Any], *, many: bool) -> Asked:
    ok, actual = event.get("ok"), event.get("actual")
    shown = "" if actual is None else f"{actual:.4g}" if isinstance(actual, float) else str(actual)
    return Asked(
        values=_cell(event),
        step=f"{event.get('step')} {event.get('action', '')}".strip() if many else "",
        text=str(event.get("expr", "")),
        ok=ok if isinstance(ok, bool) else None,
        actual=f"{shown} {event.get('unit') or ''}".strip(),
        reason=str(event.get("reason") or ""),
    )
