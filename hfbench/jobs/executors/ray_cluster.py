"""What a Ray cluster has, and what it lacks for a job."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hfbench.beside import python_path
from hfbench.codec import decode, encode
from hfbench.errors import MissingError, UsageError
from hfbench.jobs.executors.base import ExecutorTrouble, Need
from hfbench.jobs.executors.spec import Where
from hfbench.units import GIB, KIB, MIB, TIB, show_bytes

NAMESPACE = "hfbench"
CLIENT = "ray://"
"""Begins the address of a head that is spoken to from anywhere; `auto` is the cluster this machine is a node of."""
PATIENCE = 20.0
"""Seconds for the question what a cluster has: Ray's client takes some to connect."""
TRIES = 2
"""How often it is asked: now and then a head does not bring up what was to answer."""
IMPATIENT = {
    "RAY_CLIENT_RECONNECT_GRACE_PERIOD": "3",
    "RAY_CLIENT_INITIAL_CONNECTION_TIMEOUT_S": "3",
    "RAY_CLIENT_MAX_CONNECTION_TIMEOUT_S": "3",
}
"""Seconds for which Ray's client tries again before it says that its head is gone: a keeper is patient by itself."""
SHOWN = 5
"""Kinds of nodes told."""
CONNECTING = 5.0
"""Seconds a head may take to accept a connection."""
MEMORY = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)B?", re.IGNORECASE)
SIZES = {"": 1, "K": KIB, "M": MIB, "G": GIB, "T": TIB}
MARK = "hfbench-ray:"
"""Begins the line with the answer; whatever else is printed is Ray's."""


class NobodyListens(ExecutorTrouble):
    """There is no such host, or nothing at its port: a slip of whoever wrote the address, unless it answered before."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """A live node: what it has in all."""

    name: str
    cpus: float = 0
    gpus: float = 0
    memory: float = 0
    """Bytes."""

    def can(self, wanted: Wanted) -> bool:
        """Whether it could ever run such a job."""
        return self.cpus >= wanted.cpus and self.gpus >= wanted.gpus and self.memory >= wanted.memory


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a job takes of one node while it runs."""

    cpus: int
    gpus: int
    memory: int
    """Bytes; 0 is none asked for."""

    def __str__(self) -> str:
        memory = f" and {show_bytes(self.memory)} of memory" if self.memory else ""
        return f"{_count(self.cpus, 'CPU')}, {_count(self.gpus, 'GPU')}{memory}"


def wanted(where: Where, need: Need) -> Wanted:
    """What a job asks of a node: by the settings of the place, else by its action. UsageError for a bad memory."""
    settings = where.settings
    memory = 0
    if settings.memory:
        if not (match := MEMORY.fullmatch(settings.memory.strip())):
            raise UsageError(
                f"memory is {settings.memory!r}", where=where.text, remedy="write bytes, or for example 16G"
            )
        memory = int(float(match[1]) * SIZES[match[2].upper()])
    return Wanted(cpus=settings.cpus or 1, gpus=settings.gpus or need.gpus, memory=memory)


def lacking(nodes: Sequence[Node], wishes: Iterable[Wanted]) -> str:
    """Why the cluster can never run one of these, with what it has; empty when it can run all."""
    for wish in dict.fromkeys(wishes):
        if not any(node.can(wish) for node in nodes):
            return f"a job needs {wish} on one node, and {inventory(nodes, memory=wish.memory > 0)}"
    return ""


def inventory(nodes: Sequence[Node], *, memory: bool = False) -> str:
    """`the cluster has 2 nodes with 2 CPUs, 0 GPUs; 2 CPUs, 1 GPU`; with their memory where that matters."""
    if not nodes:
        return "the cluster has no live node"
    kinds = dict.fromkeys(  # each kind of node once
        f"{_count(node.cpus, 'CPU')}, {_count(node.gpus, 'GPU')}"
        + (f" and {show_bytes(node.memory)} of memory" if memory else "")
        for node in sorted(nodes, key=lambda node: (node.gpus, node.cpus, node.memory))
    )
    more = f"; and {len(kinds) - SHOWN} other kinds" if len(kinds) > SHOWN else ""
    return f"the cluster has {_count(len(nodes), 'node')} with {'; '.join(list(kinds)[:SHOWN])}{more}"


def ask(where: Where) -> tuple[Node, ...]:
    """The live nodes of a cluster, asked in a child, as Ray is no library for a front end.

    MissingError without Ray or with another version of it than the cluster's, ExecutorTrouble when there is no answer.
    """
    knock(where)
    for _ in range(TRIES):
        with contextlib.suppress(subprocess.TimeoutExpired):
            return _ask_once(where)
    waited = TRIES * PATIENCE
    raise ExecutorTrouble(f"the cluster does not answer within {waited:.0f} seconds", where=where.text)


