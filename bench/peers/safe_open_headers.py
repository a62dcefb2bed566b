"""The peer of listing: name, dtype and shape of every tensor as the safetensors library itself tells them."""

from __future__ import annotations

import sys
from pathlib import Path

from safetensors import safe_open

if __name__ == "__main__":
    rows = []
    for path in sorted(Path(sys.argv[1]).glob("*.safetensors")):
        with safe_open(path, framework="np") as opened:
            for name in opened.keys():  # noqa: SIM118 - it is no dictionary
                part = opened.get_slice(name)
                rows.append((name, part.get_dtype(), tuple(part.get_shape())))
    print(len(rows))
