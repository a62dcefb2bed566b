"""Opens the page of a thing again by what was taken down of it: for whoever comes back, and for pictures."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from textual.message import Message

from hfbench.errors import HfbenchError
from hfbench.paths import jobs_root, sweeps_root
from hfbench.text import printable

if TYPE_CHECKING:
    from hfbench.app import Workbench

About = Mapping[str, str]

PATIENCE, SOON = 2.0, 0.01
"""Seconds in which the parts of a screen are there, and between two looks at them."""

TYPED = "typed."
"""Before the name of a field that was typed into."""


class Gone(Exception):
    """What a screen was about is not there any more; the text is a sentence."""


async def open_again(app: Workbench, page: str, about: About) -> None:
    """Push the page of a class by its name. Gone when there is nothing to show."""
    if page not in OPEN:
        raise Gone(f"the place that was kept is a screen this hfbench does not have: {printable(page)}")
    try:
        await OPEN[page](app, about)
    except KeyError as missing:
        raise Gone(f"the place that was kept lacks its {missing.args[0]}") from None


async def in_time(there: Callable[[], bool]) -> None:
    """Return once something is there, or after PATIENCE: what a screen holds is made a little after it."""
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE
    while not there() and loop.time() < until:
        await asyncio.sleep(SOON)


async def _asked(ask: Callable[[Callable[[], bool], Callable[[Message], None]], None]) -> Message | None:
    """The last message of something that asks beside the screen; a disk that hangs holds nobody, nor the end."""
    posted: list[Message] = []

    def answer() -> None:
        with contextlib.suppress(HfbenchError):  # the list that lies below tells it
            ask(lambda: False, posted.append)

    thread = threading.Thread(target=answer, daemon=True, name="hfbench-reopen")
    thread.start()
    while thread.is_alive():
        await asyncio.sleep(SOON)
    return posted[-1] if posted else None


async def _open_model(app: Workbench, about: About) -> None:
    from hfbench.screens.model import TABS, ModelScreen

    _refuse_gone(about["model"])
    tab = about.get("tab", "")
    await app.push_screen(ModelScreen(about["model"], tab if tab in {each.__name__ for each in TABS} else ""))


async def _open_form(app: Workbench, about: About) -> None:
    from hfbench.actions.registry import look_up

    action = about["action"]
    if look_up(action) is None:
        raise Gone(f"the form is of an action this hfbench does not have: {printable(action)}")
    app.open_form(action)
    screen = app.screen
    await in_time(lambda: screen.is_mounted and screen.focused is not None)
    screen.type_again({name.removeprefix(TYPED): text for name, text in about.items() if name.startswith(TYPED)})  # type: ignore[attr-defined]


async def _open_job(app: Workbench, about: About) -> None:
    from hfbench.jobs.directory import ID, JobDirectory
    from hfbench.screens.job import JobScreen

    job = about["job"]
    if not ID.fullmatch(job) or not (jobs_root() / job).is_dir():
        raise Gone(f"the job is gone: {printable(job)}")
    await app.push_screen(JobScreen(JobDirectory(jobs_root() / job)))


async def _open_diff(app: Workbench, about: About) -> None:
    from hfbench.screens.diff import TABS, DiffScreen

    for model in (about["a"], about["b"]):
        _refuse_gone(model)
    screen = DiffScreen(about["a"], about["b"])
    await app.push_screen(screen)
    if about.get("tab") in {each.__name__ for each in TABS}:
        screen.action_front(about["tab"])


async def _open_convert(app: Workbench, about: About) -> None:
    from hfbench.screens.convert import ConvertScreen

    _refuse_gone(about["model"])
    await app.push_screen(ConvertScreen(about["model"]))


async def _open_sweep(app: Workbench, about: About) -> None:
    from hfbench.screens.sweep import SweepScreen
    from hfbench.sweeps.folder import NAME

    name = about["sweep"]
    if not NAME.fullmatch(name) or not (sweeps_root() / name).is_dir():
        raise Gone(f"the sweep is gone: {printable(name)}")
    await app.push_screen(SweepScreen(sweeps_root() / name))


async def _open_compare(app: Workbench, about: About) -> None:
    from hfbench.screens.compare import CompareScreen

    await app.push_screen(CompareScreen(about["sides"].split("\n")))


async def _open_engine(app: Workbench, about: About) -> None:
    from hfbench.screens.engines_asks import EnginesListed, list_engines
    from hfbench.screens.engines_page import EngineScreen

    path = about["engine"]
    listed = await _asked(
        lambda stopped, post: list_engines([path if os.path.isdir(path) else os.path.dirname(path)], stopped, post)
    )
    engines = listed.engines if isinstance(listed, EnginesListed) else ()
    engine = next((each for each in engines if each.path == path), None)
    if engine is None:
        raise Gone(f"the engine is gone: {printable(path)}")
    screen = EngineScreen(engine)
    screen.begin_at(about.get("tab", ""))
    await app.push_screen(screen)


async def _open_repository(app: Workbench, about: About) -> None:
    from hfbench.screens.cache_asks import CacheListed, list_cache
    from hfbench.screens.cache_page import CacheRepoScreen

    path = about["repository"]
    listed = await _asked(list_cache)
    known = listed.known if isinstance(listed, CacheListed) else None
    if known is None or path not in known.repos:
        raise Gone(f"the repository is no longer in the cache: {printable(path)}")
    await app.push_screen(CacheRepoScreen(path, known))


async def _open_memory(app: Workbench, about: About) -> None:
    from hfbench.screens.gpu_memory import GpuMemoryScreen

    await in_time(lambda: app.machine.gpus is not None)
    devices = app.machine.gpus.devices if app.machine.gpus else ()
    device = next((each for each in devices if str(each.index) == about["gpu"]), None)
    if device is None:
        raise Gone(f"the GPU whose memory was explained is gone: {printable(about['gpu'])}")
    await app.push_screen(GpuMemoryScreen(device))


OPEN: Mapping[str, Callable[[Workbench, About], Awaitable[None]]] = {
    "ModelScreen": _open_model,
    "LaunchScreen": _open_form,
    "JobScreen": _open_job,
    "DiffScreen": _open_diff,
    "ConvertScreen": _open_convert,
    "SweepScreen": _open_sweep,
    "CompareScreen": _open_compare,
    "EngineScreen": _open_engine,
    "CacheRepoScreen": _open_repository,
    "GpuMemoryScreen": _open_memory,
}
"""How a page is opened, by its class."""


def _refuse_gone(model: str) -> None:
    from hfbench.models.reference import resolve

    try:
        resolve(model)
    except HfbenchError as error:
        raise Gone(f"the model is gone: {error}") from None
