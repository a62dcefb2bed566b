"""Stays with a sweep until it is over: a line on stderr for each cell that ends, then its table."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence

from hfbench.commands.watch import is_live, redraw
from hfbench.conduct.start import cancel, sessions, wait_until_begun, wait_until_left
from hfbench.errors import HfbenchError
from hfbench.exits import Exit, complain
from hfbench.scripts.progress import say
from hfbench.sweeps.folder import SweepFolder
from hfbench.sweeps.model import OVER, CellView, SweepSnapshot
from hfbench.sweeps.snapshot import SweepFollower
from hfbench.sweeps.table import lines_of_table, notes_of_table, table, usual_metrics
from hfbench.text import printable
from hfbench.units import show_elapsed, show_seconds, show_value

PAUSE = 0.2
"""Seconds between two looks."""
LASTING = 1.5
"""Seconds a cell waits for the same before that is told."""


def follow(sweep: SweepFolder, *, as_json: bool = False) -> int:
    """Follow a sweep to its end and print it; the code of a script with its cells. Ctrl-C stops the sweep, a second one
    leaves it to itself."""
    follower, told = SweepFollower(sweep.path), set[int]()
    try:
        try:
            snapshot = _watched(follower, told, quiet=as_json)
        except KeyboardInterrupt:
            complain(
                f"stopping the sweep; Ctrl-C again leaves it running, and hfbench sweep resume {sweep.name} goes on"
            )
            _stop(sweep)
            snapshot = follower.read()
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    return _report(sweep, snapshot, as_json)


def told_detached(sweep: SweepFolder, as_json: bool, before: int) -> int:
    """Say which sweep was started and is left alone, once it has begun; or why it has not. `before` is how many
    sessions of conductors there were before."""
    if refused := wait_until_begun(sweep, before):
        complain(f"{sweep.name}: {refused}")
        return int(refused.exit)
    print(json.dumps({"sweep": sweep.name, "directory": str(sweep.path)}) if as_json else sweep.name)
    return Exit.OK


def exit_of(sweep: SweepFolder) -> int:
    """The code that the last conductor of a sweep told."""
    codes = [line.get("exit") for line in sessions(sweep)]
    return codes[-1] if codes and isinstance(codes[-1], int) else int(Exit.FAILED)


def _watched(follower: SweepFollower, told: set[int], *, quiet: bool) -> SweepSnapshot:
    live = not quiet and is_live()
    told |= {cell.number for cell in follower.read().cells if cell.state in OVER}
    waits = _Waits()
    try:
        while True:
            snapshot = follower.read()
            if not quiet:
                for sentence in [*_news(snapshot, told), *waits.news(snapshot.cells, time.monotonic())]:
                    if live:
                        redraw("")
                    say(sentence)
            if live:
                redraw(_status(snapshot))
            if snapshot.state != "running":
                break
            time.sleep(PAUSE)
    finally:
        if live:
            redraw("")
    if snapshot.state == "interrupted":  # or its folder is being deleted, the lock before the rest
        time.sleep(PAUSE)
        snapshot = follower.read()
    return snapshot


def _news(snapshot: SweepSnapshot, told: set[int]) -> Iterator[str]:
    """A line for each cell that is over and was not told yet."""
    for cell in snapshot.cells:
        if cell.state in OVER and cell.number not in told:
            told.add(cell.number)
            yield _line(snapshot, cell, len(told))


class _Waits:
    """What cells wait for, once each, and only when it lasts: a device that passes from cell to cell is no news."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._told = set[str]()

    def news(self, cells: Sequence[CellView], now: float) -> list[str]:
        """A line for each reason that has lasted, with the first cell that has it."""
        waiting = {cell.reason: cell for cell in reversed(cells) if cell.state == "queued" and cell.reason and cell.on}
        self._since = {reason: self._since.get(reason, now) for reason in waiting}
        lasting = [why for why, since in self._since.items() if now - since >= LASTING and why not in self._told]
        self._told.update(lasting)
        return [" ".join(filter(None, [waiting[why].label, why])) for why in lasting]


def _line(snapshot: SweepSnapshot, cell: CellView, count: int) -> str:
    metrics = [name for name in usual_metrics(snapshot)[:2] if name in cell.metrics]
    figures = [f"{name} {show_value(cell.metrics[name].value, cell.metrics[name].unit)}" for name in metrics]
    on = f"on {cell.on}" if cell.on not in ("", "local") else ""
    parts = [f"[{count}/{len(snapshot.cells)}]", cell.label, on, f"{cell.state},", show_seconds(cell.seconds), *figures]
    return " ".join(filter(None, parts)) + (f"; {cell.reason}" if cell.reason else "")


def _status(snapshot: SweepSnapshot) -> str:
    counts = snapshot.counts()
    over = sum(counts[state] for state in OVER)
    left = f"  ~{show_elapsed(snapshot.left_s)} left" if snapshot.left_s is not None else ""
    return printable(
        f"{over} of {len(snapshot.cells)} cells  {counts['running']} running  {show_elapsed(snapshot.seconds)}{left}"
    )


def _stop(sweep: SweepFolder) -> None:
    try:
        cancel(sweep.path)
        wait_until_left(sweep.path)
    except HfbenchError as error:
        complain(error)


def _report(sweep: SweepFolder, snapshot: SweepSnapshot, as_json: bool) -> int:
    code = exit_of(sweep)
    if as_json:
        told = {"sweep": snapshot.name, "state": snapshot.state, "reason": snapshot.reason, "counts": snapshot.counts()}
        print(json.dumps({**told, "exit": code}))
    elif snapshot.cells:
        cells = table(snapshot)
        print("\n".join([*lines_of_table(cells), *notes_of_table(cells)]))
    if not sweep.path.exists():
        complain(f"{snapshot.name}: {snapshot.reason}; its conductor stops its jobs and leaves")
        return Exit.FAILED
    if snapshot.state == "interrupted":
        complain(f"{snapshot.name}: {snapshot.reason}; {sweep.log} has its last words")
        return Exit.FAILED
    if snapshot.reason:
        complain(f"{snapshot.name}: {snapshot.reason}")
    return code
