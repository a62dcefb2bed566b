"""By which route a text reaches the user's clipboard from here."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from hfbench.paths import cache_root

LONGEST_OSC52 = 74_994
"""Bytes of text: terminals commonly take 100,000 characters of base64 in one sequence, less its frame."""

TMUX_SECONDS = 2.0


def copy_by_tmux(text: str, environment: Mapping[str, str] | None = None) -> str | None:
    """Load tmux's buffer and its terminal's clipboard: None when it worked, else why not.

    tmux drops the clipboard sequence of programs by default, so inside it its own command must be used.
    """
    if not (os.environ if environment is None else environment).get("TMUX"):
        return "not inside tmux"
    command = ["tmux", "load-buffer", "-w", "-"]
    try:
        done = subprocess.run(
            command, input=os.fsencode(text), capture_output=True, timeout=TMUX_SECONDS, check=False, env=environment
        )
    except (OSError, subprocess.SubprocessError, UnicodeError) as error:
        return f"tmux failed: {error}"
    if done.returncode:
        return f"tmux failed: {done.stderr.decode(errors='replace').strip() or f'exit code {done.returncode}'}"
    return None


def copy_to_file(text: str, folder: Path | None = None) -> tuple[Path | None, str]:
    """Write the text to `clipboard.txt` in the cache folder: the file, or None and why not."""
    path = (folder or cache_root()) / "clipboard.txt"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb", opener=_private) as file:
            file.write(text.encode("utf-8", "surrogateescape"))
    except (OSError, UnicodeError) as error:
        return None, str(error)
    return path, ""


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
