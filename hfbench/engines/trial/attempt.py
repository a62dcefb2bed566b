"""A guarded trial load: in a process group of its own, with limits, its log captured and its death told by signal."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from hfbench.beside import ALONE, foreign_environment
from hfbench.engines.trial.reasons import SIGNALS, named_reasons
from hfbench.engines.trial.told import Named, Trial
from hfbench.environments.process_tree import end_tree, marked
from hfbench.jobs.process import signal_name
from hfbench.paths import cache_root
from hfbench.text import printable_lines
from hfbench.units import GIB, MIB, show_elapsed

CHILD = "child.py"
MARK = "hfbench-trial:"
PATIENCE = 300.0
"""Seconds a trial may take unless told otherwise."""

ROOM = 8 * GIB
"""Host memory a trial may take beside three times the size of the engine."""

MOST_LOG = 64 * MIB
LOOKED_AT = 512 * 1024
"""Bytes at each end of a log that are searched for reasons."""

TAIL = 20
"""Lines of the log that are shown."""
STEP = 0.05

TORCH_CACHE = "TORCHINDUCTOR_CACHE_DIR"
"""Where torch keeps what it learned of the processor by compiling a line of C++, which takes it seconds."""


def attempt(
    path: Path,
    kind: str,
    *,
    command: Sequence[str],
    size: int,
    device: str = "cpu",
    patience: float = PATIENCE,
    waiting: Callable[[float], None] = lambda seconds: None,
) -> Trial:
    """Load an engine with the Python of `command` and tell what came of it; nothing of a crash is passed on.

    `kind` is `whole` for an engine with a manifest, otherwise what reading found. `size` bounds its host memory.
    """
    with tempfile.TemporaryDirectory(prefix="hfbench-trial-") as scratch:
        log = Path(scratch, "log")
        asked = {
            "path": str(path.absolute()),
            "kind": kind,
            "device": device,
            "memory": ROOM + 3 * size,
            "source": ALONE,
        }
        began = time.monotonic()
        with open(log, "wb") as sink:
            variables = marked({**foreign_environment(), "TMPDIR": scratch, TORCH_CACHE: _torch_cache()})
            try:
                child = _started(command, asked, sink, scratch, variables)
            except OSError as error:
                return Trial(outcome="could not", found=f"the Python cannot be started: {error.strerror}")
            try:
                why = _waited(child, log, patience, waiting)
            finally:
                code = end_tree(child, variables)  # with what it left behind
        return _told(code, why, log, time.monotonic() - began)


def reasons_in(path: Path) -> tuple[Named, ...]:
    """The reasons a log file tells, however long it is."""
    return named_reasons(_ends(path))


def _started(
    command: Sequence[str], asked: dict[str, Any], sink: Any, scratch: str, variables: dict[str, str]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*command, "-c", files("hfbench.engines.trial").joinpath(CHILD).read_text("utf-8"), json.dumps(asked)],
        stdin=subprocess.DEVNULL,
        stdout=sink,
        stderr=subprocess.STDOUT,
        cwd=scratch,
        env=variables,
        process_group=0,
    )


def _torch_cache() -> str:
    return os.environ.get(TORCH_CACHE) or str(cache_root() / "inductor")


def _waited(child: subprocess.Popen[bytes], log: Path, patience: float, waiting: Callable[[float], None]) -> str:
    """Wait for the end; why it was not waited for, empty when it ended by itself."""
    began = time.monotonic()
    while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        time.sleep(STEP)
        spent = time.monotonic() - began
        if spent > patience:
            return f"it had not loaded after {show_elapsed(patience)}"
        if log.stat().st_size > MOST_LOG:
            return "its runtime wrote a log without end"
        waiting(spent)
    return ""


def _told(code: int, why: str, log: Path, seconds: float) -> Trial:
    text, answer = _answered(_ends(log))
    shared: dict[str, Any] = {
        "reasons": named_reasons(text),
        "seconds": round(seconds, 3),
        "log": tuple([line for line in printable_lines(text) if line.strip()][-TAIL:]),
    }
    decisive = next((each for each in shared["reasons"] if each.fatal), None)
    if why:
        return Trial(outcome="late", found=why, remedy="give it more time with --patience", **shared)
    if code < 0:
        name = signal_name(-code)
        meaning, remedy = SIGNALS.get(name, ("its process was ended", "read the last lines of its log"))
        if decisive:
            meaning, remedy = decisive.found, decisive.remedy
        return Trial(outcome="crashed", signal=name, found=f"it died of {name}: {meaning}", remedy=remedy, **shared)
    if answer.get("loaded") is True:
        return Trial(outcome="loaded", found=str(answer.get("did", "")), **shared)
    if decisive and decisive.id == "module-missing":
        return Trial(outcome="could not", found=decisive.found, remedy=decisive.remedy, **shared)
    if decisive:
        return Trial(outcome="refused", found=decisive.found, remedy=decisive.remedy, **shared)
    found = str(answer.get("error") or f"its process ended with {code} and said nothing")
    return Trial(outcome="refused", found=found, remedy="read the last lines of its log", **shared)


def _answered(log: str) -> tuple[str, dict[str, Any]]:
    """What the runtime printed, and the child's own last word."""
    text, mark, line = log.rpartition(f"\n{MARK}")
    try:
        data = json.loads(line) if mark else None
    except ValueError:
        return log, {}
    return (text, data) if isinstance(data, dict) else (log, {})


def _ends(path: Path) -> str:
    """Both ends of a log as text."""
    with open(path, "rb") as file:
        head = file.read(LOOKED_AT)
        size = file.seek(0, os.SEEK_END)
        file.seek(max(len(head), size - LOOKED_AT))
        return (head + file.read(LOOKED_AT)).decode("utf-8", "replace")
