"""Runs one action from the command line: in this process, or as a job that is watched or left alone."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from hfbench.actions.base import InvalidParams, Spec
from hfbench.actions.params import Param, Problem
from hfbench.actions.render import result_lines
from hfbench.actions.results import exit_of, result_data
from hfbench.commands.parser import Parser
from hfbench.commands.watch import StderrRun, watch_or_cancel
from hfbench.errors import HfbenchError, error_from_parts
from hfbench.exits import Exit, complain
from hfbench.jobs.launch import JobRequest, launch
from hfbench.jobs.snapshot import JobSnapshot, State
from hfbench.paths import jobs_root
from hfbench.units import parse_duration

WAITING = (
    "While it waits, Ctrl-C cancels the job; SIGTERM, SIGHUP or a closed terminal leave it running (hfbench jobs list)."
)


def main(spec: Spec, words: Sequence[str]) -> int:
    """Run the action as the words ask; the exit code."""
    given = parser_for(spec).parse_args(words)
    request = spec.build(values_of(spec, given))
    timeout = parse_duration(given.timeout) if given.timeout is not None else None
    if spec.inline and not given.detach:
        spec.require()
        return _print_result(spec, result_data(request.perform(StderrRun())), given.json)
    job = launch(
        jobs_root(),
        JobRequest(
            action=spec.name,
            params=spec.values(request),
            lease=not given.no_lease,
            timeout=timeout,
            label=given.label,
        ),
    )
    if given.detach:
        print(json.dumps({"job": job.id, "directory": str(job.path)}) if given.json else job.id)
        return Exit.OK
    snapshot, interrupted = watch_or_cancel(job, quiet=given.json)
    code = report_end(spec, snapshot, given.json)
    return Exit.INTERRUPTED if interrupted else code


def parser_for(spec: Spec) -> argparse.ArgumentParser:
    """The parser of an action's own command, made from its declaration."""
    parser = Parser(
        prog=f"hfbench {spec.name.replace('.', ' ')}",
        description=f"{spec.summary}.",
        epilog="" if spec.inline else WAITING,
    )
    for param in spec.params:
        _add(parser, param)
    running = parser.add_argument_group("how it runs")
    running.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    wait = running.add_mutually_exclusive_group()
    wait.add_argument("--wait", action="store_true", help="stay until it is over (the default)")
    wait.add_argument("--detach", action="store_true", help="start a job, print its id and leave it alone")
    running.add_argument("--timeout", metavar="DURATION", help="stop the job after so much running time, such as 10m")
    running.add_argument("--label", default="", help="a name for the job in lists")
    running.add_argument("--no-lease", action="store_true", help="do not wait for the device to be free")
    return parser


def report_end(spec: Spec, snapshot: JobSnapshot, as_json: bool) -> int:
    """Print how a job ended and turn it into an exit code."""
    if snapshot.state is State.FINISHED and snapshot.result is not None:
        return _print_result(spec, {**snapshot.result, "job": snapshot.id}, as_json)
    if snapshot.error:
        error = error_from_parts(snapshot.error)
    else:
        how = "died" if snapshot.state is State.DIED else f"was {snapshot.state}"
        error = HfbenchError(f"the job {how}: {snapshot.sentence() or 'no reason given'}", where=snapshot.id)
    if snapshot.state is State.DIED and not as_json:
        for line in snapshot.tail:
            complain(f"| {line}")
    if as_json:
        told = {"error": error.parts(), "job": snapshot.id, "state": str(snapshot.state)}
        print(json.dumps(told, ensure_ascii=True))
    complain(error)
    return int(error.exit)


def _print_result(spec: Spec, data: dict[str, Any], as_json: bool) -> int:
    print(json.dumps(data, ensure_ascii=True) if as_json else "\n".join(result_lines(spec, data)))
    return exit_of(data)


def _add(parser: argparse.ArgumentParser, param: Param) -> None:
    details = [param.help]
    if param.choices:
        details.append(f"one of {', '.join(param.choices)}")
    details += [f"in {param.unit}" if param.unit else "", param.bounds]
    if not param.required and param.default not in (None, "", (), False):
        details.append(f"default {param.text(param.default)}")
    help = "; ".join(filter(None, details)).replace("%", "%%")
    if param.positional:
        parser.add_argument(param.name, nargs=None if param.required else "?", help=help)
    elif param.type is bool:
        parser.add_argument(param.flag, dest=param.name, default=None, action=argparse.BooleanOptionalAction, help=help)
    else:
        metavar = (param.unit or param.kind or param.type.__name__).upper()
        parser.add_argument(param.flag, dest=param.name, required=param.required, metavar=metavar, help=help)


def values_of(spec: Spec, given: argparse.Namespace) -> dict[str, Any]:
    """The fields the command line names, read by their declarations; InvalidParams lists all that are wrong."""
    values, problems = {}, []
    for param in spec.params:
        text = getattr(given, param.name)
        if text is None:
            continue
        try:
            values[param.name] = param.parse(text) if isinstance(text, str) else text
        except Problem as problem:
            problems.append(problem)
    if problems:
        raise InvalidParams(spec.name, problems)
    return values
