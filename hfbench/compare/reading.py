"""Reads what words of a command stand for: jobs, sweeps, baselines and result files, as subjects."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hfbench.codec import decode
from hfbench.compare.baselines import file_of, names, read_baseline
from hfbench.compare.jobs import job_subject, led_to, local_job
from hfbench.compare.metrics import number
from hfbench.compare.replayed import Replayed
from hfbench.compare.subject import Measured, Subject
from hfbench.errors import HfbenchError, UsageError
from hfbench.jobs.directory import JobDirectory, NoSuchJob, find_job
from hfbench.jobs.files import read_regular
from hfbench.paths import expand, jobs_root, sweeps_root
from hfbench.sweeps.folder import SweepFolder, find_sweep, sweep_folders
from hfbench.sweeps.snapshot import read_sweep
from hfbench.text import clip, printable

NEWEST_RESULTS = 1
"""Version of script results that is understood whole."""
KINDS = ("job", "sweep", "baseline", "file")
LONGEST = 120
"""Cells of a word that an error repeats."""


def read_subject(given: str) -> Subject:
    """What a word stands for: `job:ID`, `sweep:NAME`, `baseline:NAME`, `file:PATH`, or any of them without its kind.

    UsageError when it stands for nothing, or for several things; HfbenchError for a file that cannot be read.
    """
    kind, name = _meaning(given)
    if kind == "job":
        return job_subject(find_job(jobs_root(), name), given)
    if kind == "sweep":
        return sweep_subject(find_sweep(sweeps_root(), name), given)
    return read_baseline(name, given) if kind == "baseline" else _file(expand(name), given)


def source_of(given: str) -> Path:
    """The file or folder that a word stands for; errors as of `read_subject`."""
    kind, name = _meaning(given)
    if kind == "job":
        return find_job(jobs_root(), name).path
    if kind == "sweep":
        return find_sweep(sweeps_root(), name).path
    return file_of(name) if kind == "baseline" else expand(name)


def _meaning(given: str) -> tuple[str, str]:
    """The kind of what a word stands for, and the word without it."""
    kind, _, rest = given.partition(":")
    if kind in KINDS and rest:
        return kind, rest
    path = expand(given)
    if "/" in given and (os.path.isfile(path) or os.path.isdir(path)):
        return "file", given
    known = (("file", os.path.isfile(path)), ("baseline", given in names()), ("sweep", _is_sweep(given)))
    found = [kind for kind, there in known if there]
    job = _job_or_none(given, bool(found))
    if job is not None and (not found or given in ("last", job.short_id, job.id)):  # a part of an id is no rival
        found.append("job")
    if len(found) == 1:
        return found[0], given
    shown = clip(printable(given), LONGEST)
    if found:
        told = " and ".join(f"{each}:{shown}" for each in found)
        raise UsageError(f"{shown!r} stands for several things: {told}", remedy="write one of those")
    where = f"nor a job of {jobs_root()}, a sweep of {sweeps_root()} or a baseline"
    raise UsageError(
        f"{shown!r} is neither a file {where}",
        remedy="hfbench jobs list, hfbench sweep list and hfbench baseline list show them",
    )


def _is_sweep(name: str) -> bool:
    return any(each.name == name for each in sweep_folders(sweeps_root()))


def _job_or_none(given: str, certain: bool) -> JobDirectory | None:
    """The job a word means; an ambiguous word is an error unless it certainly means something else."""
    try:
        return find_job(jobs_root(), given)
    except NoSuchJob as error:
        if certain or "match" not in error.found or error.found.startswith("no job"):
            return None
        raise


def sweep_subject(sweep: SweepFolder, given: str) -> Subject:
    """A sweep: each step of each cell, its latest attempt; a cell that has no result says why."""
    snapshot = read_sweep(sweep.path)
    lines = list(_lines(sweep.results))
    read = Replayed(lines)
    without = [
        Measured(values=dict(cell.values), action=read.usual_action, state=cell.state, reason=cell.reason or cell.state)
        for cell in snapshot.cells
        if not read.has(cell.values)
    ]
    notes = ["a newer hfbench made this sweep; what only that one knows is left out"] if snapshot.newer else []
    if snapshot.state != "finished":
        notes.append(f"the sweep is {snapshot.state}{': ' if snapshot.reason else ''}{snapshot.reason}")
    return Subject(
        given=given,
        kind="sweep",
        name=sweep.name,
        state=snapshot.state,
        made=snapshot.made,
        measured=(*read.measured, *without),
        expectations=tuple(read.asked),
        script=_text(sweep.script),
        environment=read.environment,
        hfbench=str(sweep.about.get("hfbench") or ""),
        notes=(*notes, *read.notes),
    )


def _file(path: Path, given: str) -> Subject:
    """A file of results: what `--results` of a script, `--json` or a job wrote; or the folder of a job or sweep."""
    if os.path.isfile(path / "request.json"):
        return job_subject(JobDirectory(path.resolve()), given)
    if os.path.isfile(path / "sweep.json"):
        return sweep_subject(SweepFolder(path.resolve()), given)
    shown = clip(printable(str(path)), LONGEST)
    try:
        text = read_regular(Path(os.path.realpath(path))).decode()
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=shown) from None
    except UnicodeDecodeError:
        raise HfbenchError("this is not a file of results: it is not text", where=path) from None
    except ValueError:
        raise UsageError("no file can have this name", where=shown) from None
    objects = _objects(text)
    if objects and any("event" in each for each in objects):
        return _script_subject(objects, path, given)
    if len(objects) != 1:
        remedy = "give result.json of a job, what --json printed, or the --results of a script"
        raise HfbenchError("this is not a file of results", where=path, remedy=remedy)
    return _single(objects[0], path, given)


def _objects(text: str) -> list[dict[str, Any]]:
    """The JSON objects of a file: one that fills it, or one a line; torn lines are skipped."""
    try:
        whole = json.loads(text)
        return [whole] if isinstance(whole, dict) else []
    except (ValueError, RecursionError):
        pass
    found = []
    for line in text.splitlines():
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict):
            found.append(data)
    return found


def _single(data: dict[str, Any], path: Path, given: str) -> Subject:
    """result.json of a job, what `--json` of a command printed, or a report as JSON."""
    if "report" in data and isinstance(data.get("subject"), dict):
        return _reported(data, path, given)
    inner = data.get("result")
    result = inner if isinstance(inner, dict) else data
    known = local_job(data.get("job"))
    action = str(data.get("action") or (known.request.get("action") if known else "") or "")
    beside = JobDirectory(path.resolve().parent)  # result.json lies beside the request and the environment
    source = known or (beside if path.name == "result.json" and beside.request else None)
    params = source.request.get("params") if source else None
    measured = Measured(
        action=action or str((source.request.get("action") if source else "") or "unknown action"),
        params=params if isinstance(params, dict) else {},
        result=result,
        environment=(source.read("environment.json") or {}) if source else {},
        job=source.id if source else "",
        created=source.created if source else None,
        led_to=led_to(
            params if isinstance(params, dict) else {}, result, str(source.request.get("cwd") or "") if source else ""
        ),
    )
    return Subject(
        given=given,
        kind="file",
        name=path.name,
        state="finished",
        made=path.stat().st_mtime,
        measured=(measured,),
        notes=() if source else ("the file holds a result alone: its settings and environment are not known",),
    )


def _reported(data: Mapping[str, Any], path: Path, given: str) -> Subject:
    """The subject of a report that was written as JSON."""
    try:
        subject = decode(Subject, data["subject"])
    except (ValueError, LookupError, TypeError) as error:
        raise HfbenchError(f"this report is damaged, or a newer hfbench wrote it: {error}", where=path) from None
    return replace(subject, given=given)


def _script_subject(lines: list[dict[str, Any]], path: Path, given: str) -> Subject:
    read = Replayed(lines)
    began = next((each for each in lines if each.get("event") == "run_started"), {})
    version = began.get("v")
    newer = isinstance(version, int) and version > NEWEST_RESULTS
    notes = ["a newer hfbench wrote these results; what only that one knows is left out"] if newer else []
    if not any(each.get("event") == "run_finished" for each in lines):
        notes.append("the script has not come to its end")
    return Subject(
        given=given,
        kind="script",
        name=str(began.get("name") or path.name),
        state="finished" if len(notes) == newer else "unfinished",
        made=number(began.get("at")),
        measured=tuple(read.measured),
        expectations=tuple(read.asked),
        script=_text(Path(str(began.get("script") or "")), sha256=began.get("sha256")),
        environment=read.environment,
        hfbench=str(began.get("hfbench") or ""),
        notes=(*notes, *read.notes),
    )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        yield from _objects(read_regular(path).decode(errors="replace"))
    except OSError:
        return


def _text(path: Path, *, sha256: object = None) -> str:
    """A script as it stands; empty when it is not the one that was run."""
    from hashlib import sha256 as digest

    try:
        raw = read_regular(path)
    except (OSError, ValueError):  # no file, or a name that none can have
        return ""
    if sha256 is not None and digest(raw).hexdigest() != sha256:
        return ""
    return raw.decode(errors="replace")
