"""Takes down where the workbench is, as it goes, and goes back there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from textual.screen import Screen

from hfbench.every_screen import MAIN
from hfbench.screens.base import BenchScreen
from hfbench.screens.every import main_screen
from hfbench.screens.kept import LONGEST, Left, PlaceFile, Stop
from hfbench.screens.reopen import TYPED, Gone, in_time, open_again
from hfbench.widgets.filter_bar import FilterBar

if TYPE_CHECKING:
    from hfbench.app import Workbench

LAST = 0.5
"""Seconds the end of the workbench waits for a disk."""

MAIN_NAMES = {kind.partition(":")[2]: name for name, kind in MAIN.items()}


class PlaceKeeper:
    """Writes down the place once it has changed, in a thread: a slow disk must not hold up a key."""

    def __init__(self, app: Workbench, file: PlaceFile) -> None:
        self.app, self.file = app, file
        self._kept: tuple[Stop, ...] = ()
        self._writing: threading.Thread | None = None
        self._swept = False

    def look(self) -> None:
        """Write the place if it is another one; while a write is under way the next look does."""
        if self._writing and self._writing.is_alive():
            return
        stops = stops_of(self.app)
        if stops and stops != self._kept:
            self._kept = stops
            self._writing = threading.Thread(target=self._write, args=(stops,), daemon=True, name="hfbench-place")
            self._writing.start()

    def _write(self, stops: tuple[Stop, ...]) -> None:
        self.file.write(stops)
        if not self._swept:
            self._swept = True
            self.file.sweep()

    def look_last(self) -> None:
        """Write it now, as far as the disk lets us in a moment."""
        self.look()
        if self._writing:
            self._writing.join(LAST)


def stops_of(app: Workbench) -> tuple[Stop, ...]:
    """The screens that lie on each other, those that can be gone back to."""
    return tuple(stop for screen in app.screen_stack if (stop := _stop_of(screen)))


def _stop_of(screen: Screen[Any]) -> Stop | None:
    if not isinstance(screen, BenchScreen) or not screen.is_mounted:
        return None
    kind = type(screen).__name__
    if kind not in MAIN_NAMES and kind not in ABOUT:
        return None
    about = ABOUT[kind](screen) if kind in ABOUT else {}
    bar = screen.filter_bar
    return Stop(MAIN_NAMES.get(kind, kind), about, bar.text if bar else "")


ABOUT: Mapping[str, Callable[[Any], dict[str, str]]] = {
    "ModelsScreen": lambda screen: {"source": screen.source},
    "ModelScreen": lambda screen: {
        "model": screen.chosen_model or screen.reference,
        "tab": type(screen.front).__name__,
    },
    "JobScreen": lambda screen: {"job": screen.job.id},
    "DiffScreen": lambda screen: {"a": screen.view.a, "b": screen.view.b, "tab": type(screen.front).__name__},
    "ConvertScreen": lambda screen: {"model": screen.reference},
    "SweepScreen": lambda screen: {"sweep": screen.folder.name},
    "CompareScreen": lambda screen: {"sides": "\n".join(screen.sides)},
    "EngineScreen": lambda screen: {"engine": screen.engine.path, "tab": screen.tab},
    "CacheRepoScreen": lambda screen: {"repository": screen.path},
    "GpuMemoryScreen": lambda screen: {"gpu": str(screen.index)},
    "LaunchScreen": lambda screen: {
        "action": screen.spec.name,
        **{f"{TYPED}{name}": text for name, text in screen.typed.items() if len(text) <= LONGEST},
    },
}
"""What a screen is about, by its class. Of a form it is what was typed, never a secret."""


async def go_back(app: Workbench, left: Left) -> None:
    """Open the screens on each other again; what cannot be opened is told."""
    troubles = list(left.troubles)
    for stop in left.stops:
        try:
            await _open(app, stop)
        except Gone as gone:
            troubles.append(str(gone))
            break  # what lay on it came from it
    if not left.stops and not troubles:
        troubles.append("no place was kept yet: this is where it begins")
    await in_time(lambda: app.screen.is_mounted)
    for trouble in troubles:
        app.notify(trouble, severity="warning", timeout=15, markup=False)


async def _open(app: Workbench, stop: Stop) -> None:
    """One screen, with its filter. Gone when there is nothing to show."""
    if stop.screen in MAIN:
        kind = main_screen(stop.screen)
        if not isinstance(app.screen, kind):
            await app.push_screen(kind())
        await in_time(lambda: app.screen.is_mounted)
        if stop.screen == "models":
            app.screen.bring(stop.about.get("source", ""))  # type: ignore[attr-defined]
    else:
        await open_again(app, stop.screen, stop.about)
    if stop.filter:
        await in_time(lambda: (bar := _filter_bar(app)) is not None and bar.is_mounted)
        if bar := _filter_bar(app):
            bar.keep(stop.filter)


def _filter_bar(app: Workbench) -> FilterBar | None:
    return app.screen.filter_bar if isinstance(app.screen, BenchScreen) else None
