"""The keys in force on a screen, the focused widget's first."""

from __future__ import annotations

from dataclasses import dataclass

from textual.app import App
from textual.binding import Binding
from textual.screen import Screen

from hfbench.text import printable

WORDS = {
    "escape": "esc",
    "pageup": "pgup",
    "pagedown": "pgdn",
    "question_mark": "?",
    "slash": "/",
    "colon": ":",
    **{key: key for key in ("enter", "up", "down", "left", "right", "tab", "space", "backspace", "delete")},
}
"""Keys written in plain letters, which every terminal can show."""


@dataclass(frozen=True, slots=True)
class ActiveKey:
    """One action that keys reach now: those keys, its description, and whether the key line may name it."""

    keys: tuple[str, ...]
    label: str
    where: str
    shown: bool


def active_keys(screen: Screen[object]) -> list[ActiveKey]:
    """Bindings of the focused widget, its parents, the screen and the app; keys of one action are put together."""
    found: dict[tuple[int, str], tuple[list[str], Binding, str]] = {}
    for active in screen.active_bindings.values():
        if not active.enabled or not active.binding.description or active.binding.system:
            continue
        entry = found.setdefault((id(active.node), active.binding.action), ([], active.binding, _place(active.node)))
        key = key_text(screen.app, active.binding)
        if key not in entry[0]:
            entry[0].append(key)
    return [
        ActiveKey(tuple(sorted(keys, key="enter".__ne__)), _label(binding), where, _is_named(screen, binding))
        for keys, binding, where in found.values()
    ]


def key_text(app: App[object], binding: Binding) -> str:
    """A key as people write it: `esc`, `pgdn`, `ctrl+s`, `?`."""
    return WORDS.get(binding.key) or app.get_key_display(binding)


def _is_named(screen: Screen[object], binding: Binding) -> bool:
    """Whether the key line may name it: a screen can keep out a key that would only say why it does nothing now."""
    return binding.show and binding.action not in getattr(screen, "unnamed_actions", ())


def _label(binding: Binding) -> str:
    """The description as our own labels are written; Textual's begin with capitals."""
    text = printable(binding.description)
    return text.lower() if text.istitle() or text[1:].islower() else text


def _place(node: object) -> str:
    return "everywhere" if isinstance(node, App) else "this screen" if isinstance(node, Screen) else "here"
