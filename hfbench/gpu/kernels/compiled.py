"""One configuration of a kernel compiled for one architecture, with no GPU. For child processes only."""

from __future__ import annotations

import contextlib
import io
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from triton import compile as compile_kernel
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import get_ptxas
from triton.compiler import ASTSource

from hfbench.errors import MissingError
from hfbench.gpu.kernels.architectures import WARP
from hfbench.gpu.kernels.declaration import Kernel, specialise
from hfbench.gpu.kernels.loading import LONGEST, place

_REGISTERS = re.compile(r"Used (\d+) registers")
_STORES = re.compile(r"(\d+) bytes spill stores")
_LOADS = re.compile(r"(\d+) bytes spill loads")
_TARGET = re.compile(r"^\.target\s+(sm_\w+)", re.MULTILINE)
MATRIX_INSTRUCTIONS = ("tcgen05.mma", "wgmma.mma", "mma.sync")
"""How a product of tiles reaches the tensor cores, the newest first."""


@dataclass(frozen=True, kw_only=True)
class Assembled:
    """What `ptxas -v` says, for each thread: registers, and bytes stored and loaded again for want of them."""

    registers: int
    spills: int
    spill_loads: int


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """What one compilation came to: figures, or `failed` in a sentence."""

    assembled: Assembled | None = None
    """With the assembler's own defaults, as `ptxas -v FILE` gives them to anybody."""
    loaded: Assembled | None = None
    """With the options this Triton assembles by: the code a GPU would run."""
    shared_bytes: int = 0
    tensor_columns: int = 0
    warps: int = 0
    matrix: str = ""
    failed: str = ""
    late: bool = False
    """The assembler ran out of its time."""
    seconds: float = 0.0


def prepare(kernel: Kernel, path: Path) -> Callable[..., Compiled]:
    """What compiles a configuration; MissingError when this Triton finds no assembler."""
    assembler_here()
    return partial(measure, kernel, path)


def assembler_here() -> None:
    """MissingError when this Triton finds no assembler."""
    for number in (80, 100):
        try:
            path = _assembler(number)
        except (RuntimeError, OSError) as error:
            path = Path(str(error))
        if not path.is_file():
            raise MissingError(
                "Triton finds no ptxas, the assembler that its own package brings",
                remedy="install triton from PyPI, or let TRITON_PTXAS_PATH and TRITON_PTXAS_BLACKWELL_PATH name one",
            )


def measure(kernel: Kernel, path: Path, *, config: str, dtype: str, number: int) -> Compiled:
    """Compile for `sm_NUMBER` and assemble. A kernel that does not compile is an answer, not an error."""
    chosen, began, log = kernel.config(config), time.perf_counter(), io.StringIO()
    signature = specialise(kernel, chosen, dtype)
    source = ASTSource(kernel.fn, signature=signature.types, constexprs=signature.constants, attrs=signature.attributes)
    options = {"num_warps": chosen.num_warps, "num_stages": chosen.num_stages, **chosen.options}
    try:
        with contextlib.redirect_stdout(log):  # where Triton prints what the assembler says
            found = compile_kernel(source, target=GPUTarget("cuda", number, WARP), options=options)
        assembled = _assemble(found.asm["ptx"], number)
    except Exception as error:  # Triton raises what it likes
        late = f"error code -{int(signal.SIGXCPU)}" in str(error)
        return Compiled(failed=_sentence(error, path), late=late, seconds=time.perf_counter() - began)
    return Compiled(
        assembled=assembled,
        loaded=_read(log.getvalue()),
        shared_bytes=found.metadata.shared,
        tensor_columns=getattr(found.metadata, "tmem_size", None) or 0,
        warps=found.metadata.num_warps,
        matrix=next((each for each in MATRIX_INSTRUCTIONS if each in found.asm["ptx"]), ""),
        seconds=time.perf_counter() - began,
    )


def _assembler(number: int) -> Path:
    """The assembler for an architecture; Triton 3.4 has one for all."""
    try:
        return Path(get_ptxas(number).path)
    except TypeError:
        return Path(get_ptxas().path)


def _assemble(ptx: str, number: int) -> Assembled | None:
    """Run `ptxas -v` as it is."""
    target = _TARGET.search(ptx)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "kernel.ptx"
        source.write_text(ptx)
        command = [str(_assembler(number)), "-v", str(source), "-o", str(source.with_suffix(".cubin"))]
        if target:
            command.append(f"--gpu-name={target[1]}")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip() or "nothing").splitlines()[-1]
        raise RuntimeError(f"ptxas failed with error code {done.returncode}: {said}")
    return _read(done.stderr)


def _read(log: str) -> Assembled | None:
    """The figures of the last function in what ptxas wrote; None when there are none."""
    found = [pattern.findall(log) for pattern in (_REGISTERS, _STORES, _LOADS)]
    if not all(found):
        return None
    registers, stores, loads = (int(each[-1]) for each in found)
    return Assembled(registers=registers, spills=stores, spill_loads=loads)


def _sentence(error: BaseException, path: Path) -> str:
    """What is wrong, from the innermost error that says something, with the innermost line of the file."""
    chain = list(_innermost_first(error))
    said = next(filter(None, (_said(each) for each in chain)), type(error).__name__)
    at = next(filter(None, (_line(each, path) for each in chain)), "")
    return f"{said[:LONGEST]}{f', at line {at}' if at else ''}"


def _said(error: BaseException) -> str:
    """Its message on one line; Triton puts the source before it, and names only the place of what wraps another."""
    words = getattr(error, "error_message", "") if hasattr(error, "error_message") else str(error)
    return next((line.strip() for line in str(words or "").splitlines() if line.strip()), "")


def _line(error: Any, path: Path) -> str:
    """The line of the file an error is about: Triton counts from the first line of a function's source."""
    node, source = getattr(error, "node", None), getattr(error, "src", None)
    if isinstance(source, str) and node is not None and hasattr(node, "lineno"):
        text = path.read_text("utf-8", "replace")
        begin = text.find(source)
        return str(text.count("\n", 0, begin) + node.lineno) if begin >= 0 else ""
    where = place(error, path).removeprefix(f"{path}:")
    return where if where.isdigit() else ""


def _innermost_first(error: BaseException) -> list[BaseException]:
    chain = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    return chain[::-1]
