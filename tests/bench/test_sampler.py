"""The sampler's own CPU, over a short while; `bench/sampler.py` measures a minute."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
MEASURE = """
import sys
from pathlib import Path
import sampler
print(*sampler.burdens(sampler.build(Path(sys.argv[1])), window=6.0, windows=1))
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc to build the NVML that plays a part")
def test_sampling_eight_cards_costs_next_to_nothing(tmp_path: Path) -> None:
    """A fifth of a percent where it was measured; five percent would be another kind of sampler."""
    words = [sys.executable, "-c", MEASURE, str(tmp_path)]
    done = subprocess.run(words, cwd=BENCH, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.05
