"""Crews forked from a process that has imported torch and Triton: importing them is most of what a short crew costs.

Run as a program this is that process. It is one of tests alone: hfbench starts each process of a crew anew.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NoReturn

CHILD = "hfbench.gpu.kernels.child"
PRELOADED = ("torch", "triton", "triton.compiler", "triton.backends.nvidia.compiler", CHILD)
DECIDES = ("TRITON_INTERPRET", "PYTHONPATH")
"""What an import takes from the environment."""


class Forked:
    """As much of `subprocess.Popen` as a crew uses, for a process that was forked."""

    def __init__(self, parent: socket.socket, words: Sequence[str], environment: Mapping[str, str], log: IO[bytes]):
        asking, stdin = os.pipe()
        stdout, giving = os.pipe()
        self._keeper, keeper = socket.socketpair()
        request = json.dumps([list(words), dict(environment)]).encode()
        socket.send_fds(parent, [request], [asking, giving, log.fileno(), keeper.fileno()])
        for each in (asking, giving):
            os.close(each)
        keeper.close()
        self.stdin, self.stdout = os.fdopen(stdin, "wb", 0), os.fdopen(stdout, "rb", 0)
        self._told = self._keeper.makefile("rb")
        self.pid = int(self._told.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._keeper], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(CHILD, timeout or 0.0)
            self.returncode = int(self._told.readline())
            self._told.close()
            self._keeper.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def __enter__(self) -> Forked:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stdin.close()
        self.stdout.close()
        self.wait()


class Parents:
    """Stands for the module `subprocess` in `hfbench.gpu.kernels.processes`; parents are started when needed."""

    PIPE, TimeoutExpired = subprocess.PIPE, subprocess.TimeoutExpired

    def __init__(self) -> None:
        self._parents: dict[tuple[str | None, ...], tuple[socket.socket, subprocess.Popen[bytes]]] = {}

    def Popen(self, words: Sequence[str], *, stderr: IO[bytes], env: Mapping[str, str], **_: Any) -> Forked:  # noqa: N802
        assert list(words[1:4]) == ["-P", "-m", CHILD], words
        decides = tuple(env.get(name) for name in DECIDES)
        if decides not in self._parents:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                program = [sys.executable, "-P", __file__, str(theirs.fileno())]
                started = subprocess.Popen(program, env=env, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
            self._parents[decides] = ours, started
        return Forked(self._parents[decides][0], words[4:], env, stderr)

    def close(self) -> None:
        """End the parents, once all that they forked has ended."""
        for ours, started in self._parents.values():
            ours.close()
            started.wait()


def serve(asked: socket.socket) -> None:
    """Fork for each request until nobody can ask any more."""
    for name in PRELOADED:
        import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, _reap)
    while True:
        request, streams, _, _ = socket.recv_fds(asked, 2**18, 4)
        if not request:
            return
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _keep(json.loads(request), streams)
        for each in streams:
            os.close(each)


def _reap(*_: object) -> None:
    """Wait for keepers that have ended: only so do their CPU seconds count."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _keep(request: Any, streams: Sequence[int]) -> NoReturn:
    """Fork the process, and tell its number and how it ended."""
    *of_child, told = streams
    pid = os.fork()
    if pid == 0:
        os.close(told)
        _become(*request, of_child)
    for each in of_child:
        os.close(each)
    asker = socket.socket(fileno=told)
    asker.sendall(b"%d\n" % pid)
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    asker.sendall(b"%d\n" % (ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status))
    asker.recv(1)  # its number must not be free before it was heard that it has ended
    os.waitpid(pid, 0)
    os._exit(0)


def _become(words: Sequence[str], environment: Mapping[str, str], streams: Sequence[int]) -> NoReturn:
    """Be what `python -m` would have made of the words."""
    os.setpgid(0, 0)
    for number, each in enumerate(streams):
        os.dup2(each, number)
        os.close(each)
    os.environ.clear()
    os.environ.update(environment)
    module, path, seconds = words
    try:
        import_module(CHILD).main(module, Path(path), float(seconds))
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
