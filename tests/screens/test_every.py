"""No screen is forgotten: what lists screens has all that are written."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import hfbench.screens
from hfbench.actions.registry import find
from hfbench.every_screen import MAIN, PAGES
from hfbench.screens.attached import ABOUT
from hfbench.screens.base import BenchScreen
from hfbench.screens.every import holders
from hfbench.screens.reopen import OPEN
from hfbench.screenshot import WANTED


def written() -> dict[str, type[Any]]:
    """Every screen that nothing is made from, `module:Class` by where it stands."""
    for module in pkgutil.walk_packages(hfbench.screens.__path__, "hfbench.screens."):
        importlib.import_module(module.name)
    found, pending = {}, [BenchScreen]
    while pending:
        kind = pending.pop()
        below = [each for each in kind.__subclasses__() if each.__module__.startswith("hfbench.")]
        pending += below
        if not below:
            found[f"{kind.__module__.removeprefix('hfbench.screens.')}:{kind.__name__}"] = kind
    return found


def test_every_screen_that_is_written_stands_in_the_list() -> None:
    assert set(written()) == {*MAIN.values(), *PAGES.values()}


def test_a_picture_can_be_asked_of_every_screen() -> None:
    [screen] = [param for param in find("screenshot").params if param.name == "screen"]
    assert set(screen.choices) == {*MAIN, *PAGES, "help"}
    assert WANTED.keys() == PAGES.keys()


def test_every_page_can_be_come_back_to() -> None:
    pages = {place.partition(":")[2] for place in PAGES.values()}
    assert OPEN.keys() == pages
    assert ABOUT.keys() - {"ModelsScreen"} == pages


def test_the_keys_of_every_screen_can_be_changed() -> None:
    assert set(written().values()) <= set(holders())
