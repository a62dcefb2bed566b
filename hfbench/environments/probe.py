"""Asks an environment what it is, in a child that may hang, crash or talk nonsense."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Any

from hfbench.beside import foreign_environment
from hfbench.codec import decode
from hfbench.environments.declared import Environment
from hfbench.environments.probed import Probed, Torch
from hfbench.environments.process_tree import end_tree, marked
from hfbench.environments.remembered import Remembered
from hfbench.jobs.process import signal_name
from hfbench.text import clip, printable
from hfbench.units import show_seconds

CHILD = "probe_child.py"
MARK = b"hfbench-probe:"
LONGEST_ANSWER = 4 << 20
"""Bytes an interpreter may print; one that prints without end is stopped there."""
KEPT_ERRORS = 4096
SHOWN = 160
"""Characters of foreign words in a sentence."""


def probe(environment: Environment, *, again: bool = False) -> Probed:
    """Versions, modules and torch's build of an environment; never an error: `trouble` says what went wrong.

    Remembered until the interpreter or a folder of its packages changes, unless it is to be asked `again`.
    """
    with Remembered() as remembered:
        if not again and (known := remembered.get(environment)) is not None:
            return known
        told = ask(environment)
        if told.answered and not told.trouble:
            remembered.put(environment, told)
        return told


def probe_all(environments: Sequence[Environment], *, again: bool = False) -> list[Probed]:
    """All of them at once, in their order: each waits for its own disk and its own limit."""
    from concurrent.futures import ThreadPoolExecutor

    if not environments:
        return []
    with ThreadPoolExecutor(len(environments)) as pool:
        return list(pool.map(lambda each: probe(each, again=again), environments))


def ask(environment: Environment) -> Probed:
    """The same, asked now."""
    began = time.monotonic()
    variables = marked(foreign_environment())
    source = files("hfbench.environments").joinpath(CHILD).read_text(encoding="utf-8")
    try:
        child = subprocess.Popen(
            [*environment.command, "-c", source],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=variables,
            cwd="/",
            process_group=0,
        )
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return Probed(trouble=f"{environment.command[0]} cannot be started: {reason}")
    try:
        said, errors, ending = _listen(child, began + environment.timeout)
    finally:
        code = end_tree(child, variables)
    told = _understood(said)
    trouble = _trouble(environment, told, said, errors, ending, code)
    return replace(_probed(told), trouble=trouble, seconds=time.monotonic() - began)


def _listen(child: subprocess.Popen[bytes], until: float) -> tuple[bytes, bytes, str]:
    """What the child wrote to stdout and the end of its stderr; why it was not listened to longer, if so."""
    said, errors = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        for stream, kept in ((child.stdout, said), (child.stderr, errors)):
            assert stream is not None, "both are pipes"
            selector.register(stream, selectors.EVENT_READ, kept)
        while selector.get_map():
            ready = selector.select(max(0.0, until - time.monotonic()))
            if not ready:
                return bytes(said), bytes(errors), "time"
            for key, _ in ready:
                piece = os.read(key.fd, 1 << 16)
                if not piece:
                    selector.unregister(key.fileobj)
                key.data.extend(piece)
            del errors[:-KEPT_ERRORS]
            if len(said) > LONGEST_ANSWER:
                return bytes(said), bytes(errors), "size"
            if time.monotonic() > until:
                return bytes(said), bytes(errors), "time"
    try:
        child.wait(max(0.1, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        return bytes(said), bytes(errors), "time"
    return bytes(said), bytes(errors), ""


def _understood(said: bytes) -> dict[str, Any]:
    """The parts of the answer; lines of anybody else are passed over."""
    told: dict[str, Any] = {}
    for line in said.splitlines():
        if line.startswith(MARK):
            try:
                part = json.loads(line.removeprefix(MARK))
            except (ValueError, RecursionError):
                continue
            told |= part if isinstance(part, dict) else {}
    return told


def _probed(told: dict[str, Any]) -> Probed:
    try:
        base = decode(Probed, told.get("base", {}))
        return replace(base, torch=decode(Torch, told["torch"])) if "torch" in told else base
    except (ValueError, TypeError):
        return Probed()


def _trouble(environment: Environment, told: dict[str, Any], said: bytes, errors: bytes, ending: str, code: int) -> str:
    """What went wrong, in a sentence; empty when all of the answer came."""
    if told.get("trouble"):
        return printable(f"torch cannot be imported: {told['trouble']}")
    if told.get("end") and "base" in told:
        return "" if _probed(told).answered else "its answer has another shape than that of this hfbench"
    doing = "while torch was imported" if "base" in told else "before it told its versions"
    last = clip(printable(_last_line(errors) or _last_line(said)), SHOWN, ellipsis="...")
    saying = f": {last}" if last else ""
    if ending == "time":
        return f"it took longer than {show_seconds(environment.timeout)} and was stopped {doing}{saying}"
    if ending == "size":
        return f"it printed more than {LONGEST_ANSWER >> 20} MiB and was stopped: {last}"
    if code < 0:
        return f"{signal_name(-code)} ended it {doing}{saying}"
    if code:
        return f"it ended with status {code} {doing}{saying}"
    return f"it is no Python, or one that does not answer{saying}"


def _last_line(text: bytes) -> str:
    lines = [line for line in text.decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines and not lines[-1].encode().startswith(MARK) else ""
