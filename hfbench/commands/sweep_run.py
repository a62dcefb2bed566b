"""`hfbench sweep run`: a script with a matrix, or an action some of whose fields vary, as a new sweep."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hfbench.actions.base import Spec
from hfbench.actions.registry import find
from hfbench.commands.known import summaries
from hfbench.commands.parser import Parser
from hfbench.commands.perform import add_field, values_of
from hfbench.conduct.estimate import estimate
from hfbench.conduct.make import Sweep, free_name, make, refuse_name, slug
from hfbench.conduct.places import refuse_never
from hfbench.conduct.start import start
from hfbench.conduct.vary import read_vary, sweep_script
from hfbench.errors import UsageError
from hfbench.exits import Exit
from hfbench.paths import jobs_root, sweeps_root
from hfbench.scripts.command import plan_of, read_source
from hfbench.scripts.errors import InvalidScript
from hfbench.scripts.progress import say
from hfbench.sweeps.folder import SweepFolder
from hfbench.text import did_you_mean, printable
from hfbench.units import parse_duration, show_elapsed

DESCRIPTION = "Run every cell of a script's matrix, or of an action some of whose fields vary, as one sweep."
USAGE = """hfbench sweep run SCRIPT [options]
       hfbench sweep run ACTION [FIELDS] --vary FIELD=VALUES [--vary ...] [options]"""
EPILOG = (
    "Give the script or the action first. For an action each varying field is given by --vary and all others as its "
    "own options. Ctrl-C stops the sweep, which can be resumed; a closed terminal leaves it running."
)
SHOWN = 20
"""Cells that a dry run prints."""


def main(words: Sequence[str]) -> int:
    """Check, make and start a sweep, and stay until it is over unless it is to be left alone; the exit code."""
    try:
        sweep, given = _asked(words)
    except InvalidScript as invalid:
        for sentence in invalid.sentences():
            say(sentence)
        return int(invalid.exit)
    sweep = replace(sweep, estimate=estimate(sweep.plan, jobs_root()))
    at_once = sweep.at_once  # a place that cannot be read is told before there is a folder
    refuse_name(sweeps_root(), sweep.name)
    refuse_never(sweep.on, sweep.plan)
    if given.dry_run:
        return _dry_run(sweep, at_once, as_json=given.json)
    folder = make(sweeps_root(), sweep)
    if not given.json and not given.detach:
        say(f"{folder.name}: {_expected(sweep, at_once)}")
    return _begin(folder, given)


def add_options(parser: argparse.ArgumentParser, *, action: bool) -> None:
    """What every sweep takes, and with `action` what only an action's does."""
    told = parser.add_argument_group("the sweep")
    if action:
        told.add_argument(
            "--vary",
            action="append",
            default=[],
            metavar="FIELD=VALUES",
            help="values of one field: batch=1,2,4 or prompt=128..512+128 or batch=1..64*2; again for each field",
        )
        told.add_argument("--timeout", metavar="DURATION", help="stop a cell after so much running time, such as 10m")
        told.add_argument(
            "--in", dest="runs_in", default="", metavar="ENVIRONMENT", help="run the jobs in an environment"
        )
    told.add_argument("--name", default="", help="the name of the sweep, by which it is found again")
    told.add_argument(
        "--on",
        action="append",
        default=[],
        metavar="WHERE",
        help="where the jobs run: local, slurm:PARTITION, ray://HOST:PORT, ssh:HOST or a name of config.toml; "
        "again to spread the cells over several",
    )
    told.add_argument(
        "--slots", type=_slots, metavar="N", help="cells at once at each place; as many as devices if not given"
    )
    told.add_argument(
        "--cold", action="store_true", help="start every worker anew instead of keeping libraries imported"
    )
    told.add_argument("--skip-missing", action="store_true", help="skip cells that need what a machine lacks")
    told.add_argument("--dry-run", action="store_true", help="print the cells and the estimated time, run nothing")
    told.add_argument("--detach", action="store_true", help="start the sweep, print its name and leave it alone")
    told.add_argument("--json", action="store_true", help="print one JSON object and nothing else")


def _asked(words: Sequence[str]) -> tuple[Sweep, argparse.Namespace]:
    if not words or words[0].startswith("-"):
        parser = Parser(prog="hfbench sweep run", usage=USAGE, description=DESCRIPTION, epilog=EPILOG)
        parser.add_argument(
            "script", metavar="SCRIPT | ACTION", help="a script with a matrix, or an action and its fields"
        )
        add_options(parser, action=True)
        parser.parse_args(words)  # which prints the help, or says what is missing
        raise UsageError("the script or the action comes first", where="sweep run", remedy="hfbench sweep run --help")
    known = summaries()
    for length in (2, 1):
        name = ".".join(words[:length]).replace("-", "_")
        if len(words) >= length and name in known:
            return _of_action(find(name), words[length:])
    return _of_script(words)


