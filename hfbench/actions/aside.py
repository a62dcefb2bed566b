"""Performs actions in a child process, so that a screen never waits for a parse: `Aside.ask` gives one, and its result.

`python -m hfbench.actions.aside` reads requests from stdin, one JSON object a line, and answers on stdout.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import IO, Any, Self

from hfbench.actions.registry import find
from hfbench.actions.results import result_data
from hfbench.beside import answers_alone, end_group, end_own_group, start_beside
from hfbench.codec import decode
from hfbench.errors import HfbenchError, Interrupted, UnforeseenError, error_from_parts
from hfbench.jobs.run import Run

SLICE = 200
"""Items of a list in one line: whoever parses it holds the interpreter for about a millisecond."""

POLL = 0.1
"""Seconds between two looks at whether the answer is still wanted."""

LAST_MOMENT = 1.0
"""Seconds between the end of a child's answers and its own."""

CHUNK = 2**16


class Aside:
    """A child process that performs one action after the other; it is started by the first and ended by `close`.

    Its process group ends with it, and it ends when this process does. Not to be shared between threads.
    """

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._read = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def ask(self, action: str, values: Mapping[str, object], stopped: Callable[[], bool] = lambda: False) -> Any:
        """The result of an action, as an instance of its result's class.

        Raises what the action raised; Interrupted, with the child ended, once `stopped` says so.
        """
        spec = find(action)
        child = self._child = self._child or start_beside("hfbench.actions.aside")
        try:
            assert child.stdin
            child.stdin.write(json.dumps({"action": action, "values": dict(values)}).encode() + b"\n")
            child.stdin.flush()
            told = self._answer(child, stopped)
        except BrokenPipeError:
            told = None
        if told is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(LAST_MOMENT)  # what it ended with is told, not that it was ended then
            how = _ending(self.close())
            raise HfbenchError(f"the process that performs {action} {how}", remedy="try again")
        if error := told.get("error"):
            raise error_from_parts(error)
        return decode(spec.result, told["result"])

    def close(self) -> int | None:
        """End the child and all it started; its return code, None when there is none."""
        child, self._child = self._child, None
        self._read.clear()
        return None if child is None else end_group(child)

    def _answer(self, child: subprocess.Popen[bytes], stopped: Callable[[], bool]) -> dict[str, Any] | None:
        """One answer put together, None when the child ended without it."""
        lists: dict[str, list[Any]] = {}
        for line in self._lines(child, stopped):
            told: dict[str, Any] = json.loads(line)
            if "part" in told:
                lists.setdefault(told["part"], []).extend(told["items"])
                continue
            if "result" in told:
                told["result"].update(lists)
            return told
        return None

    def _lines(self, child: subprocess.Popen[bytes], stopped: Callable[[], bool]) -> Iterator[bytes]:
        assert child.stdout
        number = child.stdout.fileno()
        poll = select.poll()
        poll.register(number, select.POLLIN)
        while True:
            while (end := self._read.find(b"\n")) >= 0:
                line = bytes(self._read[:end])
                del self._read[: end + 1]
                yield line
            if stopped():
                self.close()
                raise Interrupted("nobody waits for the answer any more")
            if poll.poll(POLL * 1000):
                part = os.read(number, CHUNK)
                if not part:
                    return
                self._read += part


def _ending(code: int | None) -> str:
    """How a process ended, for a sentence."""
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
    return f"ended with status {code}"


# -- the child ----------------------------------------------------------------


def main() -> None:
    """Perform what stdin asks for until it ends."""
    giving = answers_alone()
    requests: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, requests), daemon=True).start()
    while True:
        for line in _told(requests.get()):
            giving.write(json.dumps(line).encode() + b"\n")
        giving.flush()


def _listen(pipe: IO[bytes], requests: queue.SimpleQueue[bytes]) -> None:
    """Our stdin ends when the process that asks does: whatever is under way then is wanted by nobody."""
    for line in pipe:
        requests.put(line)
    end_own_group()


def _told(request: bytes) -> Iterator[dict[str, Any]]:
    """The lines of an answer: long lists in slices, then the rest."""
    asked = json.loads(request)
    try:
        result = result_data(find(asked["action"]).build(asked["values"]).perform(Run()))
    except HfbenchError as error:
        yield {"error": error.parts()}
        return
    except Exception as error:  # whoever asked tells it: our stderr leads nowhere
        yield {"error": UnforeseenError(f"unforeseen {type(error).__name__}: {str(error)[:200]}").parts()}
        return
    for name, value in result.items():
        if isinstance(value, list) and len(value) > SLICE:
            result[name] = []
            for start in range(0, len(value), SLICE):
                yield {"part": name, "items": value[start : start + SLICE]}
    yield {"result": result}


if __name__ == "__main__":
    main()
