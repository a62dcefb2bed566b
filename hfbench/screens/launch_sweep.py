"""What a form that varies fields stands for: a script with a matrix, the time it may take, and the sweep it becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hfbench.paths import jobs_root, sweeps_root
from hfbench.units import show_elapsed
from hfbench.widgets.form_state import FormState

if TYPE_CHECKING:
    from hfbench.scripts.tree import Plain, Value

MOST_CELLS = 10_000
"""Cells of a script at most."""
PLANNED = 64
"""Cells that are planned one by one while somebody types; of more only the first of each model."""

# The rooms that conduct sweeps are imported by the functions: a form that varies nothing needs none of them.


def script_of(state: FormState, name: str, runs_in: str = "", on: Sequence[str] = ()) -> str:
    """The script of a form: one step, with a matrix when fields are varied; HfbenchError while it cannot be made."""
    from hfbench.conduct.vary import sweep_script

    return sweep_script(state.spec, name, state.values, _plain_axes(state), runs_in=runs_in, on=on)


def step_of(
    state: FormState, runs_in: str, on: Sequence[str]
) -> tuple[Mapping[str, Value], Mapping[str, Sequence[Plain]]]:
    """The step of that script, by the arguments of its action, and its matrix: what a recording takes."""
    from hfbench.conduct.vary import swept_step

    return swept_step(state.spec, state.values, _plain_axes(state), runs_in=runs_in, on=on)


def sweep_name(state: FormState) -> str:
    """The name a sweep of this form gets: its action and what is varied, with a number where that is taken."""
    from hfbench.conduct.make import free_name, slug

    return free_name(sweeps_root(), slug("-".join((state.spec.name.rpartition(".")[2], *state.axes))))


def start_sweep(state: FormState, *, runs_in: str, on: Sequence[str]) -> str:
    """Make the sweep of a form and start its conductor; its name."""
    from hfbench.conduct.estimate import estimate
    from hfbench.conduct.make import Sweep, make
    from hfbench.conduct.start import start
    from hfbench.scripts.command import plan_of

    name = sweep_name(state)
    source = script_of(state, name, runs_in).encode()
    plan = plan_of(source, Path(f"{name}.hfb.yaml"))
    sweep = Sweep(name=name, source=source, plan=plan, on=tuple(on), estimate=estimate(plan, jobs_root()))
    start(make(sweeps_root(), sweep))
    return name


def time_of(state: FormState, on: Sequence[str]) -> str:
    """How long all cells may take and from what that is said, `about 3 m 05 s, from ...`; empty when nothing tells.

    Earlier jobs of an action and a model tell it; of very many cells one a model stands for all of them.
    """
    from hfbench.conduct.estimate import estimate
    from hfbench.conduct.places import places_for
    from hfbench.conduct.vary import sweep_script
    from hfbench.scripts.command import plan_of

    models = {param.name for param in state.spec.params if param.kind == "model"}
    axes = _plain_axes(state)
    few = axes if state.cells <= PLANNED else {n: all if n in models else all[:1] for n, all in axes.items()}
    plan = plan_of(sweep_script(state.spec, "cells", state.values, few).encode(), Path("cells.hfb.yaml"))
    found = estimate(plan, jobs_root())
    if found is None:
        return ""
    whole = replace(plan, cells=(plan.cells * state.cells)[: state.cells])
    at_once = min(state.cells, sum(place.of for place in places_for(tuple(on), None, whole)))
    return f"about {show_elapsed(found.all_s(state.cells, at_once))}, from {found.source}"


def _plain_axes(state: FormState) -> dict[str, list[Any]]:
    """The values as a script writes them."""
    params = {param.name: param for param in state.spec.params}
    return {name: [params[name].plain(value) for value in values] for name, values in state.axes.items()}
