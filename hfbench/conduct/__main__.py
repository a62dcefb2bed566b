"""The conductor's process: `python -m hfbench.conduct FOLDER`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

from hfbench.conduct.conductor import Conductor
from hfbench.conduct.journal import Journal, cut_torn_end
from hfbench.conduct.no_room import NoRoom, tells_no_room
from hfbench.conduct.start import locked, plan_of
from hfbench.errors import HfbenchError, foreseen
from hfbench.exits import complain
from hfbench.scripts.interrupt import Stop
from hfbench.scripts.results import Results
from hfbench.sweeps.folder import SweepFolder


def main(arguments: list[str] | None = None) -> int:
    """Conduct a sweep to its end; the code a script with its cells would have."""
    parser = argparse.ArgumentParser(prog="hfbench.conduct", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lock-fd", type=int, help="an open descriptor that already holds the sweep's lock")
    parser.add_argument("--again", type=_numbers, default=(), help="numbers of cells that are over, to begin again")
    given = parser.parse_args(arguments)
    sweep = SweepFolder(given.folder.absolute())
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a terminal that closes is no reason to stop
    try:
        lock = locked(sweep) if given.lock_fd is None else given.lock_fd
        os.set_inheritable(lock, False)
        return _conduct(sweep, again=given.again)
    except Exception as error:
        trouble = foreseen(error, traceback=f"{sweep.log} shows more")
        if tells_no_room(trouble):
            error = trouble = NoRoom(sweep.path)
        if trouble is not error:
            sys.excepthook(type(error), error, error.__traceback__)
        complain(trouble)
        return int(trouble.exit)


def _conduct(sweep: SweepFolder, *, again: tuple[int, ...]) -> int:
    cut_torn_end(sweep.results)
    fd = os.open(sweep.results, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    journal = Journal(sweep.journal)
    try:
        plan = plan_of(sweep)
        with Stop() as stop:
            results = Results(fd, sweep.results)
            return Conductor(sweep, plan, stop, results, journal, again=again).conduct()
    except HfbenchError as error:
        journal.write_last("conductor", did="stopped", pid=os.getpid(), why=str(error), exit=int(error.exit))
        raise
    finally:
        journal.close()
        os.close(fd)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


if __name__ == "__main__":
    sys.exit(main())
