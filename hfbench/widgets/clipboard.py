"""Copying text from the workbench: through tmux, through the terminal, or into a file."""

from __future__ import annotations

import asyncio

from textual.app import App

from hfbench.text import printable
from hfbench.widgets.clipboard_routes import LONGEST_OSC52, copy_by_tmux, copy_to_file


async def copy_text(app: App[object], text: str) -> str:
    """Copy `text` and say by which route, in a sentence for a toast; a failure is said too, and never raises."""
    what = f"{len(text):,} characters"
    refused = await asyncio.to_thread(copy_by_tmux, text)
    if refused is None:
        return f"copied {what} through tmux"
    inside_tmux = refused != "not inside tmux"
    encoded = text.encode("utf-8", "surrogateescape")
    if not inside_tmux and not app.is_headless and len(encoded) <= LONGEST_OSC52:
        try:
            app.copy_to_clipboard(encoded.decode("utf-8", "replace"))
        except OSError as error:
            refused = str(error)
        else:
            return f"copied {what} through the terminal (OSC 52)"
    path, why = await asyncio.to_thread(copy_to_file, text)
    if path is not None:
        return f"wrote {what} to {printable(str(path))}" + (f" ({printable(refused)})" if inside_tmux else "")
    return f"could not copy: {printable(why)}"
