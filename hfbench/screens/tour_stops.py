"""The stops of the tour: what is seen, which key goes on, when somebody has gone there, and how they are brought."""

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
    here: Callable[[Workbench], bool] = lambda app: True
    """Whether what the stop is about is in front."""
    place: str = ""
    """Where that is, for who skipped to the stop and sees something else."""
    bring: Callable[[Workbench], object] = lambda app: None
    """Bring the place in front for who skips to the stop, as the keys that lead to it would."""
    by_leaving: bool = False
    """The stop is left by leaving its place, so that one has to have been there."""

    def words(self, keys: Mapping[str, str], *, here: bool = True) -> str:
        """The text with the keys in force; it begins with the place for who is elsewhere."""
        text = self.text if here or not self.place else f"{self.place}: {self.text}"
        return _KEY.sub(lambda found: keys.get(found[1], found[2]).partition(",")[0], text)


def _shows(name: str) -> Callable[[Workbench], bool]:
    """True when a screen of that class is in front; by name, so that no screen is imported for it."""
    return lambda app: type(app.screen).__name__ == name


def _tab(name: str) -> Callable[[Workbench], bool]:
    return lambda app: type(getattr(app.screen, "front", None)).__name__ == name


def _palette(app: Workbench) -> bool:
    return isinstance(app.screen, CommandPalette)


def _bring_models(app: Workbench) -> None:
    app.action_go("models")


def _bring_model(tab: str) -> Callable[[Workbench], None]:
    """Back to the page of a model that lies below, else the page of the one under the cursor, at a tab."""

    def bring(app: Workbench) -> None:
        from hfbench.screens.model import ModelScreen

        if any(isinstance(screen, ModelScreen) for screen in app.screen_stack):
            while not isinstance(app.screen, ModelScreen):
                app.pop_screen()
            app.screen.action_front(tab)
            return
        app.action_go("models")
        if model := getattr(app.screen, "chosen_model", ""):
            app.open_model(model, tab)

    return bring


def _bring_form(app: Workbench) -> None:
    from hfbench.screens.launch import LaunchScreen

    if any(isinstance(screen, LaunchScreen) for screen in app.screen_stack):
        while not isinstance(app.screen, LaunchScreen):
            app.pop_screen()
        return
    app.open_form("bench.generate", {"model": getattr(app.screen, "chosen_model", "")})


def _bring_job(app: Workbench) -> None:
    """The page of the newest job: skipping a stop starts none."""
    if app.machine.known_jobs:
        app.open_job(app.machine.known_jobs[0].id)


STOPS = (
    Stop(
        title="Models",
        here=_shows("ModelsScreen"),
        bring=_bring_models,
        place="On the Models screen (`{app.models|1}`)",
        text="The models on this machine; hubs stand at the left. Below the list: what the model under the cursor is, "
        "and where it would load. `enter` opens it.",
        left=_shows("ModelScreen"),
    ),
    Stop(
        title="What is it?",
        here=_shows("ModelScreen"),
        bring=_bring_model("Overview"),
        place="On the screen of a model",
        text="Shape, bytes by dtype, and what is wrong, read from the files alone: no torch, and no code of the model. "
        "`{model.tensors|t}` shows its tensors.",
        left=_tab("TensorsTab"),
    ),
    Stop(
        title="Tensors",
        here=_tab("TensorsTab"),
        bring=_bring_model("TensorsTab"),
        place="On the tensors of a model (`{model.tensors|t}`)",
        text="Names fold into patterns: `g` unfolds them, `{screen.filter|/}` filters as you type. A million rows feel "
        "like fifty. `{model.fit|f}` asks whether the model fits a card.",
        left=_tab("FitTab"),
    ),
    Stop(
        title="Will it fit?",
        here=_tab("FitTab"),
        bring=_bring_model("FitTab"),
        place="On the fit of a model (`{model.fit|f}`)",
        text="Context by batch on a card you choose; arrows walk, `enter` shows the formula behind a number. "
        "`{model.bench|B}` measures the model on this machine.",
        left=_shows("LaunchScreen"),
    ),
    Stop(
        title="A form for every action",
        here=_shows("LaunchScreen"),
        bring=_bring_form,
        place="On a form, such as `{model.bench|B}` opens on a model",
        text="The last line is the same thing as a command. A field takes one value, or several for a sweep. "
        "`{form.start|enter}` starts it as a job.",
        left=_shows("JobScreen"),
    ),
    Stop(
        title="A job",
        here=_shows("JobScreen"),
        bring=_bring_job,
        place="On the screen of a job",
        text="It runs in a process of its own: close this terminal and it goes on. It stops when the interval of the "
        "median is narrow, and says when the machine was too noisy to believe. `{app.jobs|2}` lists all jobs.",
        left=_shows("JobsScreen"),
    ),
    Stop(
        title="Everything that runs or ran",
        here=_shows("JobsScreen"),
        bring=lambda app: app.action_go("jobs"),
        place="On the Jobs screen (`{app.jobs|2}`)",
        text="Samples, log and environment are kept. `enter` opens one, a year later too. `{app.doctor|6}` looks for "
        "known traps of this machine.",
        left=_shows("DoctorScreen"),
    ),
    Stop(
        title="Doctor",
        here=_shows("DoctorScreen"),
        bring=lambda app: app.action_go("doctor"),
        place="On the Doctor screen (`{app.doctor|6}`)",
        text="Each check with its evidence and its remedy. Whatever you look for, `{app.palette|:}` finds it by name.",
        left=_palette,
    ),
    Stop(
        title="The palette",
        here=_palette,
        bring=lambda app: app.action_command_palette(),
        place="In the palette (`{app.palette|:}`)",
        text="Every action and every screen: type a few letters of convert, engine or sweep. `esc` leaves it.",
        left=lambda app: not _palette(app),
        by_leaving=True,
    ),
    Stop(
        title="That is all",
        text="`{app.record|r}` records what you start as a script for tonight, `{app.help|?}` tells what is focused, "
        "`{app.quit|q}` leaves: jobs go on. docs/recipes has a recipe for each task.",
    ),
)
