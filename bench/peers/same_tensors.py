"""Whether two files of torch.save hold the same tensors: `same_tensors.py ONE OTHER`, as torch itself reads them."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import torch


def tensors(path: str) -> dict[str, Any]:
    """The tensors below `model`, mapped and not read."""
    with torch.serialization.safe_globals([argparse.Namespace]):
        held = torch.load(path, map_location="cpu", mmap=True, weights_only=True)["model"]
    return {name: each for name, each in held.items() if isinstance(each, torch.Tensor)}


if __name__ == "__main__":
    one, other = map(tensors, sys.argv[1:3])
    if one.keys() != other.keys():
        sys.exit(f"tensors that only one holds: {sorted(one.keys() ^ other.keys())[:4]}")
    for name in one:
        bits = [each.contiguous().view(torch.uint8) for each in (one[name], other[name])]
        if one[name].dtype != other[name].dtype or not torch.equal(*bits):
            sys.exit(f"{name} differs")
    print(len(one))
