"""What a sweep would be typed as in the form of its action, to be edited and run again under another name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

from hfbench.errors import HfbenchError, UsageError
from hfbench.jobs.executors.spec import LOCAL
from hfbench.screens.launch_runs import RUNS_ON
from hfbench.sweeps.folder import SweepFolder
from hfbench.sweeps.vary import spelled


@dataclass(frozen=True, kw_only=True)
class FilledForm:
    """A form as somebody would have filled it. `texts` are the fields that vary, as lists and ranges."""

    action: str
    values: Mapping[str, object]
    texts: Mapping[str, str]
    runs_in: str
    on: str


def form_of(folder: Path) -> FilledForm:
    """The form of a sweep; HfbenchError for one that no form stands for, such as a script of several steps."""
    from hfbench.scripts.command import load_plan

    sweep = SweepFolder(folder)
    plan = load_plan(sweep.script)
    steps = [step for _, step in plan]
    if len(steps) != len(plan.cells) or len({(step.spec.name, step.runs_in, step.on) for step in steps}) != 1:
        raise _no_form(sweep, "its cells are not one step of one action")
    first = steps[0]
    cells = [step.spec.values(step.request) for step in steps]
    found = {param: {param.text(cell[param.name]): cell[param.name] for cell in cells} for param in first.spec.params}
    if prod(map(len, found.values())) != len(cells):
        raise _no_form(sweep, "its cells are not all combinations of what varies")
    values = {param.name: value for param, each in found.items() if len(each) == 1 for value in each.values()}
    try:
        texts = {param.name: spelled(param, tuple(each)) for param, each in found.items() if len(each) > 1}
    except UsageError as error:
        raise _no_form(sweep, str(error)) from None
    places = sweep.about.get("on")
    if isinstance(places, list) and places != [LOCAL]:
        texts[RUNS_ON] = ",".join(map(str, places))
    return FilledForm(action=first.spec.name, values=values, texts=texts, runs_in=first.runs_in, on=first.on)


def _no_form(sweep: SweepFolder, why: str) -> HfbenchError:
    remedy = f"copy and edit {sweep.script}, then: hfbench sweep run FILE"
    return UsageError(f"no form stands for the sweep {sweep.name}: {why}", remedy=remedy)
