"""How long the cells of a sweep may take, from what earlier jobs took or from their budgets; and which of these."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeAlias

from hfbench.jobs.directory import JobDirectory
from hfbench.jobs.history import History, JobRow
from hfbench.jobs.snapshot import read_job
from hfbench.jobs.state import State
from hfbench.models.identity import identity
from hfbench.models.problem import counted
from hfbench.scripts.plan import Plan, PlannedStep

LOOKED_AT = 20
"""Latest jobs of an action and a model among which the most similar ones are looked for."""
BUDGET = "budget"
TOKENS = ("batch", "prompt", "new_tokens")
"""Fields whose product, as tokens, the time of an iteration is taken to grow with."""
SPENT = "budget-spent"
OF_BUDGETS = "the budgets, loading not counted"

Key: TypeAlias = tuple[str, str]
"""An action, and what its model leads to."""
LeadsTo: TypeAlias = Callable[[str], str]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Seconds of one cell, and the source of the figure in words."""

    cell_s: float
    source: str

    def all_s(self, cells: int, at_once: int) -> float:
        """Seconds of so many cells, so many at once."""
        return self.cell_s * -(-cells // max(1, at_once))


@dataclass(frozen=True)
class _Within:
    """The part of a job that a budget is for, warm-up included: its seconds, those of one iteration or round, and
    whether the budget was what ended it."""

    seconds: float
    iteration: float
    spent: bool


@dataclass
class _Earlier:
    """A finished job of the same action and model: its fields and what it took."""

    job: JobDirectory
    seconds: float

    @cached_property
    def params(self) -> Mapping[str, Any]:
        """All its fields as they were asked for."""
        given = self.job.request.get("params")
        return given if isinstance(given, dict) else {}

    @cached_property
    def within(self) -> _Within:
        """What counted as its budget's."""
        result = read_job(self.job).result or {}
        warmed = _numbers(result.get("warmup")) or [_number(result.get("warmup_seconds"))]
        rounds = _number(result.get("iterations") or result.get("rounds")) + _number(result.get("warmup_rounds"))
        rounds += len(warmed) if isinstance(result.get("warmup"), Mapping) else 0
        seconds = min(self.seconds, _number(result.get("measured_seconds")) + sum(warmed))
        return _Within(seconds, seconds / rounds if rounds else 0.0, result.get("stop_reason") == SPENT)

    def differs(self, values: Mapping[str, Any]) -> int:
        """In how many fields a request is another one. The budget is reckoned with and not counted, and the model is
        the same, however it was written."""
        fields = [name for name in values if name not in (BUDGET, "model")]
        return sum(self.params.get(name, values[name]) != values[name] for name in fields)

    def scaled(self, values: Mapping[str, Any]) -> float:
        """Seconds a request would have taken in its place: as long to start, then in proportion to the tokens of an
        iteration and within the budget that is given, but for one iteration that is longer."""
        grown = _tokens(values) / _tokens(self.params) if _tokens(values) and _tokens(self.params) else 1.0
        budget = _number(values.get(BUDGET))
        if not budget:
            return self.seconds * grown
        within = self.within
        more = within.spent and budget >= _number(self.params.get(BUDGET))
        measuring = budget if more else min(within.seconds * grown, budget)
        return self.seconds - within.seconds + max(measuring, within.iteration * grown)


@dataclass
class _Sources:
    """What was used, to be told."""

    jobs: set[str] = field(default_factory=set)
    actions: set[str] = field(default_factory=set)
    models: set[str] = field(default_factory=set)
    scaled: bool = False
    budgets: bool = False

    def words(self) -> str:
        """`3 earlier jobs of bench.generate with this model, scaled`, `the budgets`, or both."""
        told = []
        if self.jobs:
            model = "this model" if len(self.models) == 1 else "these models"
            jobs = counted(len(self.jobs), "earlier job")
            scaled = ", scaled to these fields" if self.scaled else ""
            told.append(f"{jobs} of {' and '.join(sorted(self.actions))} with {model}{scaled}")
        return " and ".join([*told, *([OF_BUDGETS] if self.budgets else [])]) or "steps that only read"


def estimate(plan: Plan, jobs: Path) -> Estimate | None:
    """The mean time of a cell: of each step by the finished jobs of its action and model that are most like it, else by
    its budget; None where a step that is a job has neither."""
    steps = [step for _, step in plan if not step.spec.inline]
    leads_to, sources = cache(identity), _Sources()
    earlier = _earlier({_key(step, leads_to) for step in steps}, jobs, leads_to)
    known: dict[tuple[Any, ...], float] = {}
    total = 0.0
    for step in steps:
        values = step.spec.values(step.request)
        same = (step.spec.name, *map(repr, values.values()))
        if same not in known:
            seconds = _seconds(key := _key(step, leads_to), values, earlier.get(key, ()), sources)
            if seconds is None:
                return None
            known[same] = seconds
        total += known[same]
    return Estimate(cell_s=total / len(plan.cells), source=sources.words())


def _seconds(key: Key, values: Mapping[str, Any], earlier: Sequence[_Earlier], sources: _Sources) -> float | None:
    """Seconds of one step of an action and a model; None where nothing tells."""
    if not earlier:
        sources.budgets |= bool(values.get(BUDGET))
        return _number(values.get(BUDGET)) or None
    differ = [each.differs(values) for each in earlier]
    like = [each for each, count in zip(earlier, differ, strict=True) if count == min(differ)]
    found = [each.scaled(values) for each in like]
    sources.jobs |= {each.job.id for each in like}
    sources.actions.add(key[0])
    sources.models.add(key[1])
    sources.scaled |= any(abs(one - each.seconds) > 1e-9 for one, each in zip(found, like, strict=True))
    return statistics.median(found)


def _earlier(wanted: set[Key], jobs: Path, leads_to: LeadsTo) -> dict[Key, list[_Earlier]]:
    """The latest finished jobs of each action and model."""
    found: dict[Key, list[_Earlier]] = {}
    if not wanted:
        return found
    actions = {action for action, _ in wanted}
    with closing(History(jobs)) as history:
        for row in history.rows():
            if row.action not in actions:
                continue
            key = row.action, leads_to(row.model)
            if row.state is State.FINISHED and key in wanted and len(found.get(key, ())) < LOOKED_AT:
                found.setdefault(key, []).append(_Earlier(JobDirectory(jobs / row.id), _took(row)))
    return found


def _took(row: JobRow) -> float:
    return row.seconds(row.ended or row.created)


def _key(step: PlannedStep, leads_to: LeadsTo) -> Key:
    """Action and model, by what it leads to: the history has it as it was written."""
    values = step.spec.values(step.request)
    return step.spec.name, leads_to(str(values.get("model") or values.get("kernel") or ""))


def _tokens(values: Mapping[str, Any]) -> float:
    """Tokens of one iteration; 0 for an action that has none."""
    batch, prompt, new = (_number(values.get(name)) for name in TOKENS)
    return batch * (prompt + new)


def _numbers(warm_up: object) -> list[float]:
    """The seconds of each warm-up iteration, where a result tells them."""
    given = warm_up.get("seconds") if isinstance(warm_up, Mapping) else None
    return [*map(_number, given)] if isinstance(given, list) else []


def _number(value: object) -> float:
    """A number as it is; 0 for what is none."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0
