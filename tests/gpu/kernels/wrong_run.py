"""Runs spoiled kernels in Triton's interpreter, all in one process, each until a case is refused: one JSON object."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main(folder: Path) -> None:
    from hfbench.codec import encode
    from hfbench.gpu.kernels.interpreted import prepare
    from hfbench.gpu.kernels.loading import load

    told: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*.py")):
        kernel, _ = load(path)
        run = prepare(kernel, path)
        found = told[path.stem] = []
        for shape in kernel.shapes:
            found.append(encode(run(config=kernel.configs[0].label, dtype="fp32", shape=shape)))
            if found[-1]["verdict"] not in ("ok", "inapplicable"):
                break
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
