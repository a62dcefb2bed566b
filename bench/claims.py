"""Runs a claim: subject and peer measured in turns, every sample kept, the record appended to results/."""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).parent / "results"

Measure = Callable[[], float]
"""Does the thing once and returns what it cost, in the claim's unit."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A sentence that a measurement can refute: median(subject) / median(peer) <= bound.

    Without a peer the bound is absolute: median(subject) <= bound, in `unit`.
    """

    name: str
    sentence: str
    bound: float
    unit: str = "s"


@dataclass(frozen=True, kw_only=True)
class Record:
    """One run of a claim, as it stands in results/."""

    claim: Claim
    date: str
    machine: dict[str, str | int | float]
    versions: dict[str, str]
    subject: list[float]
    peer: list[float]
    value: float
    """The ratio of the medians, or the subject's median when there is no peer."""
    holds: bool
    notes: dict[str, str | int | float] = field(default_factory=dict)


def run(
    claim: Claim,
    subject: Measure,
    peer: Measure | None = None,
    *,
    rounds: int = 9,
    warmup: int = 1,
    versions: Mapping[str, str] | None = None,
    notes: Mapping[str, str | int | float] | None = None,
) -> Record:
    """Measure `rounds` times after `warmup` unkept rounds; prints the verdict and appends the record."""
    samples: dict[str, list[float]] = {"subject": [], "peer": []}
    for turn in range(warmup + rounds):
        pair = [("subject", subject), *([("peer", peer)] if peer else [])]
        for name, measure in pair if turn % 2 else reversed(pair):  # neither always runs on a warmer machine
            cost = measure()
            if turn >= warmup:
                samples[name].append(cost)
    value = statistics.median(samples["subject"])
    if peer:
        value /= statistics.median(samples["peer"])
    record = Record(
        claim=claim,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=machine(),
        versions=dict(versions or {}),
        value=value,
        holds=value <= claim.bound,
        notes=dict(notes or {}),
        **samples,
    )
    keep(record)
    print(verdict(record))
    return record


def cpu(call: Callable[[], object]) -> Measure:
    """Measures CPU seconds of this process and of children it has waited for; dropping the result is not timed."""

    def spent() -> float:
        usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)

    def measure() -> float:
        before = spent()
        result = call()
        after = spent()
        del result
        return after - before

    return measure


def wall(call: Callable[[], object]) -> Measure:
    """Measures wall seconds."""

    def measure() -> float:
        before = time.perf_counter()
        call()
        return time.perf_counter() - before

    return measure


def verdict(record: Record) -> str:
    """One line: what was claimed, what came out."""
    unit = "x" if record.peer else f" {record.claim.unit}"
    word = "holds" if record.holds else "FAILS"
    return f"{word}: {record.claim.sentence}: {record.value:.3g}{unit} (bound {record.claim.bound:g}{unit})"


def keep(record: Record) -> Path:
    """Append the record to results/<name>.json."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{record.claim.name}.json"
    records = json.loads(path.read_text()) if path.exists() else []
    path.write_text(json.dumps([*records, asdict(record)], indent=1) + "\n")
    return path


def machine() -> dict[str, str | int | float]:
    """What the numbers depend on."""
    cpuinfo = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in cpuinfo if line.startswith("model name")), "unknown")
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load_1m": round(os.getloadavg()[0], 2),
    }


def finish(*records: Record) -> None:
    """End a bench script: exit code 1 when a claim fails."""
    sys.exit(0 if all(record.holds for record in records) else 1)
