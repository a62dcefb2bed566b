"""Loads the screens that nobody looks at yet: the first frame does not wait for them, the first key finds them."""

from __future__ import annotations

import contextlib
import threading
import time
from importlib import import_module
from pkgutil import iter_modules

BREATH = 0.01
"""Seconds between two modules, in which a key or a repaint has the interpreter for itself."""


def load_screens() -> None:
    """Import every screen of this room in a thread of its own; calling it again costs nothing."""
    threading.Thread(target=_load, daemon=True, name="hfbench-load-screens").start()


def _load() -> None:
    import hfbench.screens as room

    for module in iter_modules(room.__path__, f"{room.__name__}."):
        with contextlib.suppress(ImportError):  # a broken installation is told by whoever opens that screen
            import_module(module.name)
        time.sleep(BREATH)
