"""The terminal the workbench would draw on."""

from __future__ import annotations

from hfbench.doctor.check import Outcome, check, ok, saw, unknown, warning
from hfbench.doctor.system import System

LOCALE = ("LC_ALL", "LC_CTYPE", "LANG")
"""The first that is set decides."""
POOR = {"dumb", "unknown", "vt100", "vt220"}


@check("terminal.locale", "locale")
def locale(system: System) -> Outcome:
    """Without UTF-8 the workbench draws with ASCII, and names of files may be unreadable."""
    told = next(((name, system.variable(name)) for name in LOCALE if system.variable(name)), ("", ""))
    name, value = told
    if not value:
        return warning("none is set", saw("not set", ", ".join(LOCALE)), remedy="export LANG=C.UTF-8")
    if not value.upper().replace("-", "").endswith("UTF8") and ".UTF8@" not in value.upper().replace("-", ""):
        return warning(f"{name} is {value}, not UTF-8", saw(value, name), remedy=f"export {name}=C.UTF-8")
    return ok(value, saw(value, name))


@check("terminal.type", "terminal type")
def kind(system: System) -> Outcome:
    """TERM says what the terminal understands; a wrong one garbles the screen."""
    term, colours = system.variable("TERM"), system.variable("COLORTERM")
    seen = (saw(term or "not set", "TERM"), saw(colours or "not set", "COLORTERM"))
    if not term or term in POOR:
        return warning(
            f"TERM is {term or 'not set'}",
            *seen,
            remedy="use a terminal that sets it (xterm-256color), or the command line alone",
        )
    if system.variable("TMUX") and not term.startswith(("tmux", "screen")):
        return warning(
            f"TERM is {term} inside tmux", *seen, remedy="leave TERM to tmux: set -g default-terminal tmux-256color"
        )
    if (
        not any(part in term for part in ("256color", "direct", "truecolor", "kitty", "alacritty", "ghostty"))
        and not colours
    ):
        return warning(
            f"{term} tells of few colours", *seen, remedy="TERM=xterm-256color, or export COLORTERM=truecolor"
        )
    return ok(term, *seen)


@check("terminal.clipboard", "clipboard")
def clipboard(system: System) -> Outcome:
    """What is copied over SSH reaches your machine only if tmux hands it on."""
    if not system.variable("TMUX"):
        return ok("the terminal's own", saw("not set", "TMUX"))
    ran = system.run(["tmux", "show-options", "-gv", "set-clipboard"], 2.0)
    if ran is None or ran.code:
        return unknown("tmux does not tell", saw(ran.err.strip() if ran else "no answer", "tmux show-options"))
    told = ran.out.strip()
    if told == "off":
        return warning(
            "tmux keeps it to itself",
            saw("set-clipboard off", "tmux show-options"),
            remedy="tmux set -g set-clipboard on",
        )
    return ok(f"tmux hands it on (set-clipboard {told})", saw(f"set-clipboard {told}", "tmux show-options"))
