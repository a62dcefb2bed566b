"""Takes down where the workbench is, as it goes, and goes back there."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from textual.screen import Screen

from hfbench.errors import HfbenchError
from hfbench.paths import jobs_root, sweeps_root
from hfbench.screens.base import BenchScreen
from hfbench.screens.every import MAIN, main_screen
from hfbench.screens.kept import Left, PlaceFile, Stop
from hfbench.text import printable
from hfbench.widgets.filter_bar import FilterBar

if TYPE_CHECKING:
    from hfbench.app import Workbench

LAST = 0.5
"""Seconds the end of the workbench waits for a disk."""

PATIENCE, SOON = 2.0, 0.01
"""Seconds in which the parts of a screen are there, and between two looks at them."""

MAIN_NAMES = {kind.partition(":")[2]: name for name, kind in MAIN.items()}


class Gone(Exception):
    """What a screen was about is not there any more; the text is a sentence."""


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
}
"""What a screen is about, by its class. A form that is half filled in is not kept: the screen below it is."""


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
    await _in_time(lambda: app.screen.is_mounted)
    for trouble in troubles:
        app.notify(trouble, severity="warning", timeout=15, markup=False)


async def _open(app: Workbench, stop: Stop) -> None:
    """One screen, with its filter. Gone when there is nothing to show."""
    if stop.screen in MAIN:
        kind = main_screen(stop.screen)
        if not isinstance(app.screen, kind):
            await app.push_screen(kind())
        await _in_time(lambda: app.screen.is_mounted)
        if stop.screen == "models":
            app.screen.bring(stop.about.get("source", ""))  # type: ignore[attr-defined]
    elif stop.screen in OPEN:
        try:
            await OPEN[stop.screen](app, stop.about)
        except KeyError as missing:
            raise Gone(f"the place that was kept lacks its {missing.args[0]}") from None
    else:
        raise Gone(f"the place that was kept is a screen this hfbench does not have: {printable(stop.screen)}")
    if stop.filter:
        await _in_time(lambda: (bar := _filter_bar(app)) is not None and bar.is_mounted)
        if bar := _filter_bar(app):
            bar.keep(stop.filter)


async def _in_time(there: Callable[[], bool]) -> None:
    """Return once something is there, or after PATIENCE: what a screen holds is made a little after it."""
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE
    while not there() and loop.time() < until:
        await asyncio.sleep(SOON)


def _filter_bar(app: Workbench) -> FilterBar | None:
    return app.screen.filter_bar if isinstance(app.screen, BenchScreen) else None


async def _open_model(app: Workbench, about: Mapping[str, str]) -> None:
    from hfbench.screens.model import TABS, ModelScreen

    _refuse_gone(about["model"])
    tab = about.get("tab", "")
    await app.push_screen(ModelScreen(about["model"], tab if tab in {each.__name__ for each in TABS} else ""))


async def _open_job(app: Workbench, about: Mapping[str, str]) -> None:
    from hfbench.jobs.directory import ID, JobDirectory
    from hfbench.screens.job import JobScreen

    job = about["job"]
    if not ID.fullmatch(job) or not (jobs_root() / job).is_dir():
        raise Gone(f"the job that was open is gone: {printable(job)}")
    await app.push_screen(JobScreen(JobDirectory(jobs_root() / job)))


async def _open_diff(app: Workbench, about: Mapping[str, str]) -> None:
    from hfbench.screens.diff import TABS, DiffScreen

    for model in (about["a"], about["b"]):
        _refuse_gone(model)
    screen = DiffScreen(about["a"], about["b"])
    await app.push_screen(screen)
    if about.get("tab") in {each.__name__ for each in TABS}:
        screen.action_front(about["tab"])


async def _open_convert(app: Workbench, about: Mapping[str, str]) -> None:
    from hfbench.screens.convert import ConvertScreen

    _refuse_gone(about["model"])
    await app.push_screen(ConvertScreen(about["model"]))


async def _open_sweep(app: Workbench, about: Mapping[str, str]) -> None:
    from hfbench.screens.sweep import SweepScreen
    from hfbench.sweeps.folder import NAME

    name = about["sweep"]
    if not NAME.fullmatch(name) or not (sweeps_root() / name).is_dir():
        raise Gone(f"the sweep that was open is gone: {printable(name)}")
    await app.push_screen(SweepScreen(sweeps_root() / name))


async def _open_compare(app: Workbench, about: Mapping[str, str]) -> None:
    from hfbench.screens.compare import CompareScreen

    await app.push_screen(CompareScreen(about["sides"].split("\n")))


OPEN: Mapping[str, Callable[[Workbench, Mapping[str, str]], Awaitable[None]]] = {
    "ModelScreen": _open_model,
    "JobScreen": _open_job,
    "DiffScreen": _open_diff,
    "ConvertScreen": _open_convert,
    "SweepScreen": _open_sweep,
    "CompareScreen": _open_compare,
}
"""How a screen is opened again, by its class."""


def _refuse_gone(model: str) -> None:
    from hfbench.models.reference import resolve

    try:
        resolve(model)
    except HfbenchError as error:
        raise Gone(f"the model that was open is gone: {error}") from None
