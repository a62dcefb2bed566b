"""The inside of the process that runs models for the walls: one request a line, answers and progress a line each."""

from __future__ import annotations

import json
import sys
import threading
import traceback
from collections.abc import Mapping
from typing import Any

from hfbench.beside import answers_alone, end_own_group
from hfbench.errors import HfbenchError, foreseen


def main() -> None:
    """Answer until stdin ends."""
    giving = answers_alone()
    lock = threading.Lock()

    def give(data: Mapping[str, Any]) -> None:
        with lock:
            giving.write(json.dumps(data).encode() + b"\n")
            giving.flush()

    from hfbench.convert.walls.judge import Judge  # torch enters here

    judge = Judge(lambda phase, done, total: give({"progress": [phase, done, total]}))
    for line in sys.stdin.buffer:
        request = json.loads(line)
        try:
            give({"answer": getattr(judge, request.pop("do"))(**request)})
        except HfbenchError as error:
            give({"error": error.parts()})
        except Exception as error:
            traceback.print_exc()  # whoever asks keeps stderr
            give({"error": foreseen(error, traceback="the log of the job has the traceback").parts()})
    end_own_group()


if __name__ == "__main__":
    main()
