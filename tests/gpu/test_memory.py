"""Peaks of resident memory."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytest.importorskip("torch")

SEEN = """
import json, torch
from hfbench.gpu.memory import forget_peak, peak_memory
def peak(): return peak_memory(torch.device("cpu")).rss_bytes
held = bytearray(200 << 20)
large = peak()
del held
forget_peak()
print(json.dumps([large, peak()]))
"""


def test_a_peak_is_kept_after_the_memory_is_free_until_it_is_forgotten() -> None:
    done = subprocess.run([sys.executable, "-c", SEEN], capture_output=True, text=True, check=True)
    large, small = json.loads(done.stdout)
    assert large > 200 << 20
    assert large - small > 150 << 20
