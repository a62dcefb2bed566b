"""Colour themes: TOML files checked field by field, loaded, and watched for changes."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from textual.color import Color, ColorParseError
from textual.theme import Theme

from hfbench.text import did_you_mean, printable

DEFAULT_THEME = "hfbench-dark"

LARGEST = 64 * 1024
"""Bytes of a theme file at most."""

COLORS: dict[str, tuple[str, ...]] = {
    "background": ("scrollbar-background", "scrollbar-background-hover", "scrollbar-background-active"),
    "surface": ("surface-active",),
    "panel": ("border-blurred", "scrollbar-corner-color", "footer-background"),
    "foreground": ("text", "footer-foreground", "footer-description-foreground"),
    "muted": ("text-muted", "text-disabled", "foreground-muted", "foreground-disabled", "scrollbar-hover"),
    "primary": ("border", "text-primary", "scrollbar-active"),
    "secondary": ("text-secondary",),
    "accent": ("text-accent", "link-color", "footer-key-foreground"),
    "success": ("text-success",),
    "warning": ("text-warning",),
    "error": ("text-error",),
    "cursor-background": ("block-cursor-background", "input-selection-background", "screen-selection-background"),
    "cursor-foreground": ("block-cursor-foreground", "input-selection-foreground", "screen-selection-foreground"),
    "cursor-blurred-background": ("block-cursor-blurred-background", "scrollbar"),
    "cursor-blurred-foreground": ("block-cursor-blurred-foreground",),
}
"""Every colour of a theme file, and the variables of widgets that are painted in exactly it."""

SURFACES = ("background", "surface", "panel")
"""What text stands on: the screen, a region, and the title and key lines."""

INKS = ("foreground", "muted", "accent", "success", "warning", "error")
"""What stands on any surface; the cursor pairs stand by themselves."""

_OPTIONAL: Mapping[str, type] = {"dark": bool, "ansi": bool}


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing wrong with a theme file; `str()` is a sentence."""

    file: Path
    field: str
    reason: str

    def __str__(self) -> str:
        place = f"{self.file}: {self.field}" if self.field else str(self.file)
        return printable(f"{place}: {self.reason}")


@dataclass(frozen=True, slots=True)
class Themes:
    """What could be loaded, by name, and what could not."""

    loaded: dict[str, Theme] = field(default_factory=dict)
    failed: tuple[Failure, ...] = ()


def load_themes(folders: Iterable[Path]) -> Themes:
    """The themes of all `*.toml` files; a later folder replaces a name of an earlier one.

    A folder that does not exist holds no themes. A file with anything wrong is left out and every fault is told.
    """
    loaded: dict[str, Theme] = {}
    failed: list[Failure] = []
    for folder in folders:
        seen: dict[str, Path] = {}
        for file in _files(folder):
            theme, faults = read_theme(file)
            if theme is not None and theme.name in seen:
                faults = [Failure(file, "name", f"{theme.name!r} is also the name in {seen[theme.name].name}")]
                theme = None
            failed += faults
            if theme is not None:
                seen[theme.name] = file
                loaded[theme.name] = theme
    return Themes(loaded, tuple(failed))


def read_theme(file: Path) -> tuple[Theme | None, list[Failure]]:
    """The theme in a file, or None and every fault found."""
    try:
        if not file.is_file():
            raise OSError("is not a regular file")
        if file.stat().st_size > LARGEST:
            raise OSError(f"is larger than {LARGEST} bytes")
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        return None, [Failure(file, "", error.strerror or str(error))]
    except UnicodeDecodeError as error:
        return None, [Failure(file, "", f"is not UTF-8 at byte {error.start}")]
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return None, [Failure(file, "", f"is not TOML: {error}")]
    faults = [Failure(file, *fault) for fault in _faults(data)]
    return (None, faults) if faults else (_theme(data), [])


class ThemeWatch:
    """Says whether theme files changed since it was last asked; one `stat` a file, for a timer."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self.folders = tuple(folders)
        self._seen = self._look()

    def changed(self) -> bool:
        """Whether a file was added, removed or written since the last call."""
        before, self._seen = self._seen, self._look()
        return before != self._seen

    def _look(self) -> dict[Path, tuple[int, int]]:
        found = {}
        for folder in self.folders:
            for file in _files(folder):
                try:
                    status = file.stat()
                except OSError:
                    continue  # gone between the two looks: seen as removed
                found[file] = status.st_mtime_ns, status.st_size
        return found


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(file for file in folder.iterdir() if file.suffix == ".toml" and not file.name.startswith("."))
    except OSError:
        return []


def _faults(data: Mapping[str, Any]) -> list[tuple[str, str]]:
    known = {"name", "colors", *_OPTIONAL}
    faults = [(key, _unknown(key, known)) for key in data if key not in known]
    name = data.get("name")
    if name is None:
        faults.append(("name", "is missing"))
    elif not (isinstance(name, str) and name.strip() and name == printable(name) and len(name) <= 40):
        faults.append(("name", "must be a text of 1 to 40 printable characters"))
    for key, kind in _OPTIONAL.items():
        if key in data and not isinstance(data[key], kind):
            faults.append((key, f"must be true or false, is {printable(repr(data[key]))}"))
    colors = data.get("colors")
    if not isinstance(colors, dict):
        return [*faults, ("colors", "is missing" if colors is None else "must be a table")]
    faults += [(f"colors.{key}", _unknown(key, COLORS)) for key in colors if key not in COLORS]
    faults += [(f"colors.{key}", "is missing") for key in COLORS if key not in colors]
    ansi = data.get("ansi") is True
    for key in COLORS:
        if key in colors and (reason := _color_fault(colors[key], ansi=ansi)):
            faults.append((f"colors.{key}", reason))
    return faults


def _unknown(key: str, known: Iterable[str]) -> str:
    return f"is not known; {hint}" if (hint := did_you_mean(key, known)) else "is not known"


def _color_fault(value: object, *, ansi: bool) -> str:
    example = "ansi_blue" if ansi else "#7fb4e6"
    if not isinstance(value, str):
        return f"must be a text such as {example!r}, is {printable(repr(value))}"
    try:
        color = Color.parse(value)
    except ColorParseError:
        return f"{printable(value)!r} is not a colour; write for example {example!r}"
    if (color.ansi is not None) != ansi:
        return f"{value!r} is {'not ' if ansi else ''}an ansi colour, and the theme says ansi = {str(ansi).lower()}"
    if color.a < 1 and not ansi:
        return f"{value!r} is transparent; its contrast would depend on what lies below"
    return ""


def _theme(data: Mapping[str, Any]) -> Theme:
    colors: dict[str, str] = data["colors"]
    ansi = bool(data.get("ansi", False))
    variables = {variable: colors[key] for key, names in COLORS.items() for variable in names}
    if ansi:
        variables |= {"ansi-background": colors["background"], "ansi-foreground": colors["foreground"]}
        variables |= {key: colors[key] for key in SURFACES}
    return Theme(
        name=data["name"],
        dark=bool(data.get("dark", True)),
        ansi=ansi,
        variables=variables,
        primary=colors["primary"],
        secondary=colors["secondary"],
        accent=colors["accent"],
        success=colors["success"],
        warning=colors["warning"],
        error=colors["error"],
        foreground=colors["foreground"],
        background=colors["background"],
        surface=colors["surface"],
        panel=colors["panel"],
    )
