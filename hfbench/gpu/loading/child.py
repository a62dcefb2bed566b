"""The inside of a loader's process: imports once, then forks another for each load, so that each has its own peak."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NoReturn

from hfbench.errors import HfbenchError
from hfbench.gpu.kernels.processes import die_with_parent, take_streams
from hfbench.gpu.loading.tensors import Load, digest, loader_function, timed_load
from hfbench.gpu.memory import STATUS, forget_peak

ANSWERED = 77
"""Exit status of a process that has written its answer: no other way to end has it."""


def main(id: str) -> None:
    """Import what a loader needs and say so; then answer a load a line until stdin ends."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever asks; our stdin ends with it
    asking, giving = take_streams()
    try:
        load = loader_function(id)
    except HfbenchError as error:
        _give(giving, {"error": error.found})
        return
    except Exception as error:  # a package that is there and cannot be imported
        _give(
            giving,
            {"error": f"{type(error).__name__}: {str(error).strip().splitlines()[0][:200] if str(error) else ''}"},
        )
        return
    _give(giving, {"ready": True})
    for line in asking:
        child = os.fork()  # no device was touched so far: a driver does not survive a fork
        if child == 0:
            _answer(giving, load, json.loads(line))
        _, status = os.waitpid(child, 0)
        if (code := os.waitstatus_to_exitcode(status)) != ANSWERED:
            _give(giving, {"ended": code})


def _answer(giving: IO[str], load: Load, task: Mapping[str, Any]) -> NoReturn:
    """One load, and an end without a clean-up that might take long or fail."""
    die_with_parent()
    try:
        _give(giving, perform(load, [Path(each) for each in task["paths"]], task["device"], verify=task["verify"]))
    except Exception as error:  # what a loader cannot do is an answer too
        first = (str(error).strip() or "no message").splitlines()[0][:300]
        _give(giving, {"error": first if isinstance(error, HfbenchError) else f"{type(error).__name__}: {first}"})
    os._exit(ANSWERED)


def perform(load: Load, paths: list[Path], device: str, *, verify: bool) -> dict[str, Any]:
    """Load once in this process: seconds, tensors, bytes, peaks, and with `verify` the digest of all bytes."""
    if device != "cpu":
        import torch

        torch.zeros(1, device=device)  # the context takes longer than many a load
        torch.cuda.synchronize(device)
    forget_peak()
    before = _resident("VmRSS")
    seconds, tensors = timed_load(load, paths, device)
    peak = _resident("VmHWM")
    told = {
        "seconds": seconds,
        "tensors": len(tensors),
        "bytes": sum(each.numel() * each.element_size() for each in tensors.values()),
        "rss_before": before,
        "rss_peak": peak,
        "cuda_peak": None,
        "digest": "",
    }
    if device != "cpu":
        import torch

        told["cuda_peak"] = torch.cuda.max_memory_reserved(device)
    if verify:
        told["digest"] = digest(tensors)
    return told


def _resident(name: str) -> int | None:
    """Bytes of a line of /proc/self/status."""
    match = re.search(rf"^{name}:\s+(\d+) kB$", STATUS.read_text(), re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def _give(giving: IO[str], answer: Mapping[str, Any]) -> None:
    giving.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
