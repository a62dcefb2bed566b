"""Asks where to save a script, such as a recording that ends, and says how to replay it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hfbench.errors import HfbenchError
from hfbench.paths import expand
from hfbench.screens.confirm import AskText

if TYPE_CHECKING:
    from hfbench.app import Workbench

NAME = "recorded.hfb.yaml"
SUFFIX = ".hfb.yaml"


async def end_recording(app: Workbench) -> bool:
    """True when the recording is over: saved, discarded, or empty; False when it goes on."""
    count = len(app.recorder)
    if not count:
        app.notify("recording ended: nothing was started meanwhile")
        return True
    steps = f"{count} step{'s' * (count != 1)} recorded"
    answer = await app.push_screen_wait(AskText(f"{steps}. Save as (empty discards, escape goes on recording):", NAME))
    if answer is None:
        app.notify("still recording")
        return False
    if not answer:
        app.notify("the recording was discarded")
        return True
    path = expand(answer)
    app.recorder.name = path.name.removesuffix(SUFFIX)
    try:
        _, *others = app.recorder.save(path)
    except HfbenchError as error:
        app.complain(error)
        return False
    app.notify(f"saved {path}; replay it with: hfbench --script {path}", markup=False)
    if others:
        names = ", ".join(each.name for each in others)
        app.notify(f"each sweep is a script of its own; beside it, to be run after it: {names}", markup=False)
    return True


async def save_script(app: Workbench, text: str, name: str) -> None:
    """Ask for a file and write a script to it; nothing is written when the answer is empty or escape."""
    from hfbench.scripts.record import write_script

    answer = await app.push_screen_wait(AskText("Save the script as (escape leaves it):", f"{name}{SUFFIX}"))
    if not answer:
        return
    path = expand(answer)
    try:
        write_script(path, text)
    except HfbenchError as error:
        app.complain(error)
    else:
        app.notify(f"saved {path}; run it with: hfbench --script {path}", markup=False)
