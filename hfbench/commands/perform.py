"""Runs one action from the command line: in this process, or as a job that is watched or left alone."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, cast

from hfbench.actions.base import InvalidParams, Spec
from hfbench.actions.params import Param, Problem
from hfbench.actions.results import result_data
from hfbench.commands.parser import Parser
from hfbench.commands.printed import print_result
from hfbench.commands.stderr_run import StderrRun
from hfbench.errors import UsageError
from hfbench.units import parse_duration

FORMS = "local, slurm:PARTITION, ray://HOST:PORT, ssh:HOST, or a name of [executors] in config.toml"
WAITING = (
    "While it waits, Ctrl-C cancels the job; SIGTERM, SIGHUP or a closed terminal leave it running (hfbench jobs list)."
)


def main(spec: Spec, words: Sequence[str]) -> int:
    """Run the action as the words ask; the exit code."""
    given = parser_for(spec).parse_args(words)
    request = spec.build(values_of(spec, given))
    timeout = parse_duration(given.timeout) if given.timeout is not None else None
    if spec.inline and not given.detach:
        if given.runs_in:
            from hfbench.environments.choose import refuse_inline

            refuse_inline(spec, given.runs_in, "give --detach too: it is then a job")
        if given.on:
            from hfbench.actions.asking import refuse_inline as refuse_elsewhere

            refuse_elsewhere(spec, given.on, "give --detach too: it is then a job")
        spec.require()
        if given.json and getattr(request, "sarif", False):
            raise UsageError("--json and --sarif were given", where=spec.name, remedy="give one: SARIF is JSON too")
        if getattr(request, "live", False):
            from hfbench.commands.live import Live, show_live

            return show_live(cast(Live, request), as_json=given.json)
        with StderrRun(quiet=given.json) as run:
            data = result_data(request.perform(run))
        return print_result(spec, data, given.json)
    from hfbench.commands.as_job import run_as_job  # half of what an inline command would take to start

    return run_as_job(spec, request, given, timeout)


def parser_for(spec: Spec) -> argparse.ArgumentParser:
    """The parser of an action's own command, made from its declaration."""
    parser = Parser(
        prog=f"hfbench {spec.name.replace('.', ' ').replace('_', '-')}",
        description=f"{spec.summary}.",
        epilog="" if spec.inline else WAITING,
    )
    for param in spec.params:
        add_field(parser, param)
    running = parser.add_argument_group("how it runs")
    running.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    wait = running.add_mutually_exclusive_group()
    wait.add_argument("--wait", action="store_true", help="stay until it is over (the default)")
    wait.add_argument("--detach", action="store_true", help="start a job, print its id and leave it alone")
    running.add_argument("--timeout", metavar="DURATION", help="stop the job after so much running time, such as 10m")
    running.add_argument("--label", default="", help="a name for the job in lists")
    running.add_argument(
        "--in", dest="runs_in", default="", metavar="NAME", help="run the job in an environment: its name, or `here`"
    )
    running.add_argument("--on", default="", metavar="WHERE", help=f"where the job runs: {FORMS}")
    running.add_argument("--no-lease", action="store_true", help="do not wait for the device to be free")
    return parser


def add_field(parser: argparse.ArgumentParser, param: Param) -> None:
    """The option or operand of one field."""
    details = [param.help]
    if param.choices:
        details.append(f"one of {', '.join(param.listed)}")
    details += [f"in {param.unit}" if param.unit else "", param.bounds]
    if not param.required and param.default not in (None, "", (), False):
        details.append(f"default {param.text(param.default)}")
    help = "; ".join(filter(None, details)).replace("%", "%%")
    if param.positional:
        nargs = "*" if param.many else None if param.required else "?"
        parser.add_argument(param.name, nargs=nargs, help=help)
    elif param.type is bool:
        parser.add_argument(param.flag, dest=param.name, default=None, action=argparse.BooleanOptionalAction, help=help)
    else:
        metavar = (param.unit or param.kind or param.type.__name__).upper()
        how = "append" if param.many else "store"  # a list is one word with commas, or the option again and again
        parser.add_argument(
            param.flag, dest=param.name, action=how, required=param.required, metavar=metavar, help=help
        )


def values_of(spec: Spec, given: argparse.Namespace) -> dict[str, Any]:
    """The fields the command line names, read by their declarations; InvalidParams lists all that are wrong."""
    values, problems = {}, []
    for param in spec.params:
        text = getattr(given, param.name)
        if text is None:
            continue
        try:
            if isinstance(text, list) and text and param.default == () and not "".join(text).strip():
                raise Problem(param.name, f"{param.flag} was given with nothing in it", hint="leave it out, or fill it")
            text = ",".join(text) if isinstance(text, list) else text
            values[param.name] = param.parse(text) if isinstance(text, str) else text
        except Problem as problem:
            problems.append(problem)
    if problems:
        raise InvalidParams(spec.name, problems)
    return values
