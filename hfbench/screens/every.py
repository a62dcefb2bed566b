"""All screens there are: those behind digit keys by name, and whatever has keys of its own."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from textual.binding import Binding

from hfbench.every_screen import MAIN
from hfbench.screens.base import BenchScreen


def main_screen(name: str) -> type[BenchScreen]:
    """The screen behind a digit key, by name; only its own module is imported."""
    module, _, kind = MAIN[name].partition(":")
    found: type[BenchScreen] = getattr(import_module(f"hfbench.screens.{module}"), kind)
    return found


def holders() -> tuple[type, ...]:
    """Screens, tabs and widgets whose keys a key map may change."""
    from hfbench.screens.cache_page import CacheRepoScreen
    from hfbench.screens.compare import CompareScreen
    from hfbench.screens.convert import ConvertScreen
    from hfbench.screens.diff import TABS as DIFF_TABS
    from hfbench.screens.diff import DiffScreen
    from hfbench.screens.engines_page import EngineScreen
    from hfbench.screens.gpu_memory import GpuMemoryScreen
    from hfbench.screens.hub_pane import HubPane
    from hfbench.screens.job import JobScreen
    from hfbench.screens.launch import LaunchScreen
    from hfbench.screens.model import TABS, ModelScreen
    from hfbench.screens.sweep import SweepScreen
    from hfbench.widgets.convert_chooser import ConvertChooser
    from hfbench.widgets.fit_grid import FitGrid
    from hfbench.widgets.form import Form
    from hfbench.widgets.gpu_grid import GpuGrid
    from hfbench.widgets.heat_grid import HeatGrid
    from hfbench.widgets.kernel_matrix import KernelMatrix
    from hfbench.widgets.plan_table import PlanTable

    main = {name: main_screen(name) for name in MAIN}
    models: tuple[type, ...] = (BenchScreen, main["models"], HubPane, ModelScreen, *TABS, LaunchScreen, Form)
    others: tuple[type, ...] = (main["jobs"], JobScreen, DiffScreen, *DIFF_TABS, FitGrid)
    cards: tuple[type, ...] = (main["gpus"], GpuGrid, GpuMemoryScreen, main["kernels"], KernelMatrix)
    conversions: tuple[type, ...] = (ConvertScreen, ConvertChooser, PlanTable)
    engines: tuple[type, ...] = (main["engines"], EngineScreen, main["doctor"])
    stores: tuple[type, ...] = (main["cache"], CacheRepoScreen, main["registry"])
    sweeps: tuple[type, ...] = (main["sweeps"], SweepScreen, HeatGrid, CompareScreen)
    return (*models, *others, *cards, *conversions, *engines, *stores, *sweeps)


def bindings_of(kinds: Iterable[type]) -> list[tuple[str, str, str]]:
    """Id, keys and label of every binding these classes have or inherit."""
    found: dict[str, tuple[str, str, str]] = {}
    for kind in dict.fromkeys(base for each in kinds for base in each.__mro__):
        for each in kind.__dict__.get("BINDINGS", ()):
            if isinstance(each, Binding) and each.id:
                found.setdefault(each.id, (each.id, each.key, each.description))
    return list(found.values())