def _of_script(words: Sequence[str]) -> tuple[Sweep, argparse.Namespace]:
    path = Path(words[0])
    if not path.exists() and not words[0].endswith((".yaml", ".yml")):
        near = did_you_mean(words[0], (name.partition(".")[0] for name in summaries()))
        raise UsageError(
            f"{words[0]!r} is neither a script nor an action",
            where="sweep run",
            remedy=near or "hfbench actions lists them",
        )
    parser = _parser(words[0])
    add_options(parser, action=False)
    given = parser.parse_args(words[1:])
    source = read_source(path)
    plan = plan_of(source, path)
    return _sweep(given.name or slug(plan.name), source, plan_given=path, given=given), given


def _of_action(spec: Spec, words: Sequence[str]) -> tuple[Sweep, argparse.Namespace]:
    parser = _parser(spec.name.replace(".", " ").replace("_", "-"))
    varied = read_vary(spec, _varied_words(words))
    for param in spec.params:
        if param.name not in varied:
            add_field(parser, param)
    add_options(parser, action=True)
    parser.set_defaults(**dict.fromkeys(varied))
    given = parser.parse_args(words)
    if not varied:
        raise UsageError("no field varies", where="sweep run", remedy="give for example --vary batch=1,2,4")
    if given.timeout:
        parse_duration(given.timeout)
    name = given.name or free_name(sweeps_root(), slug("-".join([spec.name.rpartition(".")[2], *varied])))
    source = sweep_script(
        spec, name, values_of(spec, given), varied, timeout=given.timeout or "", runs_in=given.runs_in
    ).encode()
    return _sweep(name, source, plan_given=Path(f"{name}.hfb.yaml"), given=given), given


def _sweep(name: str, source: bytes, *, plan_given: Path, given: argparse.Namespace) -> Sweep:
    return Sweep(
        name=name,
        source=source,
        plan=plan_of(source, plan_given),
        on=tuple(given.on) or ("local",),
        slots=given.slots,
        warm=not given.cold,
        skip_missing=given.skip_missing,
    )


def _varied_words(words: Sequence[str]) -> list[str]:
    """What is given for --vary, which decides what else the parser must take."""
    early = Parser(add_help=False)
    early.add_argument("--vary", action="append", default=[])
    found: list[str] = early.parse_known_args(words)[0].vary
    return found


def _parser(subject: str) -> Parser:
    return Parser(prog=f"hfbench sweep run {subject}", description=DESCRIPTION, epilog=EPILOG)


def _dry_run(sweep: Sweep, at_once: int, *, as_json: bool) -> int:
    """What would be run."""
    if as_json:
        told = sweep.estimate
        estimated = {"seconds": told.all_s(len(sweep.plan.cells), at_once), "from": told.source} if told else None
        cells = [dict(cell.values) for cell in sweep.plan.cells]
        print(json.dumps({"sweep": sweep.name, "at_once": at_once, "estimate": estimated, "cells": cells}))
        return Exit.OK
    print(printable(f"{sweep.name}: {_expected(sweep, at_once)}"))
    for number, cell in enumerate(sweep.plan.cells[:SHOWN], 1):
        print(printable(f"  {number}  {cell.label}"))
    if (more := len(sweep.plan.cells) - SHOWN) > 0:
        print(f"  and {more:,} more")
    return Exit.OK


def _expected(sweep: Sweep, at_once: int) -> str:
    """Number of cells, where, and how long they may take."""
    count = len(sweep.plan.cells)
    cells = "1 cell" if count == 1 else f"{count:,} cells, {at_once:,} at once"
    if sweep.estimate is None:
        return f"{cells} on {', '.join(sweep.on)}; how long they take is unknown: no earlier job tells it"
    seconds = show_elapsed(sweep.estimate.all_s(count, at_once))
    return f"{cells} on {', '.join(sweep.on)}; about {seconds} from {sweep.estimate.source}"


def _begin(folder: SweepFolder, given: argparse.Namespace) -> int:
    from hfbench.commands.sweep_follow import follow, told_detached

    start(folder)
    return told_detached(folder, given.json, 0) if given.detach else follow(folder, as_json=given.json)


def _slots(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 0 < int(text[:9]) <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of cells from 1 to 10,000")
    return int(text)
