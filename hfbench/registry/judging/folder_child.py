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
LAST_WORDS = 5.0
"""Seconds that a process which answered nothing has to end by itself."""
OUT_OF_MEMORY = 12
LOADED = "hfbench.registry.judging.chosen"

Problems = list[list[str]]
"""Triples of a rule's id, the file and a sentence: errors, and what a model for others cannot do without."""


class NotJudged(Exception):
    """There is no judgement; its text says why."""


def judge_apart(folder: Path, name: str, seconds: float) -> Problems:
    """What is wrong with the model in a folder. Blocks.

    TimeoutError when it takes longer than `seconds`, NotJudged when the process died or answered with something else.
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
        return read_answer(ours.recv_bytes())
    except EOFError:
        child.join(LAST_WORDS)
        raise NotJudged(death(child.exitcode)) from None
    finally:
        child.kill()
        child.join()
        ours.close()


def read_answer(answer: bytes) -> Problems:
    """What the process told; NotJudged when it is no list of problems."""
    try:
        told = json.loads(answer)
    except ValueError:
        told = None
    if not isinstance(told, list) or not all(_is_problem(each) for each in told):
        raise NotJudged("the process that judges gave an answer that cannot be read")
    return told


def death(status: int | None) -> str:
    """Why a process that ended with this status, a signal when negative, gave no answer."""
    if status is None or status < 0 or status == OUT_OF_MEMORY:
        return "judging it took more memory or time than it may"
    return f"the process that judges failed with status {status}, which is a fault of this hub and not of the model"


def _is_problem(told: object) -> bool:
    return isinstance(told, list) and len(told) == 3 and all(isinstance(each, str) for each in told)


def _judge(pipe: Connection, folder: str, name: str) -> None:
    """Judge, and tell what is wrong."""
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    for what, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CPU, CPU_SECONDS)):
        resource.setrlimit(what, (most, most))
    from hfbench.registry.judging.chosen import problems_of

    try:
        pipe.send_bytes(json.dumps(problems_of(Path(folder), name)).encode())
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
