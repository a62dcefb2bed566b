"""The stops of the tour: what is seen, which key goes on, and when somebody has gone there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.command import CommandPalette

if TYPE_CHECKING:
    from hfbench.app import Workbench

_KEY = re.compile(r"\{([a-z-]+\.[a-z-]+)\|([^}]+)\}")


@dataclass(frozen=True, kw_only=True)
class Stop:
    """One stop. Keys in `text` stand in backticks; `{id|key}` is the key a key map may have changed."""

    title: str
    text: str
    left: Callable[[Workbench], bool] = lambda app: False
    """Whether the user did what the stop asks for."""

    def words(self, keys: Mapping[str, str]) -> str:
        """The text with the keys in force."""
        return _KEY.sub(lambda found: keys.get(found[1], found[2]).partition(",")[0], self.text)


def _shows(name: str) -> Callable[[Workbench], bool]:
    """True when a screen of that class is in front; by name, so that no screen is imported for it."""
    return lambda app: type(app.screen).__name__ == name


def _tab(name: str) -> Callable[[Workbench], bool]:
    return lambda app: type(getattr(app.screen, "front", None)).__name__ == name


STOPS = (
    Stop(
        title="Models",
        text="The models on this machine; hubs stand at the left. Below the list: what the model under the cursor is, "
        "and where it would load. `enter` opens it.",
        left=_shows("ModelScreen"),
    ),
    Stop(
        title="What is it?",
        text="Shape, bytes by dtype, and what is wrong, read from the files alone: no torch, and no code of the model. "
        "`{model.tensors|t}` shows its tensors.",
        left=_tab("TensorsTab"),
    ),
    Stop(
        title="Tensors",
        text="Names fold into patterns: `g` unfolds them, `{screen.filter|/}` filters as you type. A million rows feel "
        "like fifty. `{model.fit|f}` asks whether the model fits a card.",
        left=_tab("FitTab"),
    ),
    Stop(
        title="Will it fit?",
        text="Context by batch on a card you choose; arrows walk, `enter` shows the formula behind a number. "
        "`{model.bench|B}` measures the model on this machine.",
        left=_shows("LaunchScreen"),
    ),
    Stop(
        title="A form for every action",
        text="The last line is the same thing as a command. A field takes one value, or several for a sweep. "
        "`{form.start|enter}` starts it as a job.",
        left=_shows("JobScreen"),
    ),
    Stop(
        title="A job",
        text="It runs in a process of its own: close this terminal and it goes on. It stops when the interval of the "
        "median is narrow, and says when the machine was too noisy to believe. `{app.jobs|2}` lists all jobs.",
        left=_shows("JobsScreen"),
    ),
    Stop(
        title="Everything that runs or ran",
        text="Samples, log and environment are kept. `enter` opens one, a year later too. `{app.doctor|6}` looks for "
        "known traps of this machine.",
        left=_shows("DoctorScreen"),
    ),
    Stop(
        title="Doctor",
        text="Each check with its evidence and its remedy. Whatever you look for, `{app.palette|:}` finds it by name.",
        left=lambda app: isinstance(app.screen, CommandPalette),
    ),
    Stop(
        title="The palette",
        text="Every action and every screen: type a few letters of convert, engine or sweep. `esc` leaves it.",
        left=lambda app: not isinstance(app.screen, CommandPalette),
    ),
    Stop(
        title="That is all",
        text="`{app.record|r}` records what you start as a script for tonight, `{app.help|?}` tells what is focused, "
        "`{app.quit|q}` leaves: jobs go on. docs/recipes has a recipe for each task.",
    ),
)
