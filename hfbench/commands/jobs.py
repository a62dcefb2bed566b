"""`hfbench jobs`: list, show, follow, cancel and remove jobs."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from contextlib import closing

from hfbench.actions.registry import look_up
from hfbench.actions.render import field_lines, result_lines
from hfbench.codec import encode
from hfbench.commands.parser import Parser
from hfbench.commands.watch import status_line, watch
from hfbench.errors import UsageError
from hfbench.exits import Exit
from hfbench.jobs.cancel import cancel, left_to_cancel, refuse_live, remove, request_cancel
from hfbench.jobs.directory import JobDirectory, find_job
from hfbench.jobs.doubt import MEANING, tells_doubt
from hfbench.jobs.follow import log_lines
from hfbench.jobs.history import History, JobRow
from hfbench.jobs.launch import adopt
from hfbench.jobs.snapshot import JobSnapshot, State, plain, read_job
from hfbench.jobs.tail import log_tail
from hfbench.line_width import USUAL, room
from hfbench.models.problem import counted
from hfbench.paths import jobs_root
from hfbench.sweeps.naming import cell_in, only_values
from hfbench.text import cells, clip, printable
from hfbench.units import show_ago, show_elapsed

LONGEST_ACTION = 14
LEAST_LABEL = 8
"""Cells of a label in the list, however long the result."""


def main(words: Sequence[str]) -> int:
    """Run one `hfbench jobs` command; plain `hfbench jobs` lists."""
    listing = not words or (words[0].startswith("-") and words[0] not in ("-h", "--help"))
    given = parser().parse_args(["list", *words] if listing else words)
    verb: Callable[[argparse.Namespace], int] = given.verb
    return verb(given)


def parser() -> argparse.ArgumentParser:
    """What it takes."""
    made = Parser(prog="hfbench jobs", description="Jobs of this machine's jobs folder.")
    verbs = made.add_subparsers(required=True, metavar="COMMAND")

    def add(
        name: str, verb: Callable[[argparse.Namespace], int], help: str, *, job: bool = True
    ) -> argparse.ArgumentParser:
        sub = verbs.add_parser(name, help=help, description=f"{help}.")
        sub.set_defaults(verb=verb)
        if job:
            many = "+" if name in ("rm", "cancel") else None
            sub.add_argument(
                "job", help="the first or last characters of an id or of the short id in lists, or `last`", nargs=many
            )
        sub.add_argument("--json", action="store_true", help="print JSON")
        return sub

    add("list", _list, "List jobs, newest first", job=False).add_argument(
        "-n", type=_count, metavar="N", help="how many"
    )
    add("show", _show, "Show one job: state, parameters, metrics, result")
    logs = add("logs", _logs, "Print what the worker printed")
    logs.add_argument("-f", "--follow", action="store_true", help="keep printing until the job is over")
    add("cancel", _cancel, "Stop jobs and wait until they are over")
    add("wait", _wait, "Wait until a job is over, exit 0 when it finished, else 1; Ctrl-C leaves it running")
    add("rm", _rm, "Delete the folders of jobs that are over")
    add("reindex", _reindex, "Make the index again from the job folders", job=False)
    return made


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of jobs")
    return int(text[:9])


def _list(given: argparse.Namespace) -> int:
    with closing(History(jobs_root())) as history:
        rows = history.rows(given.n)
    adopt(JobDirectory(jobs_root() / row.id) for row in rows if not row.state.over)
    if given.json:
        print(json.dumps([{**encode(row), "seconds": row.seconds(time.time())} for row in rows]))
    elif not rows:
        print(f"no jobs yet in {printable(str(jobs_root()))}; hfbench bench generate MODEL starts one")
    else:
        lines = table(rows, time.time(), room())
        print("\n".join([*lines, MEANING] if any(tells_doubt(row.headline) for row in rows) else lines))
    return Exit.OK


def table(rows: Sequence[JobRow], now: float, width: int = USUAL) -> list[str]:
    """The list of jobs in so many columns, 80 or more: ids, states and times are never cut."""
    told = [("JOB", "STATE", "ACTION", "RAN", "STARTED")]
    for row in rows:
        did = clip(printable(row.action), LONGEST_ACTION, ellipsis="...")
        times = show_elapsed(row.seconds(now)), show_ago(now - row.created)
        told.append((row.short_id, str(row.state), did, *times))
    job, state, action, ran, ago = (max(map(len, column)) for column in zip(*told, strict=True))
    lines = [f"{j:<{job}}  {s:<{state}}  {a:<{action}}  {r:>{ran}}  {t:>{ago}}  " for j, s, a, r, t in told]
    outcomes = ["RESULT", *(_outcome(row, width - len(lines[0])) for row in rows)]
    return [(line + outcome).rstrip() for line, outcome in zip(lines, outcomes, strict=True)]


def _outcome(row: JobRow, width: int) -> str:
    """The label and what came of the job, else its model; the label gives way first, but not the cell of a sweep."""
    told = printable(row.headline if row.state is State.FINISHED else row.note)
    if not row.label:
        return clip(told or printable(row.model.rstrip("/").rpartition("/")[2]), width, ellipsis="...")
    if cell := printable(cell_in(row.label)):
        return _of_cell(printable(row.label), cell, told, width)
    left = max(LEAST_LABEL, width - cells(told) - 2) if told else width
    label = clip(printable(row.label), left, ellipsis="...")
    return clip(f"{label}: {told}" if told else label, width, ellipsis="...")


def _of_cell(label: str, cell: str, told: str, width: int) -> str:
    """A job of a sweep by what varies and its first figure, with as much of the rest as there is room for."""
    values, first = only_values(cell), told.split("  ")[0]
    if not told:
        ways = [label, cell, values]
    else:
        ways = [f"{name}: {figures}" for name, figures in ((label, told), (cell, told), (cell, first), (values, first))]
    fitting = (way for way in ways if cells(way) <= width)
    return next(fitting, clip(ways[-1], width, ellipsis="..."))


def _show(given: argparse.Namespace) -> int:
    job = find_job(jobs_root(), given.job)
    adopt([job])
    snapshot = read_job(job)
    if given.json:
        beside = {"directory": str(job.path), "environment": job.read("environment.json"), "note": job.newer}
        print(json.dumps({**plain(snapshot), **beside}))
    else:
        print("\n".join(_details(job, snapshot)))
    return Exit.OK


def _details(job: JobDirectory, snapshot: JobSnapshot) -> list[str]:
    told = [("label", snapshot.label), ("folder", job.path), ("status", status_line(snapshot))]
    told += [
        ("in", snapshot.environment),
        ("on", snapshot.on),
        ("there", snapshot.place),
        ("trouble", snapshot.trouble),
        ("note", job.newer),
    ]
    told += snapshot.params.items()
    width = max(len(name) for name, _ in told)
    lines = [f"{snapshot.id}  {snapshot.state}"]
    lines += [
        f"  {printable(name):<{width}}  {printable(str(value))}" for name, value in told if value not in (None, "")
    ]
    if sentence := snapshot.sentence():
        lines += ["", f"  {snapshot.state}: {sentence}"]
    lines += [f"  | {printable(line)}" for line in snapshot.tail]
    if snapshot.result is not None:
        spec = look_up(snapshot.action)
        lines += ["", *(result_lines(spec, snapshot.result) if spec else field_lines(snapshot.result))]
    return lines


def _logs(given: argparse.Namespace) -> int:
    job = find_job(jobs_root(), given.job)
    lines = log_lines(job) if given.follow else iter(log_tail(job, lines=10_000, most_bytes=8 << 20))
    if given.json:
        print(json.dumps({"job": job.id, "lines": [printable(line) for line in lines]}))
        return Exit.OK
    for line in lines:
        print(printable(line), flush=given.follow)
    return Exit.OK


def _cancel(given: argparse.Namespace) -> int:
    jobs = _named(given.job)
    for job in jobs:
        request_cancel(job)  # all of them first: their times of grace run together
    ended = [cancel(job) for job in jobs]
    if given.json:
        print(json.dumps([plain(snapshot) for snapshot in ended]))
    else:
        print(*map(_ending, ended), sep="\n")
    return Exit.OK if all(snapshot.state.over for snapshot in ended) else Exit.FAILED


def _named(words: Sequence[str]) -> list[JobDirectory]:
    """The jobs these words name, each once."""
    return list(dict.fromkeys(find_job(jobs_root(), word) for word in words))


def _wait(given: argparse.Namespace) -> int:
    job = find_job(jobs_root(), given.job)
    adopt([job])
    snapshot = watch(job, quiet=given.json)
    print(json.dumps(plain(snapshot)) if given.json else _ending(snapshot))
    return Exit.OK if snapshot.state is State.FINISHED else Exit.FAILED


def _rm(given: argparse.Namespace) -> int:
    jobs = _named(given.job)
    for job in jobs:
        refuse_live(job)  # all or none
    for job in jobs:
        remove(job)
    print(json.dumps({"removed": [job.id for job in jobs]}) if given.json else f"removed {len(jobs)}")
    return Exit.OK


def _reindex(given: argparse.Namespace) -> int:
    if not jobs_root().is_dir():
        raise UsageError("there is no jobs folder yet", where=jobs_root())
    with closing(History(jobs_root())) as history:
        count = history.reindex()
    print(json.dumps({"jobs": count}) if given.json else counted(count, "job"))
    return Exit.OK


def _ending(snapshot: JobSnapshot) -> str:
    sentence = printable(left_to_cancel(snapshot) or snapshot.sentence())
    return f"{snapshot.id} {snapshot.state}" + (f": {sentence}" if sentence else "")
