"""`hfbench sweep`: run, list, show, resume, cancel and remove sweeps, and their tables."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence

from hfbench.codec import encode
from hfbench.commands.parser import Parser
from hfbench.errors import UsageError
from hfbench.exits import Exit, complain
from hfbench.jobs.doubt import MEANING
from hfbench.line_width import cut_end
from hfbench.paths import sweeps_root
from hfbench.sweeps.folder import SweepFolder, find_sweep
from hfbench.sweeps.grid import best_cell, undecided
from hfbench.sweeps.model import CellView, SweepRow, SweepSnapshot, counted_cells, state_word, value_text
from hfbench.sweeps.naming import cells_named
from hfbench.sweeps.snapshot import list_sweeps, read_sweep
from hfbench.sweeps.table import csv_of_table, lines_of_table, notes_of_table, plain_table, table, usual_metrics
from hfbench.text import printable
from hfbench.units import show_ago, show_elapsed

LISTED = 20
"""Cells of one state that are shown one by one."""


def main(words: Sequence[str]) -> int:
    """Run one `hfbench sweep` command; plain `hfbench sweep` lists."""
    if words and words[0] == "run":
        from hfbench.commands.sweep_run import main as run

        return run(words[1:])
    listing = not words or (words[0].startswith("-") and words[0] not in ("-h", "--help"))
    given = parser().parse_args(["list", *words] if listing else words)
    verb: Callable[[argparse.Namespace], int] = given.verb
    return verb(given)


def parser() -> argparse.ArgumentParser:
    """What it takes."""
    from hfbench.commands.sweep_run import DESCRIPTION, EPILOG, USAGE, add_options

    made = Parser(prog="hfbench sweep", description="Many cells of one action or script, run as one and kept together.")
    verbs = made.add_subparsers(required=True, metavar="COMMAND")
    run = verbs.add_parser("run", help="Run a new sweep", usage=USAGE, description=DESCRIPTION, epilog=EPILOG)
    run.add_argument(
        "script", metavar="SCRIPT | ACTION", help="a .hfb.yaml file with a matrix, or an action and its fields"
    )
    add_options(run, action=True)

    def add(
        name: str, verb: Callable[[argparse.Namespace], int], help: str, *, sweep: bool = True
    ) -> argparse.ArgumentParser:
        sub = verbs.add_parser(name, help=help, description=f"{help}.")
        sub.set_defaults(verb=verb)
        if sweep:
            many = "+" if name in ("rm", "cancel") else None
            sub.add_argument("sweep", help="its name, the beginning of it, or `last`", nargs=many)
        sub.add_argument("--json", action="store_true", help="print JSON")
        return sub

    add("list", _list, "List sweeps, newest first", sweep=False)
    add("show", _show, "Show how far a sweep is, and what went wrong")
    told = add("table", _table, "Print the cells of a sweep with their metrics")
    told.add_argument(
        "--metric", action="append", default=[], metavar="PATH", help="a metric such as tpot.p50; again for more"
    )
    told.add_argument("--csv", action="store_true", help="print CSV")
    for name, verb, help in (
        ("resume", _resume, "Go on with a sweep that was stopped or interrupted; finished cells are kept"),
        ("rerun", _rerun, "Begin the failed cells of a sweep again, or those that are named"),
    ):
        again = add(name, verb, help)
        again.add_argument("--detach", action="store_true", help="do not stay once it has begun")
        if verb is _rerun:
            words = "cells to begin again whatever became of them: numbers or values, as batch=8; else the failed ones"
            again.add_argument("cells", nargs="*", metavar="CELL", help=words)
    add("cancel", _cancel, "Stop sweeps and their jobs; they can be resumed")
    add("rm", _rm, "Delete the folders of sweeps that nobody conducts; their jobs stay")
    return made


def _list(given: argparse.Namespace) -> int:
    rows = list_sweeps(sweeps_root())
    if given.json:
        print(json.dumps([{**encode(row), "cells": row.cells} for row in rows]))
    elif not rows:
        print(f"no sweeps yet in {printable(str(sweeps_root()))}; hfbench sweep run SCRIPT starts one")
    else:
        print("\n".join(_rows(rows, time.time())))
    return Exit.OK


def _rows(rows: Sequence[SweepRow], now: float) -> list[str]:
    told = [("SWEEP", "STATE", "CELLS", "RAN", "MADE", "ON")]
    for row in rows:
        cells = f"{sum(row.counts[state] for state in ('finished', 'failed', 'skipped'))}/{row.cells}"
        failed = f", {row.counts['failed']} failed" if row.counts["failed"] else ""
        made = show_ago(now - row.made)
        told.append((row.name, row.state, cells + failed, show_elapsed(row.seconds), made, " ".join(row.on)))
    safe = [tuple(map(printable, row)) for row in told]
    widths = [max(map(len, column)) for column in zip(*safe, strict=True)]
    lines = ["  ".join(f"{each:<{width}}" for each, width in zip(row, widths, strict=True)).rstrip() for row in safe]
    return [cut_end(line) for line in lines]


def _show(given: argparse.Namespace) -> int:
    snapshot = read_sweep(_found(given).path)
    print(json.dumps(encode(snapshot)) if given.json else "\n".join(describe(snapshot)))
    return Exit.OK


def describe(snapshot: SweepSnapshot) -> list[str]:
    """A sweep in lines: state, axes, places, times, what runs or went wrong, and its best cells."""
    counts = counted_cells(snapshot.counts(), snapshot.state, f"hfbench sweep resume {snapshot.name} runs them")
    lines = [f"{snapshot.name}  {snapshot.state}" + (f": {snapshot.reason}" if snapshot.reason else "")]
    axes = ["{}: {}".format(axis.name, ", ".join(map(value_text, axis.values))) for axis in snapshot.axes]
    left = f", ~{show_elapsed(snapshot.left_s)} left, from {snapshot.left_from}" if snapshot.left_s is not None else ""
    told = [("folder", str(snapshot.folder)), ("cells", f"{len(snapshot.cells)}: {counts}"), ("axes", "; ".join(axes))]
    told += [("on", ", ".join(snapshot.on)), ("ran", f"{show_elapsed(snapshot.seconds)}{left}")]
    lines += [f"  {name:<6}  {value}" for name, value in told if value]
    lines += _waits(snapshot)
    for state in ("running", "failed", "skipped"):
        lines += _cells(snapshot, state)
    for metric in usual_metrics(snapshot):
        if cell := best_cell(snapshot, metric):
            figure = cell.metrics[metric]
            named = f"best, undecided, {metric}" if undecided(snapshot, metric) else f"best {metric}"
            lines.append(f"  {named}: {figure.text} in cell {cell.number} ({cell.label})")
    lines += [f"  {MEANING}"] if snapshot.in_doubt else []
    return [printable(line) for line in lines]


def _waits(snapshot: SweepSnapshot) -> list[str]:
    """What queued cells wait for: a line for each reason, with how many have it and the first of them."""
    waiting: dict[str, list[CellView]] = {}
    for cell in snapshot.cells:
        if cell.state == "queued" and cell.reason:
            waiting.setdefault(cell.reason, []).append(cell)
    named = {why: f"{cells[0].number} ({cells[0].label})" for why, cells in waiting.items()}
    others = {why: f" and {len(cells) - 1} more" if len(cells) > 1 else "" for why, cells in waiting.items()}
    word = state_word("queued", snapshot.state)
    return [f"  {word} {named[why]}{others[why]}: {why}" for why in list(waiting)[:LISTED]]


def _cells(snapshot: SweepSnapshot, state: str) -> list[str]:
    found = [cell for cell in snapshot.cells if cell.state == state]
    lines = [
        f"  {state} {cell.number} ({cell.label})" + (f": {cell.reason}" if cell.reason else "")
        for cell in found[:LISTED]
    ]
    return lines + ([f"  and {len(found) - LISTED} more {state}"] if len(found) > LISTED else [])


def _table(given: argparse.Namespace) -> int:
    if given.json and given.csv:
        raise UsageError("--json and --csv were given", where="sweep table", remedy="give one")
    snapshot = read_sweep(_found(given).path)
    told = table(snapshot, given.metric)
    if given.json:
        print(json.dumps({"sweep": told.name, "state": snapshot.state, "cells": plain_table(told)}))
    elif given.csv:
        print(csv_of_table(told), end="")
    else:
        print("\n".join([*lines_of_table(told), *notes_of_table(told)]))
    return Exit.OK


def _resume(given: argparse.Namespace) -> int:
    from hfbench.conduct.start import resume

    return _go_on(_found(given), resume, given)


def _rerun(given: argparse.Namespace) -> int:
    from hfbench.conduct.start import rerun_cells, rerun_failed

    sweep = _found(given)
    if not given.cells:
        return _go_on(sweep, rerun_failed, given)
    numbers = cells_named(read_sweep(sweep.path), given.cells)
    return _go_on(sweep, lambda folder: rerun_cells(folder, numbers), given)


def _go_on(sweep: SweepFolder, begin: Callable[..., None], given: argparse.Namespace) -> int:
    from hfbench.commands.sweep_follow import follow, told_detached
    from hfbench.conduct.start import sessions

    before, told = read_sweep(sweep.path), len(sessions(sweep))
    begin(sweep.path)
    if before.lost:
        complain(f"{sweep.name}: {before.reason}")
    return told_detached(sweep, given.json, told) if given.detach else follow(sweep, as_json=given.json)


def _cancel(given: argparse.Namespace) -> int:
    from hfbench.conduct.start import cancel, wait_until_left

    sweeps, refused = list[SweepFolder](), list[UsageError]()
    for name in dict.fromkeys(given.sweep):
        try:
            sweep = find_sweep(sweeps_root(), name)
            cancel(sweep.path)
            sweeps.append(sweep)
        except UsageError as error:
            refused.append(error)
    if not sweeps:
        raise refused[0]
    for each in refused:
        complain(each)
    left = [wait_until_left(sweep.path) for sweep in sweeps]
    snapshots = [read_sweep(sweep.path) for sweep in sweeps]
    if given.json:
        print(json.dumps([{"sweep": each.name, "state": each.state, "counts": each.counts()} for each in snapshots]))
    else:
        print("\n".join(describe(each)[0] for each in snapshots))
    return refused[0].exit if refused else Exit.OK if all(left) else Exit.FAILED


def _rm(given: argparse.Namespace) -> int:
    from hfbench.conduct.start import refuse_conducted, remove

    sweeps = [find_sweep(sweeps_root(), name) for name in dict.fromkeys(given.sweep)]
    for sweep in sweeps:
        refuse_conducted(sweep)  # all or none
    for sweep in sweeps:
        remove(sweep.path)
    print(
        json.dumps({"removed": [each.name for each in sweeps]})
        if given.json
        else printable(f"removed {', '.join(each.name for each in sweeps)}")
    )
    return Exit.OK


def _found(given: argparse.Namespace) -> SweepFolder:
    return find_sweep(sweeps_root(), given.sweep)
