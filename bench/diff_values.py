"""Comparing the values of two checkpoints, against reading both files and comparing their bytes as cmp does."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from claims import Claim, cpu, finish, run

import hfbench
from hfbench.models.diff.compare import diff_models

TENSORS, ROWS, COLUMNS = 32, 2048, 2048
"""Two files of 256 MiB of BF16."""

PIECE = 2**20

EQUAL = Claim(
    name="diff-equal",
    sentence="values that are equal are compared with at most 1.3 times the CPU of comparing both files byte by byte",
    bound=1.3,
    unit="s CPU",
)
APART = Claim(
    name="diff-apart",
    sentence="values that all differ are measured with at most 20 times the CPU of comparing both files byte by byte",
    bound=20.0,
    unit="s CPU",
)
MEMORY = Claim(
    name="diff-memory",
    sentence="measuring values that all differ holds at most 300 MiB, and less than the files",
    bound=128.0,
    unit="MiB",
)

CHILD = """
import resource, sys
from hfbench.models.diff.compare import diff_models
found = diff_models(*sys.argv[1:], values=True)
assert found.counts["differ"] == len(found.values)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def write(path: Path, seed: int) -> Path:
    """A checkpoint of pseudo-random finite values."""
    import numpy as np

    size = ROWS * COLUMNS * 2
    header = {
        f"layers.{n}.weight": {"dtype": "BF16", "shape": [ROWS, COLUMNS], "data_offsets": [n * size, (n + 1) * size]}
        for n in range(TENSORS)
    }
    text = json.dumps(header).encode()
    random = np.random.default_rng(seed)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _ in range(TENSORS):
            values = random.standard_normal(ROWS * COLUMNS, dtype=np.float32) * np.float32(0.02)
            file.write((values.view("<u4") >> 16).astype("<u2").tobytes())
    return path


def compare_bytes(a: Path, b: Path) -> bool:
    """The peer: both files read in pieces that are compared."""
    same = True
    with a.open("rb", buffering=0) as one, b.open("rb", buffering=0) as other:
        while left := one.read(PIECE):
            same = (left == other.read(PIECE)) and same
    return same


def peak(a: Path, b: Path) -> float:
    """MiB at most held by a process that measures."""
    ended = subprocess.run([sys.executable, "-c", CHILD, str(a), str(b)], capture_output=True, text=True, check=True)
    return float(ended.stdout)


def main() -> None:
    """Write the files, measure, keep the records."""
    with tempfile.TemporaryDirectory() as scratch:
        a, b, c = (write(Path(scratch) / f"{n}.safetensors", seed) for n, seed in enumerate((1, 1, 2)))
        equal = diff_models(str(a), str(b), values=True)
        assert equal.counts["equal"] == TENSORS
        told = {"versions": {"hfbench": hfbench.__version__}, "notes": {"bytes": a.stat().st_size}}
        records = [
            run(
                EQUAL,
                subject=cpu(lambda: diff_models(str(a), str(b), values=True)),
                peer=cpu(lambda: compare_bytes(a, b)),
                rounds=9,
                **told,  # type: ignore[arg-type]
            ),
            run(
                APART,
                subject=cpu(lambda: diff_models(str(a), str(c), values=True)),
                peer=cpu(lambda: compare_bytes(a, c)),
                rounds=5,
                **told,  # type: ignore[arg-type]
            ),
            run(MEMORY, subject=lambda: peak(a, c), rounds=3, **told),  # type: ignore[arg-type]
        ]
    finish(*records)


if __name__ == "__main__":
    main()
