"""A Python that has torch, transformers and what these depend on, and nothing that hfbench's front ends need."""

from __future__ import annotations

import venv
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FRONT_ENDS = ("pydantic", "rich", "textual")
"""Left out though another package names it: huggingface_hub's command line paints with rich."""
INSTALLED = ("torch", "transformers", "safetensors")


def make_worker_venv(folder: Path, names: Iterable[str] = INSTALLED, modules: Iterable[str] = ()) -> Path:
    """A virtual environment with links to the installed packages of those names and of all they need; its Python.

    `modules` are made there, empty.
    """
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    (site,) = (folder / "lib").glob("python3*/site-packages")
    for found in closure(names):
        link(found, site)
    for name in modules:
        (site / f"{name}.py").touch()
    return folder / "bin" / "python"


def closure(names: Iterable[str]) -> list[Distribution]:
    """The distributions of those names and all they depend on here; extras that nobody asked for are left out."""
    waiting, found = [Requirement(name) for name in names], dict[str, Distribution]()
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if name in found or name in FRONT_ENDS:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:  # a marker holds and nobody installed it: it is not needed to import the rest
            continue
        for line in found[name].requires or ():
            needed = Requirement(line)
            if needed.marker is None or any(needed.marker.evaluate({"extra": each}) for each in ("", *wanted.extras)):
                waiting.append(needed)
    return list(found.values())


def link(found: Distribution, site: Path) -> None:
    """Link what a distribution has at the top of its site-packages into another."""
    for top in {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}:
        source, target = Path(str(found.locate_file(top))), site / top
        if source.exists() and not target.exists():
            target.symlink_to(source)
