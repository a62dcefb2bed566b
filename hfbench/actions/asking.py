"""From an action's request to a job's: where it runs, in which environment, and what it wants of an executor."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hfbench.actions.base import Action, Spec
from hfbench.environments.choose import place_for
from hfbench.errors import UsageError
from hfbench.jobs.executors.spec import parse_on
from hfbench.jobs.launch import JobRequest


def ask(spec: Spec, request: Action, *, runs_in: str = "", on: str = "", **more: Any) -> JobRequest:
    """The request of a job that performs this; `more` are further fields of it, such as its label.

    An environment is looked for only where this machine's folders are seen: what a far Python has, it tells itself.
    """
    where, params = parse_on(on), spec.values(request)
    place: dict[str, Any] = {}
    if where.shares_disk:
        place = asdict(place_for(spec.needing(params), runs_in))
    elif runs_in:
        raise UsageError(
            f"the environment {runs_in!r} is of this machine, and {where.text} has its own",
            where="in",
            remedy=f'name the interpreter there: [executors.NAME] with kind = "{where.kind}" and python = "..."',
        )
    told: dict[str, Any] = {} if where.is_local else {"on": where.text, "gpus": gpus_of(spec, request)}
    return JobRequest(action=spec.name, params=params, **place, **told, **more)


def gpus_of(spec: Spec, request: Action) -> int:
    """GPUs to ask an executor for: one where the action or its device needs one."""
    device = str(getattr(request, spec.lease)) if spec.lease else ""
    return int(spec.needs_gpu or device.startswith("cuda"))


def refuse_inline(spec: Spec, on: str, detach: str) -> None:
    """UsageError where a place was asked for an action that no worker runs; `detach` says how one would."""
    if not parse_on(on).is_local:
        found = f"it only reads, in this process, and cannot run on {on!r}"
        raise UsageError(found, where=spec.name, remedy=detach)
