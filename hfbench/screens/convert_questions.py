"""What the Convert screen asks for in a line of text; each answer is the wish changed, None when there is no answer."""

from __future__ import annotations

from dataclasses import replace

from textual.app import App

from hfbench.errors import UsageError
from hfbench.paths import expand
from hfbench.screens.confirm import AskText
from hfbench.screens.convert_wish import Wish, stages_of

STAGES = "Layers of the first and of the last stage, as 7,8 or 7,- or -,8; empty: even"
ALLOW = "What a cast may meet, of nan, inf, overflow, underflow; empty: nothing"
FOLDER = "Folder to make; empty: the one proposed"


async def ask_stages(app: App[None], wish: Wish) -> Wish | None:
    """An uneven first and last stage; UsageError when what was typed is no such thing."""
    text = await app.push_screen_wait(AskText(STAGES))
    if text is None:
        return None
    stages = stages_of(text)
    if stages is None:
        raise UsageError(f"{text!r} names no two numbers of layers", remedy="write for example 7,8 or 7,-")
    return replace(wish, stages=stages)


async def ask_allow(app: App[None], wish: Wish) -> Wish | None:
    """What a cast may lose; the action knows the words."""
    text = await app.push_screen_wait(AskText(ALLOW, ",".join(wish.allow)))
    if text is None:
        return None
    return replace(wish, allow=tuple(each.strip() for each in text.split(",") if each.strip()))


async def ask_folder(app: App[None], wish: Wish) -> Wish | None:
    """Where it goes."""
    text = await app.push_screen_wait(AskText(FOLDER, wish.folder))
    if text is None:
        return None
    folder = str(expand(text).absolute()) if text else ""
    return replace(wish, out="" if folder == replace(wish, out="").folder else folder)
