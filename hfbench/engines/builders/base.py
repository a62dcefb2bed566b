"""What a builder of engines is: it turns one model into files for fixed shapes, and adding one is adding one file."""

from __future__ import annotations

import importlib
import pkgutil
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from hfbench.errors import HfbenchError, UsageError
from hfbench.models.reference import Location
from hfbench.text import did_you_mean

if TYPE_CHECKING:
    from hfbench.engines.manifest import Compat, Layout
    from hfbench.environments import Probed
    from hfbench.gpu.devices import Gpu
    from hfbench.gpu.generate_model import Loaded
    from hfbench.jobs.run import Run


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What an engine is to be. `context` is the length of the cache: prompt and new tokens together."""

    model: str
    builder: str
    batch: int
    min_prompt: int
    max_prompt: int
    context: int
    dtype: str
    """bf16, fp16, fp32, or auto for the checkpoint's."""
    gpu: Gpu | None
    attention: str = "sdpa"
    threads: int = 0
    template: str = ""
    tp: int = 1
    pp: int = 1
    settings: tuple[str, ...] = ()
    """Options of the builder's own, `flag=value` each; only builders that read them take any."""


@dataclass(kw_only=True)
class Making:
    """One build under way: where its files go, who is told, and the model once it is wanted."""

    asked: Asked
    location: Location
    folder: Path
    """Where the files go; it gets its final name when all is done."""
    run: Run
    log: Callable[[str], None]
    """Adds lines to the build log, which stays beside the engine and is shown when the build fails."""
    load: Callable[[], Loaded]
    """The model in this process, read by transformers at the first call."""

    @contextmanager
    def translated(self, found: str) -> Iterator[None]:
        """Turn what a library raises into `FOUND: its reason`, and put all it says into the build log."""
        try:
            yield
        except HfbenchError:
            raise  # our own, or a cancel that arrived here
        except Exception as error:
            from hfbench.gpu.generate_model import first_line

            self.log("".join(traceback.format_exception(error)))
            raise HfbenchError(f"{found}: {first_line(_root_of(error))}", where=self.asked.model) from error


def _root_of(error: BaseException) -> BaseException:
    """What an error was raised from, in the end: exporters wrap it in advice on how to go on."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


@dataclass(frozen=True, kw_only=True)
class Built:
    """What a builder made: all files in the folder. `options` are settings as they were resolved."""

    dtype: str
    options: Mapping[str, str] = field(default_factory=dict)
    argv: tuple[str, ...] = ()
    """The command that built it, where a program of its own did."""
    quantisation: str = "none"
    layout: Layout | None = None
    """None for a single process."""
    compat: Compat | None = None
    """None where nothing was built to be compatible with anything else."""
    environment: Probed | None = None
    """What the environment that built it has; None for this Python. The manifest tells its versions."""


class Builder(Protocol):
    """A way to build engines. A module of this package makes one known by assigning it to BUILDER."""

    @property
    def name(self) -> str: ...
    @property
    def summary(self) -> str:
        """One line for people who choose."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Modules the worker must be able to import."""

    @property
    def runs_with(self) -> tuple[str, ...]:
        """Modules that loading and driving its engines needs."""

    @property
    def extra(self) -> str:
        """The extra of hfbench that installs them."""

    @property
    def auto_dtype(self) -> str:
        """The dtype that `auto` stands for; `auto` itself keeps the checkpoint's."""

    def refuse(self, asked: Asked, location: Location) -> None:
        """UsageError or MissingError for what cannot be built, before anything is loaded or written."""

    def space(self, asked: Asked, weight_bytes: int) -> int:
        """Bytes of disk that a build of a model of that size takes at most."""

    def build(self, making: Making) -> Built:
        """Write the engine's files into the folder; HfbenchError when the model cannot be built."""


@cache
def builders() -> dict[str, Builder]:
    """Every builder by its name: the modules of this package that assign BUILDER."""
    found: dict[str, Builder] = {}
    package = importlib.import_module(__package__)
    for each in sorted(pkgutil.iter_modules(package.__path__), key=lambda module: module.name):
        builder: Any = getattr(importlib.import_module(f"{__package__}.{each.name}"), "BUILDER", None)
        if builder is None:
            continue
        if builder.name in found:
            raise TypeError(f"two builders are called {builder.name}: the second is {each.name}.py")
        found[builder.name] = builder
    return found


def builder_of(name: str) -> Builder:
    """The builder of that name; UsageError naming the others when there is none."""
    known = builders()
    if name not in known:
        raise UsageError(
            f"there is no builder {name!r}",
            where="engine.build",
            remedy=did_you_mean(name, known) or f"the builders are {', '.join(known)}",
        )
    return known[name]
