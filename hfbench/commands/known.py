"""The actions the command line knows, with a word on stderr about what could not be loaded."""

from __future__ import annotations

import os

from hfbench.actions.index import ACTIONS_PATH, declared_actions
from hfbench.exits import complain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hfbench.actions.base import Spec


def known_actions() -> dict[str, Spec]:
    """All actions by name; a broken file of the user's is told on stderr, and the rest works."""
    from hfbench.actions.registry import catalogue  # the declarations themselves: `summaries` does without

    found = catalogue()
    for broken in found.broken:
        complain(broken)
    return found.actions


def summaries() -> dict[str, str]:
    """The summary of every action by its name; where the user adds none, no action's file is run for it."""
    if os.environ.get(ACTIONS_PATH):
        return {name: spec.summary for name, spec in known_actions().items()}
    return {entry.name: entry.summary for entry in declared_actions()}
