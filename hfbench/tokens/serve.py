"""The inside of a process that `child.Child` starts: one request after the other, until stdin ends."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

from hfbench.errors import HfbenchError, MissingError
from hfbench.tokens.limits import limit_memory, limit_seconds

Answer = tuple[Mapping[str, Any], bytes]

LONGEST_DETAIL = 300
"""Characters kept of what a library says is wrong."""


def serve(answer: Callable[[dict[str, Any], bytes], Answer], *, memory: int, file: int = 0) -> None:
    """Answer requests with `memory` more bytes of address space than now; a request's `seconds` limit its CPU time.

    Files that are written may have `file` bytes. An HfbenchError that `answer` raises is the answer, and any other
    error is told in a sentence of its own.
    """
    taking, giving = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a library prints is no answer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever asks; our stdin ends with it
    limit_memory(memory, file=file)
    for line in taking:
        request = json.loads(line)
        payload = taking.read(request.pop("bytes"))
        limit_seconds(request.pop("seconds"))
        told, body = _answered(answer, request, payload)
        limit_seconds(0)
        giving.write(json.dumps({**told, "bytes": len(body)}).encode() + b"\n" + body)
        giving.flush()


def _answered(answer: Callable[[dict[str, Any], bytes], Answer], request: dict[str, Any], payload: bytes) -> Answer:
    try:
        return answer(request, payload)
    except HfbenchError as error:
        return {"error": error.parts()}, b""
    except ImportError as error:
        return {"error": MissingError(str(error)[:LONGEST_DETAIL]).parts()}, b""
    except MemoryError:
        return {"error": HfbenchError("takes more memory than allowed").parts()}, b""
    except BaseException as error:  # a panic of native code is no Exception
        return {"error": HfbenchError(told_of(error)).parts()}, b""


def told_of(error: BaseException) -> str:
    """What a library's error says, on one line and of bounded length."""
    first = (str(error).strip() or type(error).__name__).splitlines()[0]
    return first[:LONGEST_DETAIL]
