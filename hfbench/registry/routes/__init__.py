"""What the hub answers: one group of routes a file, found by `routing.py`."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

ALL = tuple(import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
"""Every group of routes; importing one declares what it answers."""
