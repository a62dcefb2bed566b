"""One run of bench/compare.py, in a process of its own: times of hashing so many bytes, and what the neighbours did."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
import time

from hfbench.gpu.timing.machine import Watch

WARM_UP = 10


def timed(buffer: bytes) -> float:
    """Seconds of one call."""
    began = time.perf_counter()
    hashlib.sha256(buffer)
    return time.perf_counter() - began


if __name__ == "__main__":
    size, samples = map(int, sys.argv[1:])
    buffer = bytes(size)
    for _ in range(WARM_UP):
        timed(buffer)
    watch = Watch()
    values = [timed(buffer) for _ in range(samples)]
    print(json.dumps({"values": values, "company": dataclasses.asdict(watch.company())}))
