"""Asks the process that runs models: torch and transformers stay in there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from typing import Any, Self

from hfbench.beside import end_group, python_path
from hfbench.errors import HfbenchError, error_from_parts
from hfbench.jobs.process import signal_name
from hfbench.jobs.run import Run
from hfbench.text import clip

OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
PATIENT = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Threads that spin while they wait for each other cost ten times the work where other programs keep the cores busy."""
LAST_WORDS = 2000
"""Characters of its stderr that are looked at when it ends by itself."""


class Judging:
    """The process, started with the first request and ended with the `with` block."""

    def __init__(self, run: Run, *, module: str = "hfbench.convert.walls.child") -> None:
        self._run, self._module = run, module
        self.wall = ""
        """What the requests are for; the phases that the process tells begin with it."""
        self._child: subprocess.Popen[bytes] | None = None
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process it listens to

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._child is not None:
            end_group(self._child)
        self._said.close()

    def ask(self, do: str, **request: Any) -> Any:
        """The answer to one request. HfbenchError as the process tells it, or when it ended without an answer."""
        child = self._running()
        assert child.stdin
        assert child.stdout
        try:
            child.stdin.write(json.dumps({"do": do, **request}).encode() + b"\n")
            child.stdin.flush()
        except BrokenPipeError:
            raise self._ended(child) from None
        for line in child.stdout:
            told = json.loads(line)
            if "progress" in told:
                phase, *figures = told["progress"]
                self._run.progress(f"{self.wall} {phase}".lstrip(), *figures)
            elif "error" in told:
                raise error_from_parts(told["error"])
            else:
                return told["answer"]
        raise self._ended(child)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            self._child = subprocess.Popen(
                [sys.executable, "-P", "-m", self._module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                env={**PATIENT, **os.environ, **OFFLINE, "PYTHONPATH": python_path()},
                cwd="/",
                process_group=0,
            )
        return self._child

    def _ended(self, child: subprocess.Popen[bytes]) -> HfbenchError:
        code = end_group(child)
        self._child = None
        how = f"by {signal_name(-code)}" if code < 0 else f"with status {code}"
        words = last_words(self._said)
        found = f"the process that runs the models ended {how}{': ' + words if words else ''}"
        remedy = "its memory may have run out: it needs the model and a layer in float32" if code == -9 else ""
        return HfbenchError(found, remedy=remedy)


def last_words(said: Any) -> str:
    """The last line that a process wrote to its stderr."""
    end = said.seek(0, os.SEEK_END)
    said.seek(max(0, end - LAST_WORDS))
    lines = said.read().decode("utf-8", "replace").strip().splitlines()
    return clip(lines[-1], 200) if lines else ""