def _ask_once(where: Where) -> tuple[Node, ...]:
    words = [sys.executable, "-P", "-c", "from hfbench.jobs.executors.ray_cluster import main; main()", where.target]
    env = {**os.environ, "PYTHONPATH": python_path()}
    done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=PATIENCE, check=False)
    for line in done.stdout.splitlines():
        if line.startswith(MARK):
            told = json.loads(line.removeprefix(MARK))
            if "trouble" in told:
                raise ExecutorTrouble(told["trouble"], where=where.text)
            if "missing" in told:
                raise MissingError(told["missing"], where=where.text, remedy=told["remedy"])
            return tuple(decode(Node, each) for each in told["nodes"])
    last = (done.stderr.strip().splitlines() or [f"it exited with status {done.returncode}"])[-1]
    raise ExecutorTrouble(f"the cluster was asked in vain: {last}", where=where.text)


def main() -> None:
    """In the child: answer for the address that is given."""
    told: dict[str, Any]
    try:
        ray = connect(Where(kind="ray", target=sys.argv[1], text=sys.argv[1]))
        told = {"nodes": encode(nodes(ray))}
    except MissingError as error:
        told = {"missing": error.found, "remedy": error.remedy}
    except ExecutorTrouble as error:
        told = {"trouble": error.found}
    sys.stdout.write(f"\n{MARK}{json.dumps(told)}\n")
    sys.stdout.flush()
    os._exit(0)  # Ray's own way out takes a second


def knock(where: Where) -> None:
    """ExecutorTrouble at once where there is no answer, NobodyListens where there can be none: Ray's client tries for
    a quarter of a minute."""
    if where.target.startswith(CLIENT):
        host, _, port = where.target.removeprefix(CLIENT).rstrip("/").rpartition(":")
        if not (host and port.isdecimal() and int(port) < 65536):
            raise UsageError(
                f"{where.text!r} is no address of a Ray cluster", where="on", remedy="write ray://HOST:PORT"
            )
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECTING).close()
        except OSError as error:
            kind = NobodyListens if isinstance(error, ConnectionRefusedError | socket.gaierror) else ExecutorTrouble
            why = error.strerror or "no answer"
            raise kind(f"Ray's head cannot be reached: {why.lower()}", where=where.text) from error


def connect(where: Where) -> Any:
    """Ray, connected to a cluster: errors as of `ask`."""
    target, text = where.target, where.text
    for name, seconds in IMPATIENT.items():
        os.environ.setdefault(name, seconds)
    try:
        import ray

        if target.startswith(CLIENT) and importlib.util.find_spec("grpc") is None:
            raise ModuleNotFoundError("what Ray's client is made of", name="grpc")
    except ImportError as error:
        remedy = 'install "ray[client]" in the version of the cluster'
        raise MissingError(f"this Python lacks {error.name}", where=text, remedy=remedy) from error
    try:
        ray.init(target, namespace=NAMESPACE, log_to_driver=False, logging_level="error")
    except Exception as error:
        with contextlib.suppress(Exception):
            ray.shutdown()
        raise _translated(error, text) from error
    return ray


def nodes(ray: Any) -> tuple[Node, ...]:
    """The live nodes of the cluster that `ray` is connected to."""
    return tuple(_node(each) for each in ray.nodes() if each.get("Alive"))


def _node(told: Mapping[str, Any]) -> Node:
    has = told.get("Resources") or {}
    name = f"{told.get('NodeManagerHostname') or ''}/{str(told.get('NodeID') or '')[:6]}"
    return Node(name=name, cpus=has.get("CPU", 0), gpus=has.get("GPU", 0), memory=has.get("memory", 0))


def _translated(error: Exception, text: str) -> MissingError | ExecutorTrouble:
    """Ray's words as a sentence: another version is a refusal, anything else may pass."""
    words = " ".join(str(error).split())
    if "version mismatch" in words.lower():
        remedy = "install the cluster's version of Ray in the cluster's version of Python"
        return MissingError(f"another version than the cluster's: {words[:300]}", where=text, remedy=remedy)
    if isinstance(error, (ConnectionError, TimeoutError)):
        return ExecutorTrouble("no Ray answers there", where=text)
    return ExecutorTrouble(f"Ray cannot be reached: {type(error).__name__}: {words[:300]}", where=text)


def _count(number: float, what: str) -> str:
    return f"{number:g} {what}{'' if number == 1 else 's'}"
