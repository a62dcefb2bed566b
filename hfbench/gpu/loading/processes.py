"""Loaders' processes as seen by whoever measures: asked for one load at a time, and given up when they hang."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from hfbench.beside import python_path
from hfbench.errors import HfbenchError
from hfbench.jobs.process import signal_name
from hfbench.units import show_seconds

START_SECONDS = 180.0
"""Seconds that importing a library may take, on a machine that is busy too."""
QUIET = {"RUNAI_STREAMER_LOG_LEVEL": "WARNING", "TOKENIZERS_PARALLELISM": "false"}


class LoaderFailed(HfbenchError):
    """A loader could not load; `found` is the reason in a clause."""


class LoaderProcess:
    """The process of one loader, from `with` to its end. LoaderFailed when it cannot be used at all."""

    def __init__(self, id: str, *, limit: float) -> None:
        self.id, self._limit = id, limit
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - read after the process has ended
        self._buffer = b""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "hfbench.gpu.loading.child", id],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            env={**os.environ, **QUIET, "PYTHONPATH": python_path()},
            start_new_session=True,
        )

    def __enter__(self) -> LoaderProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def ready(self) -> None:
        """Wait until it has imported what it needs."""
        self._answer(START_SECONDS, "importing it")

    def load(self, paths: Sequence[Path], device: str, *, verify: bool = False) -> Mapping[str, Any]:
        """One load in a process of its own; LoaderFailed with the library's own words, its signal, or the time."""
        task = {"paths": [str(path) for path in paths], "device": device, "verify": verify}
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(task).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise LoaderFailed("its process has ended") from None
        return self._answer(self._limit, "one load")

    def close(self) -> None:
        """End it with everything it started."""
        with suppress(OSError):
            os.killpg(self._process.pid, 9)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._words.close()

    def _answer(self, seconds: float, what: str) -> Mapping[str, Any]:
        line = self._line(time.monotonic() + seconds)
        if line is None:
            self.close()
            raise LoaderFailed(f"{what} took longer than {show_seconds(seconds)}")
        if not line:
            raise LoaderFailed(f"its process has ended{self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise LoaderFailed(str(answer["error"]))
        if "ended" in answer:
            code = int(answer["ended"])
            how = signal_name(-code) if code < 0 else f"exit status {code}"
            killed = ", as the kernel does when memory runs out" if code == -9 else ""
            raise LoaderFailed(f"it ended by {how}{killed}{self._last_words()}")
        return answer

    def _line(self, until: float) -> bytes | None:
        """The next line, an empty one at the end, None when the time is over."""
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(max(0.0, until - time.monotonic())):
                    return None
                block = os.read(self._process.stdout.fileno(), 65536)
                if not block:
                    return b""
                self._buffer += block
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _last_words(self) -> str:
        size = self._words.seek(0, os.SEEK_END)
        self._words.seek(max(0, size - 4096))
        lines = [line.strip() for line in self._words.read().decode("utf-8", "replace").splitlines() if line.strip()]
        return f": {lines[-1][:200]}" if lines else ""
