"""Opening every header of a large checkpoint, its index compared, against a bare JSON parse of the headers alone."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from claims import Claim, cpu, finish, run
from make_big_checkpoint import make

import hfbench
from hfbench.models.checkpoint import open_checkpoint

SHARDS = 163

CLAIM = Claim(
    name="open_checkpoint",
    sentence="opening 90,000 tensors in 163 shards costs at most 1.5 times the CPU of parsing their headers as JSON",
    bound=1.5,
    unit="s CPU",
)


def parse_headers(folder: Path) -> list[Any]:
    """The peer: what the least careful reader of safetensors does."""
    parsed = []
    for path in sorted(folder.glob("*.safetensors")):
        with open(path, "rb") as file:
            parsed.append(json.loads(file.read(int.from_bytes(file.read(8), "little"))))
    return parsed


def main() -> None:
    """Make the checkpoint, measure, keep the record."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "big"
        tensors = make(folder, shards=SHARDS)
        opened = open_checkpoint(folder)
        assert len(opened.columns) == tensors
        assert not opened.problems
        del opened
        record = run(
            CLAIM,
            subject=cpu(lambda: open_checkpoint(folder)),
            peer=cpu(lambda: parse_headers(folder)),
            rounds=15,
            versions={"hfbench": hfbench.__version__},
            notes={"tensors": tensors, "shards": SHARDS},
        )
    finish(record)


if __name__ == "__main__":
    main()
