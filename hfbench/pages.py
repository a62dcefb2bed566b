"""The pages of the documentation that come with hfbench, and which of them tells more about an error."""

from __future__ import annotations

import sys

ROOMS = {
    "checks": "checks/index",
    "compare": "compare",
    "conduct": "sweeps",
    "convert": "convert",
    "doctor": "doctor",
    "engines": "engines",
    "engines.runtimes": "serving",
    "engines.serving": "serving",
    "engines.trtllm": "tensorrt-llm",
    "environments": "environments",
    "estimate": "memory",
    "gpu.explain": "memory",
    "gpu.graphs": "graphs",
    "gpu.kernels": "kernels",
    "gpu.loading": "loading",
    "gpu.telemetry": "gpus",
    "hub": "hub",
    "hub.caching": "pull-and-push",
    "hub.pulling": "pull-and-push",
    "hub.pushing": "pull-and-push",
    "jobs.executors": "executors",
    "models.diff": "diff",
    "provenance": "provenance",
    "registry": "registry",
    "reports": "reports",
    "scripts": "scripts",
    "sweeps": "sweeps",
}
"""The page of each room that has one; a deeper entry wins."""


def page_of(error: BaseException) -> str:
    """The page of the room that raised an error, the innermost one; empty where no page tells more."""
    found, trace = "", error.__traceback__
    while trace is not None:
        found = _page(str(trace.tb_frame.f_globals.get("__name__", ""))) or found
        trace = trace.tb_next
    return found


def read_command(page: str) -> str:
    """What shows a page."""
    return f"hfbench docs read {page}"


def more_about(page: str) -> str:
    """The hint below an error that a person reads at a terminal; empty in pipes, logs and where there is no page."""
    return f"more about this: {read_command(page)}" if page and sys.stderr is not None and sys.stderr.isatty() else ""


def _page(module: str) -> str:
    room = module.removeprefix("hfbench.")
    while room:
        if room in ROOMS:
            return ROOMS[room]
        room = room.rpartition(".")[0]
    return ""
