"""From a name or a path to a kernel: the files that are shipped, what is wrong with a file, and its declaration."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import stat
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from hfbench.errors import HfbenchError, MissingError, UsageError
from hfbench.gpu.kernels.declaration import Kernel
from hfbench.gpu.kernels.inspecting import only_declared
from hfbench.paths import expand
from hfbench.text import did_you_mean

LIBRARY = Path(__file__).parent / "library"
LARGEST_FILE = 4 * 2**20
"""Bytes of a kernel file; no source is longer."""
LONGEST = 300
"""Characters kept of what an error says."""


class BrokenKernel(HfbenchError):
    """A kernel file that cannot be used: one sentence, with the line."""


@dataclass(frozen=True, kw_only=True)
class KernelFile:
    """A file that can be parsed. `name` is that of the file, `summary` the first line of its docstring."""

    name: str
    path: Path
    summary: str
    digest: str
    """SHA-256 of its bytes."""


def shipped() -> dict[str, Path]:
    """The files hfbench brings, by name."""
    return {path.stem: path for path in sorted(LIBRARY.glob("*.py")) if not path.stem.startswith("_")}


def find(text: str) -> KernelFile:
    """The file of that name or path, parsed. UsageError when there is none, BrokenKernel when it is no Python."""
    if found := shipped().get(text):
        return read(found)
    path = expand(text)
    if text.endswith(".py") or "/" in text or path.is_file():
        return read(path)
    hint = did_you_mean(text, shipped()) or f"known: {', '.join(shipped())}; or give the path of a file"
    raise UsageError(f"there is no kernel {text[:80]!r}", remedy=hint)


def read(path: Path) -> KernelFile:
    """The file, parsed and not run. UsageError when it cannot be read, BrokenKernel with the line that is wrong."""
    try:
        if path.is_dir():
            raise UsageError("is a folder", where=path, remedy="give the path of a Python file")
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # a pipe would be waited for
                raise UsageError("is not a plain file", where=path, remedy="give the path of a Python file")
            source = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=path) from None
    except ValueError:  # NUL in a name
        raise UsageError("cannot be read: no file has such a name", where=path) from None
    if len(source) > LARGEST_FILE:
        raise UsageError(f"is larger than {LARGEST_FILE:,} bytes", where=path, remedy="give the path of a Python file")
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        line = f"{path}:{error.lineno}" if error.lineno else path
        raise BrokenKernel(f"is no Python: {error.msg}", where=line) from None
    except (ValueError, RecursionError, MemoryError) as error:  # NUL bytes; what no parser follows
        raise BrokenKernel(f"is no Python: {error or type(error).__name__}", where=path) from None
    summary = (ast.get_docstring(tree) or "").partition("\n")[0]
    return KernelFile(name=path.stem, path=path.absolute(), summary=summary, digest=hashlib.sha256(source).hexdigest())


def load(path: Path) -> tuple[Kernel, dict[str, str]]:
    """Run the file and take its `KERNEL`, or the one function it decorates, `hfbench.gpu.kernel` being the decorator.

    Also SHA-256 of the modules beside it that it imports, by path.

    Only for processes that may come to harm. BrokenKernel in one sentence; MissingError for a package that is not
    installed.
    """
    before = set(sys.modules)
    module = _module(path)
    sys.path.append(str(path.parent))  # last: a neighbour hides no package
    try:
        sys.modules[module.__name__] = module
        assert module.__spec__
        assert module.__spec__.loader
        with only_declared():
            module.__spec__.loader.exec_module(module)
    except SyntaxError as error:
        raise BrokenKernel(f"is no Python: {error.msg}", where=f"{path}:{error.lineno}") from None
    except ModuleNotFoundError as error:
        lacking = (error.name or "").partition(".")[0]
        if lacking in ("triton", "torch"):
            raise _lacking(lacking) from None
        raise BrokenKernel(told(error), where=place(error, path)) from None
    except SystemExit as error:
        raise BrokenKernel(
            f"ends Python with status {error.code} when it is loaded", where=place(error, path)
        ) from None
    except Exception as error:
        raise BrokenKernel(told(error), where=place(error, path)) from None
    return _declared(module, path), _neighbours(path, set(sys.modules) - before)


def told(error: BaseException) -> str:
    """An error on one line of bounded length."""
    first = (str(error).strip() or "no message").splitlines()[0]
    return f"{type(error).__name__}: {first}"[:LONGEST]


def place(error: BaseException, path: Path) -> str:
    """`FILE:LINE` of the innermost frame in the file, else the file."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{path}:{lines[-1]}" if lines else str(path)


def _lacking(package: str) -> MissingError:
    extra = "torch,triton" if package == "torch" else "triton"
    return MissingError(
        f"needs {package}, which this Python lacks", remedy=f"install it with: pip install 'hfbench[{extra}]'"
    )


def _module(path: Path) -> ModuleType:
    """An empty module for the file; Triton reads the sources of functions by its path."""
    spec = importlib.util.spec_from_file_location(f"hfbench_kernel_{path.stem}", path)
    if spec is None:
        raise BrokenKernel("its name does not end in .py", where=path)
    return importlib.util.module_from_spec(spec)


def _declared(module: ModuleType, path: Path) -> Kernel:
    kernel: Any = getattr(module, "KERNEL", None)
    here = path.absolute()
    decorated = {id(each): each for each in vars(module).values() if _decorated_in(each) == here}
    if kernel is None and len(decorated) > 1:
        names = ", ".join(each.name for each in decorated.values())
        raise BrokenKernel(f"declares {names}", where=path, remedy="call the one that is meant KERNEL")
    if kernel is None and decorated:
        (kernel,) = decorated.values()
    if kernel is None:
        raise BrokenKernel(
            "declares no kernel", where=path, remedy="add KERNEL = Kernel(...) from hfbench.gpu.kernels.declaration"
        )
    if not isinstance(kernel, Kernel):
        raise BrokenKernel(f"KERNEL is a {type(kernel).__name__}, no Kernel", where=path)
    return kernel


def _decorated_in(value: Any) -> Path | None:
    """Where the function is written that `hfbench.gpu.kernel` made of this kernel; None for all else."""
    file = getattr(value, "file", None) if isinstance(value, Kernel) else None
    return file if isinstance(file, Path) else None


def _neighbours(path: Path, loaded: set[str]) -> dict[str, str]:
    """Digests of modules that came with the file and lie below its folder, installed packages left out."""
    found = {}
    for name in loaded:
        file = getattr(sys.modules.get(name), "__file__", None)
        if not isinstance(file, str) or Path(file) == path or "site-packages" in file or "dist-packages" in file:
            continue
        if Path(file).is_relative_to(path.parent) and not Path(file).is_relative_to(sys.prefix):
            found[file] = hashlib.sha256(Path(file).read_bytes()).hexdigest()
    return found
