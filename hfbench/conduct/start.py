"""Starts, resumes, cancels and removes sweeps; a conductor outlives whoever started it."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hfbench.beside import ALONE
from hfbench.conduct.no_room import telling_no_room
from hfbench.errors import HfbenchError, UsageError, error_from_parts
from hfbench.exits import Exit
from hfbench.jobs.directory import naming_the_folder, take_lock, write_json
from hfbench.jobs.launch import reap, worker_environment
from hfbench.scripts.command import load_plan
from hfbench.scripts.plan import Plan
from hfbench.sweeps.folder import LineTail, SweepFolder, newer_line
from hfbench.sweeps.snapshot import read_sweep

CONDUCTOR = "hfbench.conduct"
SLACK = 20.0
"""Seconds a conductor is given to stop the jobs of its cells."""


def start(sweep: SweepFolder, *, again: Sequence[int] = ()) -> None:
    """Start a conductor, detached, that goes on with what is left, and begins the numbered cells again; UsageError when
    one is at work or the sweep was written by a newer hfbench."""
    refuse_newer(sweep)
    lock = locked(sweep)
    try:
        with contextlib.suppress(FileNotFoundError):
            sweep.cancelled.unlink()
        where = sweep.path
        with telling_no_room(where), naming_the_folder(where, "the sweep's folder"), open(sweep.log, "ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-u", "-P", ALONE, CONDUCTOR, str(sweep.path), "--lock-fd", str(lock)]
                + (["--again", ",".join(map(str, again))] if again else []),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                pass_fds=(lock,),
                env=worker_environment(foreign=False),
            )
    finally:
        os.close(lock)
    reap(process, sweep.name)


def resume(folder: Path) -> None:
    """Go on with what is left of a sweep; UsageError when nothing is, or it is being conducted."""
    refuse_newer(SweepFolder(folder))
    if read_sweep(folder).state == "finished":
        remedy = f"hfbench sweep rerun {folder.name} begins failed cells again"
        raise UsageError("nothing of it is left to do", where=folder.name, remedy=remedy)
    start(SweepFolder(folder))


def rerun_failed(folder: Path) -> None:
    """Begin the failed cells of a sweep again, and go on with what is left; UsageError when none failed, or it is being
    conducted."""
    refuse_newer(SweepFolder(folder))
    failed = [cell.number for cell in read_sweep(folder).cells if cell.state == "failed"]
    if not failed:
        remedy = f"hfbench sweep rerun {folder.name} CELL begins a cell again that went well"
        raise UsageError("no cell of it failed", where=folder.name, remedy=remedy)
    start(SweepFolder(folder), again=failed)


def rerun_cells(folder: Path, cells: Sequence[int]) -> None:
    """Begin cells again, by their numbers, whatever became of them, and go on with what is left: their earlier jobs
    stay, tables and reports take the new ones. UsageError while it is being conducted."""
    refuse_newer(SweepFolder(folder))
    start(SweepFolder(folder), again=cells)


def sessions(sweep: SweepFolder) -> list[dict[str, Any]]:
    """What conductors said when they began and left, in the order they did."""
    return [line for line in LineTail(sweep.journal).read() if line.get("kind") == "conductor"]


def wait_until_begun(sweep: SweepFolder, before: int) -> HfbenchError | None:
    """Wait until a conductor that was started has begun, or left without it: then why, else None. `before` is how many
    `sessions` there were before it was started."""
    while True:
        conducted = sweep.conducted()  # asked before reading: it writes its last line before it lets go
        new = sessions(sweep)[before:]
        if new and new[0].get("did") != "stopped":
            return None
        if not conducted:
            told = new[-1] if new else {}
            why = str(told.get("why") or f"its conductor could not begin; {sweep.log} has its last words")
            return error_from_parts({"found": why, "exit": told.get("exit") or int(Exit.FAILED)})
        time.sleep(0.02)


def cancel(folder: Path) -> None:
    """Ask the conductor of a sweep to stop it and return at once; UsageError when nobody conducts it."""
    sweep = SweepFolder(folder)
    if not sweep.conducted():
        raise UsageError("nobody conducts it", where=folder.name, remedy="hfbench sweep list shows what is running")
    with naming_the_folder(folder, "the sweep's folder"):
        write_json(sweep.cancelled, {"at": time.time(), "by": f"pid {os.getpid()}"})


def wait_until_left(folder: Path, seconds: float = SLACK) -> bool:
    """Wait until nobody conducts a sweep any more; False when somebody still does after so long."""
    sweep, end = SweepFolder(folder), time.monotonic() + seconds
    while sweep.conducted():
        if time.monotonic() >= end:
            return False
        time.sleep(0.05)
    return True


def remove(folder: Path) -> None:
    """Delete the folder of a sweep, its jobs stay; UsageError while it is being conducted."""
    refuse_conducted(SweepFolder(folder))
    with naming_the_folder(folder.parent, "the folder of sweeps"):
        shutil.rmtree(folder)


def refuse_newer(sweep: SweepFolder) -> None:
    """UsageError for a sweep that a newer hfbench made or went on with: what it wrote is not all known here."""
    remedy = "go on with that one; this one shows what it can read"
    if sweep.newer:
        made_by = sweep.about.get("hfbench") or "a newer version"
        raise UsageError(f"it was made by hfbench {made_by}, which is newer", where=sweep.name, remedy=remedy)
    if any(map(newer_line, LineTail(sweep.journal).read())):
        found = "its journal has lines of an hfbench which is newer"
        raise UsageError(found, where=sweep.name, remedy=remedy)


def refuse_conducted(sweep: SweepFolder) -> None:
    """UsageError while a conductor is at work."""
    if sweep.conducted():
        remedy = f"hfbench sweep cancel {sweep.name} stops it"
        raise UsageError("it is being conducted", where=sweep.name, remedy=remedy)


def locked(sweep: SweepFolder) -> int:
    """A descriptor that holds the sweep's lock; UsageError while a conductor has it."""
    with naming_the_folder(sweep.path, "the sweep's folder"):
        lock = take_lock(sweep.lock, patience=1.0)
    if lock is None:
        remedy = f"hfbench sweep show {sweep.name} tells how far it is"
        raise UsageError("a conductor is at work on it already", where=sweep.name, remedy=remedy)
    return lock


def plan_of(sweep: SweepFolder) -> Plan:
    """The plan of a sweep's script, read in the folder the sweep was asked for in; InvalidScript or UsageError when it
    cannot be had any more."""
    if not sweep.about:
        raise UsageError("sweep.json is absent or damaged", where=sweep.path, remedy="run its script as a new sweep")
    folder = str(sweep.about.get("cwd") or "")
    try:
        os.chdir(folder)
    except OSError as error:
        found = f"the folder it was asked for in is gone: {error.strerror}"
        raise UsageError(found, where=folder, remedy="make it again: the script may name files in it") from None
    return load_plan(sweep.script)
