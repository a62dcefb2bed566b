"""Rows of earlier runs alone: nothing is compiled and no file is loaded for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernel_files import COPY

from hfbench.errors import UsageError
from hfbench.gpu.kernels.architectures import find_architecture
from hfbench.gpu.kernels.loading import find
from hfbench.gpu.kernels.static import analyse

pytest.importorskip("triton")

HOPPER, AMPERE = find_architecture("sm_90"), find_architecture("sm_80")


def test_only_what_an_earlier_run_compiled_is_told(tmp_path: Path) -> None:
    path = tmp_path / "copy.py"
    path.write_text(COPY)
    nothing = analyse(find(str(path)), [HOPPER], compiles=False)
    assert (nothing.kernel, nothing.triton, nothing.rows) == ("copy", "", ())
    compiled = analyse(find(str(path)), [HOPPER], config="BLOCK=64")
    kept = analyse(find(str(path)), [AMPERE, HOPPER], compiles=False)
    assert [(row.config, row.arch, row.cached) for row in kept.rows] == [(compiled.rows[0].config, "sm_90", True)]
    assert kept.rows[0].registers == compiled.rows[0].registers
    with pytest.raises(UsageError, match=r"takes fp32, fp16"):
        analyse(find(str(path)), [HOPPER], dtypes=("int8",), compiles=False)
    path.write_text(f"{COPY}\nraise SystemExit(3)\n")  # another file, which nobody loads
    assert analyse(find(str(path)), [HOPPER], compiles=False).rows == ()
