"""`hfbench --script FILE`: check, plan or run a script without a terminal."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from hfbench.actions.registry import ByName, users_own
from hfbench.config import read_config
from hfbench.errors import UsageError
from hfbench.exits import Exit, complain
from hfbench.jobs.executors.spec import parse_on
from hfbench.jobs.fingerprint import fingerprint, git_revision
from hfbench.models.problem import counted
from hfbench.scripts.check import Known
from hfbench.scripts.check import check as check_source
from hfbench.scripts.errors import Code, InvalidScript
from hfbench.scripts.plan import Plan, PlannedStep
from hfbench.scripts.progress import Progress, say
from hfbench.scripts.read import MAX_BYTES
from hfbench.scripts.replay import replay
from hfbench.scripts.results import Results, open_results


def run_script(
    path: Path,
    *,
    check: bool,
    dry_run: bool,
    results: Path | None,
    skip_missing: bool,
    on: str = "",
    shows: Callable[[Plan], Progress] = Progress,
) -> int:
    """Check a script, then print its steps or run them; the exit code. Errors of the script go to stderr, all at
    once; a script or results file that cannot be opened is a UsageError, and nothing is run.

    `shows` makes what a person sees of it; results go to stdout unless that is for people, or a file is named.
    """
    try:
        plan = placed(load_plan(path), on)
    except InvalidScript as invalid:
        for sentence in invalid.sentences():
            say(sentence)
        return int(invalid.exit)
    if check:
        say(f"{path}: {counted(plan.count, 'step')}, {counted(len(plan.cells), 'cell')}: ok")
        return Exit.OK
    progress = shows(plan)
    with open_results(results, path, nowhere=progress.for_people) as written:
        code = _dry_run(plan, written, progress) if dry_run else _run(plan, written, progress, skip_missing)
        if written.failure:
            raise written.failure
        return code


def load_plan(path: Path) -> Plan:
    """The plan of a script file; InvalidScript has every error, warnings go to stderr."""
    return plan_of(read_source(path), path)


def plan_of(source: bytes, path: Path) -> Plan:
    """The plan of a script's bytes, as of a file with that name."""
    named = Known()
    if b"in:" in source or b"on:" in source:  # a wrong configuration stops no other script
        config = read_config()
        named = Known(environments=config.environments, executors=config.executors)
    checked = check_source(source, path, ByName(), named)
    if checked.plan is None:
        if any(error.code == Code.UNKNOWN_ACTION for error in checked.errors):
            for broken in users_own().broken:  # it may hold the action that is not known
                complain(broken)
        raise InvalidScript(str(path), checked.errors)
    for warning in checked.warnings:
        say(warning.sentence(str(path)))
    return checked.plan


def placed(plan: Plan, on: str) -> Plan:
    """The plan with a place for all its jobs that name none themselves; BadPlace when there is no such place."""
    if parse_on(on).is_local:
        return plan

    def moved(step: PlannedStep) -> PlannedStep:
        return step if step.on or step.spec.inline else replace(step, on=on)

    return replace(plan, cells=tuple(replace(cell, steps=tuple(map(moved, cell.steps))) for cell in plan.cells))


def read_source(path: Path) -> bytes:
    """The bytes of a regular file that is not too large; UsageError otherwise. A FIFO is refused, not waited for."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(fd, "rb") as file:
            mode = os.fstat(fd).st_mode
            if not stat.S_ISREG(mode):
                what = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
                raise UsageError(f"the script is {what}", where=path, remedy="give a .hfb.yaml file")
            source = file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = "a folder" if isinstance(error, IsADirectoryError) else (error.strerror or str(error))
        told = f"the script is {reason}" if isinstance(error, IsADirectoryError) else f"cannot be read: {reason}"
        raise UsageError(told, where=path, remedy="give a .hfb.yaml file") from None
    except ValueError as error:
        raise UsageError(f"cannot be read: {error}", where=path) from None
    if len(source) > MAX_BYTES:
        raise UsageError(
            f"the script is larger than {MAX_BYTES // 1024} KiB", where=path, remedy="use variables and a matrix"
        )
    return source


def _dry_run(plan: Plan, results: Results, progress: Progress) -> Exit:
    """Print each step of each cell as it would run."""
    for cell, step in plan:
        progress.planned(cell, step)
        results.write(
            "planned",
            cell=dict(cell.values),
            step=step.number,
            line=step.line,
            action=step.spec.name,
            params=step.shown_values(),
            timeout_s=step.timeout,
            **({"in": step.runs_in} if step.runs_in else {}),
            **({"on": step.on} if step.on else {}),
            save_as=step.save_as or None,
            **({"fails": step.fails.words or True} if step.fails else {}),
            expect=[expectation.text for expectation in step.expectations],
            on_fail=step.on_fail,
        )
        if results.ended():
            break
    return Exit.OK


def _run(plan: Plan, results: Results, progress: Progress, skip_missing: bool) -> Exit:
    return replay(
        plan, results, progress, machine=fingerprint(), revision=_revision(plan.file), skip_missing=skip_missing
    )


def _revision(file: Path) -> dict[str, Any] | None:
    """The revision of the repository that holds the script, if one does."""
    for folder in file.absolute().parents:
        if found := git_revision(folder):
            return found
    return None
