"""The inside of a process that `processes.Crew` starts: it loads one kernel file and does tasks until stdin ends."""

from __future__ import annotations

import faulthandler
import json
import math
import os
import resource
import signal
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NoReturn

from hfbench.codec import encode
from hfbench.errors import HfbenchError
from hfbench.gpu.kernels.declaration import Kernel
from hfbench.gpu.kernels.loading import load
from hfbench.gpu.kernels.processes import die_with_parent, take_streams

LARGEST_OUTPUT = 2**28
"""Bytes a file that is written may have: a kernel file that prints for ever fills no disk."""

ANSWERED = 77
"""Exit status of a process that has written its answer: no other way to end has it."""


def main(module: str, path: Path, start_seconds: float) -> None:
    """Load the file, tell what it declares, then answer a task a line, each in a process forked for it alone."""
    asking, giving = take_streams()
    _limit()
    limit_seconds(start_seconds)
    try:
        perform, plan = _prepare(module, path)
    except HfbenchError as error:
        giving.write(json.dumps({"error": error.parts()}) + "\n")
        return
    giving.write(json.dumps(plan) + "\n")
    for line in asking:
        task = json.loads(line)
        seconds = task.pop("seconds")
        child = os.fork()  # all is imported: a crash costs milliseconds, and leaves the next task a sound heap
        if child == 0:
            _answer(giving, perform, task, seconds)
        _, status = os.waitpid(child, 0)
        if (code := os.waitstatus_to_exitcode(status)) != ANSWERED:
            giving.write(json.dumps({"ended": code}) + "\n")


def _answer(
    giving: IO[str], perform: Callable[[dict[str, Any]], Any], task: dict[str, Any], seconds: float
) -> NoReturn:
    """Do one task and end without a clean-up that a damaged heap would not survive."""
    die_with_parent()
    limit_seconds(seconds)
    giving.write(json.dumps(encode(perform(task))) + "\n")
    os._exit(ANSWERED)


def limit_seconds(seconds: float) -> None:
    """End this process, and each it starts, after so much CPU time from now on; whole seconds, rounded up."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    until = math.ceil(usage.ru_utime + usage.ru_stime + seconds)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (until if hard == resource.RLIM_INFINITY else min(until, hard), hard))


def _limit() -> None:
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever asks; our stdin ends with it
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (LARGEST_OUTPUT, LARGEST_OUTPUT))
    faulthandler.enable()  # tells at which line of the file native code crashed
    faulthandler.register(signal.SIGXCPU, chain=True)


def _prepare(module: str, path: Path) -> tuple[Callable[[dict[str, Any]], Any], dict[str, Any]]:
    """What does a task, and what the file declares; the libraries that a module needs are imported only for it."""
    kernel, neighbours = load(path)
    plan = _plan(kernel, neighbours)
    warnings.filterwarnings("ignore", category=UserWarning, module=r"triton\.")  # of defaults to come
    prepared = import_module(module).prepare(kernel, path)
    return lambda task: prepared(**task), plan


def _plan(kernel: Kernel, neighbours: dict[str, str]) -> dict[str, Any]:
    import triton

    return {
        "name": kernel.name,
        "triton": triton.__version__,
        "dtypes": list(kernel.dtypes),
        "shapes": [dict(shape) for shape in kernel.shapes],
        "sizes": [dict(shape) for shape in kernel.sizes],
        "configs": [
            {
                "label": config.label,
                "tile": ",".join(f"{key}={value!r}" for key, value in config.constants.items()),
                "warps": config.num_warps,
                "stages": config.num_stages,
                "constants": {key: _plain(value) for key, value in config.constants.items()},
                "options": {key: _plain(value) for key, value in config.options.items()},
            }
            for config in kernel.configs
        ],
        "neighbours": neighbours,
    }


def _plain(value: Any) -> Any:
    """A constant as JSON data; what JSON cannot hold, such as `tl.float32`, as text."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]))
