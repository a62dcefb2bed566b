"""docs/graphs.md names every fault, every mode and every tolerance there is."""

from __future__ import annotations

import math
import re
from pathlib import Path

from hfbench.actions.bench_generate import Generate
from hfbench.gpu.graphs.faults import Fault
from hfbench.gpu.graphs.tolerance import TOLERANCES

PAGE = (Path(__file__).parents[3] / "docs" / "graphs.md").read_text(encoding="utf-8")


def test_the_table_of_faults_is_whole() -> None:
    assert {f"| `{fault}` |" for fault in Fault} <= {
        row[: row.index("|", 1) + 1] for row in re.findall(r"^\| `.*", PAGE, re.M)
    }


def test_the_table_of_modes_is_whole() -> None:
    modes = Generate.spec.param("mode").choices  # type: ignore[attr-defined]
    assert all(f"| `{mode}` |" in PAGE for mode in modes)


def test_the_tolerances_are_those_that_count() -> None:
    for dtype, allowed in TOLERANCES.items():
        eager, no_cache = (int(math.log2(each)) for each in (allowed.eager, allowed.no_cache))
        assert f"| {dtype} | 2^{eager} | 2^{no_cache} |" in PAGE
