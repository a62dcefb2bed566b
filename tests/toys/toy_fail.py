"""toy.fail: ends badly in the way it is asked to."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import Literal

from hfbench.actions.base import action
from hfbench.actions.params import param
from hfbench.errors import HfbenchError, MissingError
from hfbench.jobs.run import Run


@dataclass(frozen=True)
class Nothing:
    """It never comes to this, except for `failed`."""

    failed: bool = True


@action("toy.fail", result=Nothing)
@dataclass(frozen=True, kw_only=True)
class Fail:
    """Fail in a chosen way."""

    how: Literal["error", "missing", "bug", "segv", "kill", "exit", "leave", "disk", "memory", "result"] = param(
        "The way", default="error"
    )

    say: str = param("What to print before", default="")

    def perform(self, run: Run) -> Nothing:
        print(self.say, flush=True)
        print(f"about to fail by {self.how}", flush=True)
        match self.how:
            case "error":
                raise HfbenchError("the toy is broken", where="toy", remedy="buy another")
            case "missing":
                raise MissingError("there is no toy here", remedy="install one")
            case "bug":
                raise ZeroDivisionError("a bug")
            case "memory":
                bytearray(1 << 62)
            case "leave":
                raise SystemExit(3)
            case "disk":
                with (run.artifacts / "big").open("wb") as file:
                    while True:
                        file.write(bytes(4096))
                        file.flush()
            case "segv":
                os.kill(os.getpid(), signal.SIGSEGV)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "exit":
                os._exit(7)
        return Nothing()
