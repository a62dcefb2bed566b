"""Judges a folder by the rules, in a process of its own with limits.

The process is forked from one that has loaded the rules and does nothing else: loading them takes 0.1 s.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
from multiprocessing.connection import Connection
from pathlib import Path

MEMORY = 4 << 30
CPU_SECONDS = 60
LOADED = "hfbench.registry.judging.chosen"

Problems = list[list[str]]
"""Triples of a rule's id, the file and a sentence: errors, and what a model for others cannot do without."""


def judge_apart(folder: Path, name: str, seconds: float) -> Problems | None:
    """What is wrong with the model in a folder; None when the process died of its limits. Blocks.

    TimeoutError when it takes longer than `seconds`.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([LOADED])
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_judge, args=(theirs, str(folder), name), daemon=True)
    child.start()
    theirs.close()
    try:
        if not ours.poll(seconds):
            raise TimeoutError
        told: Problems = json.loads(ours.recv_bytes())
        return told
    except EOFError:
        return None
    finally:
        child.kill()
        child.join()
        ours.close()


def _judge(pipe: Connection, folder: str, name: str) -> None:
    """Judge, and tell what is wrong."""
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    for what, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, CPU_SECONDS)):
        resource.setrlimit(what, (most, most))
    from hfbench.registry.judging.chosen import problems_of

    pipe.send_bytes(json.dumps(problems_of(Path(folder), name)).encode())
