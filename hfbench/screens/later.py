"""Loads the screens that the next key may open: the one in front does not wait for them, the key finds them."""

from __future__ import annotations

import contextlib
import threading
import time
from importlib import import_module

BREATH = 0.01
"""Seconds between two modules, in which a key or a repaint has the interpreter for itself."""

BEHIND_MODELS = ("screens.model", "screens.jobs", "screens.gpus", "screens.launch", "screens.job", "screens.convert")
"""What keys of the Models screen ask for: modules of the package."""

BEHIND_MODEL = (
    "tokens.tokenizer",
    "tokens.chat",
    "models.explain.explain",
    "models.inventory.inventory",
    "screens.diff",
)
"""What keys of the Model screen ask for."""


def load_later(modules: tuple[str, ...]) -> None:
    """Import modules in a thread of its own; calling it again costs nothing."""
    threading.Thread(target=_load, args=(modules,), daemon=True, name="hfbench-load-later").start()


def _load(modules: tuple[str, ...]) -> None:
    for module in modules:
        with contextlib.suppress(ImportError):  # a broken installation is told by whoever opens that screen
            import_module(f"hfbench.{module}")
        time.sleep(BREATH)
