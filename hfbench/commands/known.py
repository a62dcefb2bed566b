"""The actions the command line knows, with a word on stderr about what could not be loaded."""

from __future__ import annotations

import os
from functools import cache

from hfbench.actions.index import ACTIONS_PATH, declared_actions
from hfbench.exits import complain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hfbench.actions.base import Spec


def known_actions() -> dict[str, Spec]:
    """All actions by name; a broken file of the user's is told on stderr, and the rest works."""
    from hfbench.actions.registry import catalogue  # the declarations themselves: `summaries` does without

    _tell_broken(os.environ.get(ACTIONS_PATH, ""))
    return catalogue().actions


def summaries() -> dict[str, str]:
    """The summary of every action by its name; no file of hfbench's own actions is run for it."""
    told = {entry.name: entry.summary for entry in declared_actions()}
    if folders := os.environ.get(ACTIONS_PATH):
        from hfbench.actions.registry import users_own

        _tell_broken(folders)
        told |= {name: spec.summary for name, spec in users_own().actions.items()}
    return dict(sorted(told.items()))


@cache
def _tell_broken(folders: str) -> None:
    """Say which files of the user's folders could not be loaded, once however often it is asked."""
    from hfbench.actions.registry import users_own

    for broken in users_own().broken:
        complain(broken)
