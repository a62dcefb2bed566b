"""The far side of a job on Ray: an actor that runs the stock worker in a folder of its node and tells what it wrote.

Plain standard library: the class is sent to the node as it is, where no hfbench need be installed.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

CHUNK = 4 << 20
"""Bytes of a file handed over at once."""
EVENTS_CHUNK = 17 << 20
"""The same for events, of which only whole lines are: more than the longest."""
GLANCE = 0.1
"""Seconds between two looks at the files while somebody waits for news of them."""
UNCOLLECTED = 3600.0
"""Seconds that a job which is over waits for a keeper to collect it, before its actor lets go of its GPUs."""
NOT_HANDED_OVER = ("events.jsonl", "output.log", "request.json", "cancel.json", "lock", "worker.lock", "reserve")
OF_ANOTHER_PYTHON = ("PYTHONPATH", "PYTHONHOME", "PYTHONEXECUTABLE", "VIRTUAL_ENV")
LEASH = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() == int(sys.argv[1]):
    os.execvp(sys.argv[2], sys.argv[2:])
"""
"""Starts a program that the kernel kills when its actor is gone, however that went."""


class Far:
    """One attempt at one job. Its node's folder is `folder` / name; offsets count bytes of this attempt's own files."""

    def __init__(self, name: str, request: dict[str, Any], here: dict[str, Any]) -> None:
        """`here` tells of the keeper's side: `job` and `token` to see whether the disk is shared, where hfbench lies
        (`package`, `version`), the `python` to run the worker with, and the `folder` to work in.
        """
        import ray

        context = ray.get_runtime_context()
        self._node = f"{socket.gethostname()}/{context.get_node_id()[:6]}"
        self._here = here
        self._request = request
        root = Path(here["folder"] or tempfile.gettempdir()).expanduser() / f"hfbench-ray-{os.getuid()}"
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        making = _locked(root / "making.lock")
        _sweep(root)
        self._folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=root))
        self._lock = _locked(self._folder / "folder.lock")
        os.close(making)
        self._job = self._folder / str(here["id"])
        self._worker: subprocess.Popen[bytes] | None = None
        self._asked = time.monotonic()
        self._package = here["package"] if _version(here["package"]) == here["version"] else ""

    async def install(self, archive: bytes) -> None:
        """Take the keeper's hfbench, where the node has none of that version at the same place."""
        if not self._package:
            with zipfile.ZipFile(io.BytesIO(archive)) as packed:
                packed.extractall(self._folder)
            self._package = str(self._folder / "hfbench")

    async def news(self, events: int, log: int, wait: float) -> dict[str, Any]:
        """Whole lines of events.jsonl and bytes of output.log after these offsets, at once or within `wait` seconds.

        The first question starts the worker. `status` is its exit status once it has ended, else None; what is told
        then may still be a part.
        """
        if self._worker is None and self._package:
            self._start()
        self._asked, until = time.monotonic(), time.monotonic() + wait
        while True:
            ended = None if self._worker is None else self._worker.poll()
            lines, text = (
                _after(self._job / "events.jsonl", events, EVENTS_CHUNK),
                _after(self._job / "output.log", log),
            )
            whole = lines[: lines.rfind(b"\n") + 1]
            if whole or text or ended is not None or self._worker is None or time.monotonic() > until:
                break
            await asyncio.sleep(GLANCE)
        return {
            "node": self._node,
            "pid": os.getpid(),
            "wants_hfbench": self._worker is None,
            "events": whole,
            "log": text,
            "status": ended,
        }

    async def files(self) -> dict[str, int]:
        """What the job has made, by its path in the job's folder, with its size; links are left out."""
        found = {}
        for folder, _, names in os.walk(self._job):
            for path in (Path(folder) / name for name in names):
                inside = str(path.relative_to(self._job))
                if path.is_file() and not path.is_symlink() and inside not in NOT_HANDED_OVER:
                    found[inside] = path.stat().st_size
        return found

    async def piece(self, path: str, offset: int) -> bytes:
        """At most CHUNK bytes of one of these files."""
        return _after(self._job / path, offset)

    async def bring(self, path: str, temporary: str) -> bool:
        """Copy one of these files over a shared disk; False where the keeper's folder is not seen from here."""
        if not self._shares_disk():
            return False
        shutil.copyfile(self._job / path, Path(self._here["job"]) / temporary)
        return True

    async def stop(self, hard: bool) -> None:
        """Ask the worker to stop, or kill it and all it has started."""
        (self._job / "cancel.json").write_text(json.dumps({"at": time.time(), "by": "the keeper"}))
        if self._worker is not None and self._worker.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._worker.pid, signal.SIGKILL if hard else signal.SIGTERM)

    async def remove(self) -> None:
        """Remove the folder: all of it was collected."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _shares_disk(self) -> bool:
        try:
            return bool(
                json.loads((Path(self._here["job"]) / "executor.json").read_bytes())["token"] == self._here["token"]
            )
        except (OSError, ValueError, LookupError, TypeError):
            return False

    def _start(self) -> None:
        (self._job / "artifacts").mkdir(parents=True)
        (self._job / "reserve").write_bytes(os.urandom(16 << 10))
        (self._job / "events.jsonl").touch()
        (self._job / "request.json").write_text(json.dumps(self._request))
        cwd = str(self._request.get("cwd") or "")
        alone = os.path.join(self._package, "alone")
        python = list(self._here["python"])
        worker = ["-u", "-P", alone, "hfbench.worker", str(self._job), "--kept"]
        with (self._job / "output.log").open("ab") as log:
            self._worker = subprocess.Popen(
                [sys.executable, "-c", LEASH, str(os.getpid()), *(python or [sys.executable]), *worker],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=cwd if os.path.isdir(cwd) else self._job,
                env=_environment(alone, foreign=bool(python)),
                start_new_session=True,
            )
        self._letting_go = asyncio.get_running_loop().create_task(self._let_go())

    async def _let_go(self) -> None:
        """End the actor when its job is over and nobody asks for it any more."""
        while self._worker is None or self._worker.poll() is None or time.monotonic() < self._asked + UNCOLLECTED:
            await asyncio.sleep(10)
        os._exit(0)


def _environment(alone: str, *, foreign: bool) -> dict[str, str]:
    """As a local worker has it: another Python gets nothing that leads to the packages of this one."""
    kept = {name: value for name, value in os.environ.items() if not foreign or name not in OF_ANOTHER_PYTHON}
    others = [] if foreign else [kept.get("PYTHONPATH", "")]
    return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, [alone, *others])), "PYTHONUNBUFFERED": "1"}


def _version(package: str) -> str:
    """The version of the hfbench in a folder of this node; empty without one."""
    with contextlib.suppress(OSError):
        for line in (Path(package) / "__init__.py").read_text().splitlines():
            if line.startswith("__version__"):
                return line.partition("=")[2].strip().strip("\"'")
    return ""


def _after(path: Path, offset: int, most: int = CHUNK) -> bytes:
    with contextlib.suppress(OSError), path.open("rb") as file:
        file.seek(offset)
        return file.read(most)
    return b""


def _locked(path: Path) -> int:
    """A descriptor that tells, for as long as this process lives, that the folder is in use."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(fd, fcntl.LOCK_EX)
    return fd


def _sweep(root: Path) -> None:
    """Remove what actors that were killed have left on this node."""
    for path in root.glob("*/folder.lock"):
        with contextlib.suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path.parent, ignore_errors=True)
