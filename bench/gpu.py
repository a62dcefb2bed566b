"""Everything that needs a GPU, on one: each part in a process of its own, under 8 minutes in all.

    python bench/gpu.py                          all parts; writes results/<gpu>-<date>.json
    python bench/gpu.py --only timer,ceiling     some of them; the file says which
    python bench/gpu.py --dry-run FOLDER         all parts on the CPU with tiny sizes; the file goes into FOLDER

Needs torch, triton, transformers, numpy and hfbench itself, on the path of Python or installed; not Textual.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from claims import RESULTS, machine
from gpu_parts import card, kernels, models
from gpu_parts.kernels import CEILING, TIMER
from gpu_parts.setup import Setup

import hfbench
from hfbench.errors import MissingError, foreseen
from hfbench.exits import Exit

WHOLE = 480.0
"""Seconds for all parts together; what has not begun by then is said to have had no time."""
TOGETHER = max(2, len(os.sched_getaffinity(0)))
"""Parts at a time in a dry run, which measures nothing. On a GPU there is never more than one."""
PATIENCE = 3
"""Times a part's seconds in a dry run, which shares a machine that may be busy."""
LAST_WORDS = 600
NO_TIME = "there was no time left"
PACKAGES = ("torch", "triton", "transformers", "numpy", "safetensors", "tokenizers", "nvidia-ml-py")
CLAIMS = (CEILING, TIMER)


@dataclass(frozen=True, kw_only=True)
class Part:
    """One thing to run: its name, the seconds it may take on a GPU, and what does it."""

    name: str
    seconds: float
    run: Callable[[Setup], dict[str, Any]]
    with_model: bool = False
    """Waits for the part `model`, where several run at a time."""


PARTS = (
    Part(name="model", seconds=60, run=models.make),
    Part(name="telemetry", seconds=30, run=card.telemetry),
    Part(name="ceilings", seconds=40, run=card.ceilings),
    Part(name="timer", seconds=60, run=kernels.timer),
    Part(name="ceiling", seconds=90, run=kernels.ceiling),
    Part(name="decode-eager", seconds=60, run=models.decode("eager"), with_model=True),
    Part(name="decode-cudagraph", seconds=60, run=models.decode("cudagraph"), with_model=True),
    Part(name="graph-verify", seconds=60, run=models.graph_verify, with_model=True),
    Part(name="decode-static-cache", seconds=60, run=models.decode("static-cache"), with_model=True),
    Part(name="decode-compile", seconds=100, run=models.decode("compile"), with_model=True),
    Part(name="load", seconds=60, run=models.load, with_model=True),
    Part(name="kernel-time", seconds=60, run=kernels.time_action),
    Part(name="kernel-tune", seconds=70, run=kernels.tune_action),
    Part(name="check", seconds=120, run=kernels.check),  # last: it takes what time is left
)


def main() -> None:
    """Run the parts, write the file, say where; exit code 1 when a part failed or a claim does not hold.

    In a dry run a part that lacks something of this machine, such as CUDA graphs, has its sentence and is no failure.
    """
    words = _words()
    if words.part:
        _inside(words)
        return
    wanted = [part for part in PARTS if not words.only or part.name in words.only.split(",")]
    if unknown := {*filter(None, words.only.split(","))} - {part.name for part in PARTS}:
        _refuse(f"no part is called {', '.join(sorted(unknown))}; there are {', '.join(p.name for p in PARTS)}")
    dry, results = words.dry_run is not None, words.dry_run or RESULTS
    _try_to_write(results)
    with tempfile.TemporaryDirectory(prefix="bench-gpu-") as scratch:
        began = time.monotonic()
        told: dict[str, Any] = {}
        for name, answer in _all(wanted, Path(scratch), dry=dry, until=began + WHOLE):
            told[name] = answer
            print(f"{'ok  ' if answer['ok'] else 'NOT '} {name}: {answer['seconds']} s {answer['reason']}", flush=True)
    record = {
        "script": "gpu.py",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "dry_run": dry,
        "seconds": round(time.monotonic() - began, 1),
        "gpu": _card(told),
        "machine": machine(),
        "versions": {"hfbench": hfbench.__version__, **_versions()},
        "decode_of_bound": _of_bound(told),
        "parts": {part.name: told[part.name] for part in wanted},
    }
    if not any(each["ok"] for each in told.values()):
        sys.exit(int(Exit.ENVIRONMENT))  # nothing was measured: there is nothing to keep
    path = _write(record, results)
    print(f"{record['seconds']} s: {path}")
    missing = {int(Exit.ENVIRONMENT)} if dry else set[int]()
    fine = all(each["exit"] in {0, *missing} and each["figures"].get("holds") is not False for each in told.values())
    sys.exit(0 if fine else 1)


def _words() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run everything of hfbench that needs a GPU.")
    parser.add_argument("--dry-run", metavar="FOLDER", type=Path, help="on the CPU with tiny sizes, into FOLDER")
    names = ", ".join(part.name for part in PARTS)
    parser.add_argument("--only", default="", help=f"parts by name, with commas between: {names}")
    parser.add_argument("--part", default="", help=argparse.SUPPRESS)
    parser.add_argument("--scratch", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=0.0, help=argparse.SUPPRESS)
    return parser.parse_args()


