"""Machines as data: one told to a file, for engines to be checked against elsewhere, and one with facts supposed."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path

import hfbench
from hfbench.codec import decode
from hfbench.engines.form import UTC as UTC_TIME
from hfbench.engines.form import at_least, fault_in, matching
from hfbench.engines.machine import Machine, level_of, read_machine
from hfbench.errors import HfbenchError, UsageError
from hfbench.models.json_text import JsonError, read_object
from hfbench.text import did_you_mean

SCHEMA = 1
"""Counts up when a reader of the older form would misread the newer one."""
LARGEST = 2**20
AGAIN = "on that machine: hfbench engine machine --json > FILE"

SUPPOSED = (
    *("python", "torch", "cuda", "tensorrt", "tensorrt_llm", "driver", "nccl", "triton", "transformers"),
    *("onnxruntime", "openvino", "abi", "platform", "machine", "cpu", "isa"),
)
"""Facts that can be supposed: the texts of a machine, and `isa`, features with spaces between them, or those
that are taken away: `isa=-avx512* -amx*`."""


@dataclass(frozen=True, kw_only=True)
class Described:
    """A machine as a file tells it."""

    hfbench_machine: int = at_least(1)
    """Schema of the file."""
    host: str
    told: str = matching(UTC_TIME)
    hfbench: str
    machine: Machine


def describe_machine(environment: str = "") -> Described:
    """This machine, with the versions of this Python or of an environment, which is asked where it is not known."""
    probed = None
    if environment:
        from hfbench.environments import find, probe

        probed = probe(find(environment))
        probed.require_answer(environment)
    return Described(
        hfbench_machine=SCHEMA,
        host=socket.gethostname(),
        told=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        hfbench=hfbench.__version__,
        machine=read_machine(environment=probed, name=environment),
    )


def read_described(path: Path) -> Described:
    """The machine in a file; HfbenchError says what keeps it from being one."""
    try:
        data = read_object(path, path.parent, LARGEST).value
    except JsonError as error:
        raise HfbenchError(error.found, where=path, remedy=error.remedy or AGAIN) from None
    schema = data.get("hfbench_machine")
    if schema is None:
        raise UsageError("describes no machine", where=path, remedy=AGAIN)
    if type(schema) is int and schema > SCHEMA:
        found = f"is of schema {min(schema, 10**9)}, this hfbench reads up to {SCHEMA}"
        raise HfbenchError(found, where=path, remedy="use a newer hfbench")
    if fault := fault_in(Described, data):
        raise HfbenchError(fault, where=path, remedy=AGAIN)
    return decode(Described, data)


def supposed(machine: Machine, facts: Sequence[str]) -> Machine:
    """A machine with facts in place of its own, each `NAME=VALUE`; UsageError offers the nearest name."""
    versions = machine.versions
    for fact in facts:
        name, equals, value = fact.partition("=")
        name, value = name.strip().replace("-", "_"), value.strip()
        if name not in SUPPOSED:
            remedy = did_you_mean(name, SUPPOSED) or f"facts are {', '.join(SUPPOSED)}"
            raise UsageError(f"nothing of a machine is called {name!r}", where="suppose", remedy=remedy)
        if not equals:
            raise UsageError(f"{fact!r} supposes no value", where="suppose", remedy=f"write for example {name}=2.9.1")
        if name == "isa":
            features = _features(versions.isa, value.split())
            versions = replace(versions, isa=features, isa_level=level_of(features))
        else:
            versions = replace(versions, **{name: value})  # type: ignore[arg-type]
    return replace(machine, versions=versions)


def _features(own: tuple[str, ...], words: Sequence[str]) -> tuple[str, ...]:
    """The features that are named, or the machine's own without those behind a `-`."""
    without = [word.removeprefix("-") for word in words if word.startswith("-")]
    named = own if without and len(without) == len(words) else [word for word in words if not word.startswith("-")]
    return tuple(sorted(each for each in named if not any(fnmatchcase(each, pattern) for pattern in without)))
