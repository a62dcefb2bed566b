"""Performs the action `diff`, or reads what a job of it found, in a child process that sends rows ready to be shown.

`python -m hfbench.screens.diff_child` reads one request from stdin, a line of JSON, and answers on stdout.
Rows are made there, because some hundred thousand differences as objects would take the screen's process seconds.
"""

from __future__ import annotations

import contextlib
import json
import marshal
import os
import select
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hfbench.beside import answers_alone, end_group, end_with_parent, start_beside
from hfbench.codec import decode
from hfbench.errors import HfbenchError, UnforeseenError, error_from_parts
from hfbench.widgets.differences import Differences, differences_of, unpacked

if TYPE_CHECKING:
    from hfbench.actions.diff import DiffResult

POLL = 0.1
"""Seconds between two looks at whether the answer is still wanted."""

CHUNK = 2**18
MOST_CLASHES = 100
"""Clashes of names that are sent; they are shown in the summary."""


def ask_child(request: Mapping[str, Any], stopped: Callable[[], bool]) -> tuple[DiffResult, Differences] | None:
    """The result without its lists of tensors, and those as rows; None once `stopped` says so.

    The request holds `values`, the fields of the action, or `job`, the folder of a job that is over. Raises what the
    action raised.
    """
    child = start_beside("hfbench.screens.diff_child")
    try:
        assert child.stdin
        assert child.stdout
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(json.dumps(dict(request)).encode() + b"\n")
            child.stdin.flush()
        answer = _received(child.stdout.fileno(), stopped)
    finally:
        end_group(child)
    if answer is None:
        return None
    if not answer:
        raise HfbenchError("the process that compares ended without an answer", remedy="try again")
    head, packed = marshal.loads(answer)  # written by our own code in the same interpreter
    told = json.loads(head)
    if error := told.get("error"):
        raise error_from_parts(error)
    from hfbench.actions.diff import DiffResult

    return decode(DiffResult, told), unpacked(packed)


def _received(number: int, stopped: Callable[[], bool]) -> bytes | None:
    """All that comes until the child closes its end; None once `stopped` says so."""
    parts, poll = list[bytes](), select.poll()
    poll.register(number, select.POLLIN)
    while not stopped():
        if poll.poll(POLL * 1000):
            part = os.read(number, CHUNK)
            if not part:
                return b"".join(parts)
            parts.append(part)
    return None


# -- the child ----------------------------------------------------------------


def main() -> None:
    """Answer one request."""
    giving = answers_alone()
    request = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        answer = _answer(request)
    except HfbenchError as error:
        answer = {"error": error.parts()}, ()
    except Exception as error:  # whoever asked tells it: our stderr leads nowhere
        unforeseen = UnforeseenError(f"unforeseen {type(error).__name__}: {str(error)[:200]}")
        answer = {"error": unforeseen.parts()}, ()
    with contextlib.suppress(BrokenPipeError), giving:
        marshal.dump((json.dumps(answer[0]), answer[1]), giving)
    os._exit(0)  # the thread that watches stdin cannot be joined


def _answer(request: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Any, ...]]:
    from hfbench.actions.diff import ACTION, LISTS
    from hfbench.actions.registry import find
    from hfbench.actions.results import result_data
    from hfbench.jobs.run import Run

    job, values = request.get("job"), request.get("values", {})
    result: DiffResult = _of_job(Path(job)) if job else find(ACTION).build(values).perform(Run())
    kept: dict[str, Any] = {name: () for name in LISTS if getattr(result, name) is not None}
    kept["clashes"] = result.clashes[:MOST_CLASHES]
    return result_data(replace(result, **kept)), differences_of(result).packed()


def _of_job(folder: Path) -> DiffResult:
    """The result of a job, from the file with all of it where the result is shortened."""
    from hfbench.actions.diff import DiffResult

    try:
        data = json.loads((folder / "result.json").read_bytes())["result"]
        whole = data.get("whole") and Path(data["whole"])
        if whole and whole.is_file():
            data = {**json.loads(whole.read_bytes()), "whole": data["whole"]}
        return decode(DiffResult, data)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise HfbenchError(f"the result cannot be read: {type(error).__name__}", where=folder.name) from None


if __name__ == "__main__":
    main()