def _refuse(sentence: str) -> NoReturn:
    print(f"gpu.py: {sentence}", file=sys.stderr)
    sys.exit(int(Exit.USAGE))


def _try_to_write(folder: Path) -> None:
    """Find out before minutes of a GPU are spent, not after."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(2**16))
    except OSError as error:
        _refuse(f"{folder}: cannot be written: {error.strerror}")


def _inside(words: argparse.Namespace) -> None:
    """The process of one part: its figures, or its sentence, into a file."""
    dry = words.dry_run is not None
    setup = Setup(device="cpu" if dry else "cuda:0", dry=dry, scratch=words.scratch.absolute(), seconds=words.seconds)
    part = next(each for each in PARTS if each.name == words.part)
    try:
        if not dry and part.name != "telemetry":
            _card_wanted()
        answer = {"ok": True, "reason": "", "exit": 0, "figures": part.run(setup)}
    except Exception as error:
        told = foreseen(error, traceback="")
        answer = {"ok": False, "reason": str(told), "exit": int(told.exit), "figures": {}}
    (words.scratch / f"{part.name}.json").write_text(json.dumps(answer))


def _card_wanted() -> None:
    """MissingError where torch sees no GPU: parts that need NVML besides say so themselves."""
    import torch

    if not torch.cuda.is_available():
        raise MissingError("torch sees no GPU", remedy="run with --dry-run FOLDER to try the script without one")


def _all(parts: Sequence[Part], scratch: Path, *, dry: bool, until: float) -> Iterator[tuple[str, dict[str, Any]]]:
    """Answers as they come. In a dry run several parts run at a time, those with a model once it is there."""
    waiting, running = deque(parts), dict[str, _Running]()
    while waiting or running:
        while len(running) < (TOGETHER if dry else 1) and (part := _next(waiting, made="model" not in running)):
            left = until - time.monotonic()
            if left < 1:
                yield part.name, {"ok": False, "reason": NO_TIME, "exit": 1, "figures": {}, "seconds": 0.0}
                continue
            running[part.name] = _Running(
                part, scratch, dry=dry, seconds=min(part.seconds * (PATIENCE if dry else 1), left)
            )
        for name, each in list(running.items()):
            if (answer := each.answer()) is not None:
                del running[name]
                yield name, answer
        time.sleep(0.05)


def _next(waiting: deque[Part], *, made: bool) -> Part | None:
    """The next part that can run, taken out of those that wait."""
    part = next((each for each in waiting if made or not each.with_model), None)
    if part is not None:
        waiting.remove(part)
    return part


class _Running:
    """The process of one part, in a session of its own so that whatever it starts ends with it."""

    def __init__(self, part: Part, scratch: Path, *, dry: bool, seconds: float) -> None:
        self._began, self._seconds = time.monotonic(), seconds
        self._file, self._log = scratch / f"{part.name}.json", (scratch / f"{part.name}.log").open("wb")
        words = [sys.executable, __file__, "--part", part.name, "--scratch", str(scratch), "--seconds", str(seconds)]
        paths = [str(Path(hfbench.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        told = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "HFBENCH_HOME": str(scratch / "home"),
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            **({"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"} if dry else {}),
        }
        self._process = subprocess.Popen(
            [*words, *(["--dry-run", str(scratch)] if dry else [])],
            env=told,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def answer(self) -> dict[str, Any] | None:
        """What it came to, or None while it runs and may."""
        spent = time.monotonic() - self._began
        late = spent >= self._seconds
        if self._process.poll() is None and not late:
            return None
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        code = self._process.wait()
        self._log.close()
        told: dict[str, Any] = {"ok": False, "exit": 1, "figures": {}, "reason": self._ended(code, late=late)}
        with suppress(OSError, ValueError):
            told = json.loads(self._file.read_text())
        return {**told, "seconds": round(spent, 1)}

    def _ended(self, code: int, *, late: bool) -> str:
        if late:
            return f"still running after {self._seconds:.0f} s"
        words = Path(self._log.name).read_text("utf-8", "replace").strip()[-LAST_WORDS:].splitlines()
        return f"its process ended with {code}: {words[-1] if words else 'no word'}"


def _card(told: dict[str, Any]) -> str:
    """The name of the device, as torch gives it."""
    return str(told.get("ceilings", {}).get("figures", {}).get("on", {}).get("name", "unknown"))


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found


def _of_bound(told: dict[str, Any]) -> dict[str, float]:
    """How near each mode's time a token comes to reading the weights once at the measured copy's bandwidth."""
    copied = told.get("ceilings", {}).get("figures", {}).get("copy_bytes_per_second")
    modes = {name: each["figures"] for name, each in told.items() if name.startswith("decode-") and each["ok"]}
    return {name: each["weight_bytes"] / copied / each["tpot"] for name, each in modes.items()} if copied else {}


def _write(record: dict[str, Any], folder: Path) -> Path:
    name = "dry-run" if record["dry_run"] else re.sub(r"[^a-z0-9]+", "-", record["gpu"].lower()).strip("-")
    path = folder / f"{name}-{record['date'][:10]}.json"
    path.write_text(json.dumps(record, indent=1) + "\n")
    return path


if __name__ == "__main__":
    main()
