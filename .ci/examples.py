"""Replays every script of examples/ as it stands, in an empty folder and an empty home, and the sweep as a sweep."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAST = "engine-again.hfb.yaml"
"""Goes on where the example before it ended, once somebody damaged its engine."""


def main() -> int:
    names = sorted(path.name for path in (ROOT / "examples").glob("*.hfb.yaml"))
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        shutil.copytree(ROOT / "examples", here / "examples")
        home = {**os.environ, "HFBENCH_HOME": str(here / "home"), "PYTHONPATH": str(ROOT)}
        runs = [
            ["--script", f"examples/{name}", "--results", f"{name}.jsonl"] for name in sorted(names, key=LAST.__eq__)
        ]
        runs.append(["sweep", "run", "examples/sweep.hfb.yaml"])
        failed = [words for words in runs if replay(words, here, home)]
    for words in failed:
        print(f"examples: failed: hfbench {' '.join(words)}")
    return 1 if failed else 0


def replay(words: Sequence[str], here: Path, home: dict[str, str]) -> int:
    """Run one; what it says on stderr is shown when it does not end well."""
    if LAST in words[1]:
        engine = here / "engines" / "smol" / "engine.pt2"
        os.truncate(engine, engine.stat().st_size - 1)
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "hfbench", *words], cwd=here, env=home, capture_output=True, text=True, check=False
    )
    print(f"examples: {done.returncode} after {time.monotonic() - began:.0f} s: hfbench {' '.join(words)}", flush=True)
    if done.returncode:
        print(done.stderr[-4000:])
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
