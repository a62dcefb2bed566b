"""What telemetry costs: the sampler's own CPU, and the keys of the workbench while a call of the driver hangs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from claims import Claim, Record, finish, run
from terminal import Terminal
from workbench import COMMAND, FIRST_FRAME, environment, versions

LIBRARY = Path(__file__).resolve().parents[1] / "tests" / "fakenvml" / "fakenvml.c"
CARDS = 8
WINDOW = 10.0
"""Seconds over which CPU time is counted; long enough for two looks at the slow fields."""
WINDOWS = 6
PRESSES = 40
HUNG = "nvmlDeviceGetPowerUsage 0 0 -1\n"

CPU = Claim(
    name="sampler-cpu",
    sentence="sampling 8 GPUs once a second takes at most a hundredth of a processor",
    bound=0.010,
    unit="s CPU a second",
)
KEYS = Claim(
    name="sampler-hung-keys",
    sentence="while a call of the driver hangs, a key takes at most 1.2 times as long as when it answers",
    bound=1.2,
)

SAMPLE = """
import json, sys, time
from hfbench.gpu.telemetry import Monitor
seconds, windows, cards = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
monitor = Monitor()
monitor.start()
assert len(monitor.wait(2, 60).devices) == cards
for _ in range(windows):
    began, before = time.monotonic(), time.process_time()
    time.sleep(seconds)
    print(json.dumps((time.process_time() - before) / (time.monotonic() - began)), flush=True)
assert not monitor.latest().waiting
"""


def build(folder: Path) -> Path:
    """The library that plays NVML, built into a folder."""
    library = folder / "libnvidia-ml.so.1"
    options = ["-std=gnu11", "-O2", "-shared", "-fPIC", f"-Wl,-soname,{library.name}"]
    subprocess.run(["gcc", *options, "-o", str(library), str(LIBRARY)], check=True)
    return folder


def burdens(folder: Path, *, window: float = WINDOW, windows: int = WINDOWS) -> Iterator[float]:
    """CPU seconds a second of a process that does nothing but sample."""
    told = {**os.environ, "LD_LIBRARY_PATH": str(folder), "FAKE_NVML_COUNT": str(CARDS)}
    words = [sys.executable, "-c", SAMPLE, str(window), str(windows), str(CARDS)]
    with subprocess.Popen(words, env=told, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        yield from map(json.loads, child.stdout)
    assert child.returncode == 0, "the sampler ended with an error"


def cpu(folder: Path) -> Record:
    """The sampler alone."""
    each = burdens(folder)
    return run(CPU, lambda: next(each), rounds=WINDOWS, warmup=0, versions=versions(), notes={"cards": CARDS})


def keys(folder: Path) -> Record:
    """Two workbenches side by side; the driver of one of them does not answer."""
    scratch = folder / "scratch"
    told = {"LD_LIBRARY_PATH": str(folder), "FAKE_NVML_COUNT": "2"}
    rules = folder / "rules"
    rules.write_text("")
    with (
        Terminal(COMMAND, environment={**environment(scratch, "healthy"), **told}) as healthy,
        Terminal(COMMAND, environment={**environment(scratch, "hung"), **told, "FAKE_NVML_SCRIPT": str(rules)}) as hung,
    ):
        for terminal in (healthy, hung):
            terminal.wait_for(FIRST_FRAME)
            terminal.drain(2.0)
        rules.write_text(HUNG)
        for terminal in (healthy, hung):
            terminal.drain(3.0)

        def flip(terminal: Terminal) -> float:
            away = terminal.answer("2", "no jobs yet").seconds
            return away + terminal.answer("1", FIRST_FRAME).seconds

        return run(KEYS, lambda: flip(hung), lambda: flip(healthy), rounds=PRESSES, warmup=3, versions=versions())


def main() -> None:
    """Measure both and keep the records."""
    with tempfile.TemporaryDirectory(prefix="bench-sampler-") as name:
        folder = build(Path(name))
        finish(cpu(folder), keys(folder))


if __name__ == "__main__":
    main()
