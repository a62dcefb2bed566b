"""Themes: what a file must hold, how its faults are told, and that every text can be read."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from textual.app import App
from textual.color import Color
from textual.theme import Theme

from hfbench.paths import packaged_themes
from hfbench.theming import (
    COLORS,
    DEFAULT_THEME,
    INKS,
    SURFACES,
    ThemeWatch,
    load_themes,
    read_theme,
)

NAMES = ["hfbench-ansi", "hfbench-contrast", "hfbench-dark", "hfbench-light"]

# What terminals paint for the 16 names differs; a theme of them must be readable in both of these.
XTERM = (
    "000000 cd0000 00cd00 cdcd00 0000ee cd00cd 00cdcd e5e5e5 7f7f7f ff0000 00ff00 ffff00 5c5cff ff00ff 00ffff ffffff"
)
VGA = "000000 aa0000 00aa00 aa5500 0000aa aa00aa 00aaaa aaaaaa 555555 ff5555 55ff55 ffff55 5555ff ff55ff 55ffff ffffff"
LEAST = {"hfbench-contrast": 7.0}


def packaged() -> dict[str, Theme]:
    themes = load_themes([packaged_themes()])
    assert themes.failed == ()
    return themes.loaded


def luminance(color: Color) -> float:
    """Relative luminance of WCAG 2."""
    channels = (value / 255 for value in color.rgb)
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Color, other: Color) -> float:
    """Contrast ratio of WCAG 2, from 1 to 21."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def painted(color: Color, palette: str) -> Color:
    return color if color.ansi is None else Color.parse(f"#{palette.split()[color.ansi]}")


def write(folder: Path, text: str, name: str = "mine.toml") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def whole(**changes: str) -> str:
    colors = dict.fromkeys(COLORS, "#7fb4e6") | {key: value for key, value in changes.items() if key in COLORS}
    head = changes.get("head", 'name = "mine"')
    return head + "\n[colors]\n" + "\n".join(f'{key} = "{value}"' for key, value in colors.items()) + "\n"


def faults(file: Path) -> list[str]:
    theme, failures = read_theme(file)
    assert theme is None
    return [f"{failure.field}: {failure.reason}" for failure in failures]


def test_four_themes_come_with_the_package() -> None:
    assert sorted(packaged()) == NAMES
    assert DEFAULT_THEME in NAMES


def test_contrast_knows_its_extremes() -> None:
    assert contrast(Color.parse("#000"), Color.parse("#fff")) == pytest.approx(21)
    assert contrast(Color.parse("#777"), Color.parse("#777")) == 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("palette", [XTERM, VGA], ids=["xterm", "vga"])
async def test_every_text_can_be_read_on_every_surface(name: str, palette: str) -> None:
    """At least 4.5:1 for text, muted text and state colours, in the variables that widgets are painted with."""
    app: App[None] = App()
    app.register_theme(packaged()[name])
    app.theme = name
    variables = app.get_css_variables()

    def color(variable: str) -> Color:
        return painted(Color.parse(variables[variable]), palette)

    inks = ["foreground", "text", "text-muted", *(f"text-{ink}" for ink in INKS[2:])]
    pairs = [(ink, surface) for ink in inks for surface in SURFACES]
    pairs += [(f"block-cursor{way}-foreground", f"block-cursor{way}-background") for way in ("", "-blurred")]
    pairs += [("input-selection-foreground", "input-selection-background")]
    poor = {
        (ink, ground): round(contrast(color(ink), color(ground)), 2)
        for ink, ground in pairs
        if contrast(color(ink), color(ground)) < LEAST.get(name, 4.5)
    }
    assert poor == {}


@pytest.mark.parametrize("name", NAMES)
def test_the_selected_row_differs_from_every_surface(name: str) -> None:
    variables = packaged()[name].variables | packaged()[name].to_color_system().generate()
    cursor = Color.parse(variables["block-cursor-background"])
    assert all(cursor != Color.parse(variables[surface]) for surface in SURFACES)


def test_a_bad_colour_is_told_with_its_field(tmp_path: Path) -> None:
    file = write(tmp_path, whole(accent="bluish"))
    assert faults(file) == ["colors.accent: 'bluish' is not a colour; write for example '#7fb4e6'"]


def test_an_unknown_key_is_told_with_the_nearest(tmp_path: Path) -> None:
    text = whole().replace("muted =", "mutd =")
    assert faults(write(tmp_path, text)) == [
        "colors.mutd: is not known; did you mean 'muted'?",
        "colors.muted: is missing",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["name: is missing", "colors: is missing"]),
        ('name = ""\ncolors = 1', ["name: must be a text of 1 to 40 printable characters", "colors: must be a table"]),
        (whole(head='name = "\\u001b[2J"'), ["name: must be a text of 1 to 40 printable characters"]),
        (whole(head='name = "x"\ndark = 1'), ["dark: must be true or false, is 1"]),
        (whole(head='name = "x"\nansy = true'), ["ansy: is not known; did you mean 'ansi'?"]),
        (
            whole(panel="#ffffff80"),
            ["colors.panel: '#ffffff80' is transparent; its contrast would depend on what lies below"],
        ),
        (whole(panel="ansi_red"), ["colors.panel: 'ansi_red' is an ansi colour, and the theme says ansi = false"]),
        (whole().replace('"#7fb4e6"', "7", 1), ["colors.background: must be a text such as '#7fb4e6', is 7"]),
    ],
)
def test_each_fault_names_field_and_reason(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert faults(write(tmp_path, text)) == expected


def test_what_is_no_toml_is_told_with_its_place(tmp_path: Path) -> None:
    [fault] = faults(write(tmp_path, "\nname = 1x\n"))
    assert fault.startswith(": is not TOML: ")
    assert "line 2" in fault


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    file = tmp_path / "raw.toml"
    file.write_bytes(b'name = "\xff"')
    assert faults(file) == [": is not UTF-8 at byte 8"]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    themes = load_themes([tmp_path])
    assert [str(failure) for failure in themes.failed] == [f"{tmp_path / 'pipe.toml'}: is not a regular file"]


def test_one_bad_file_leaves_the_others_loaded(tmp_path: Path) -> None:
    write(tmp_path, whole(), "good.toml")
    write(tmp_path, "[", "bad.toml")
    themes = load_themes([packaged_themes(), tmp_path, tmp_path / "absent"])
    assert set(themes.loaded) == {*NAMES, "mine"}
    assert [failure.file.name for failure in themes.failed] == ["bad.toml"]


def test_a_later_folder_replaces_a_theme_and_one_folder_may_not(tmp_path: Path) -> None:
    write(tmp_path, whole(head=f'name = "{DEFAULT_THEME}"'), "a.toml")
    write(tmp_path, whole(head=f'name = "{DEFAULT_THEME}"'), "b.toml")
    themes = load_themes([packaged_themes(), tmp_path])
    assert themes.loaded[DEFAULT_THEME].background == "#7fb4e6"
    assert [str(f) for f in themes.failed] == [
        f"{tmp_path / 'b.toml'}: name: '{DEFAULT_THEME}' is also the name in a.toml"
    ]


def test_the_watch_sees_files_written_added_and_removed_once(tmp_path: Path) -> None:
    watch = ThemeWatch([tmp_path, tmp_path / "absent"])
    assert not watch.changed()
    file = write(tmp_path, "a")
    assert watch.changed()
    assert not watch.changed()
    write(tmp_path, "ab")
    assert watch.changed()
    file.unlink()
    assert watch.changed()
    assert not watch.changed()


def test_the_folder_of_a_wheel_is_found_too(tmp_path: Path) -> None:
    """In a wheel the themes lie inside the package: the same module, copied there, finds them."""

    package = tmp_path / "hfbench"
    source = Path(__file__).parents[1] / "hfbench"
    package.mkdir()
    for name in ("__init__.py", "paths.py", "errors.py", "exits.py", "line_width.py", "pages.py", "text.py"):
        (package / name).write_bytes((source / name).read_bytes())
    (package / "themes").mkdir()
    for file in packaged_themes().glob("*.toml"):
        (package / "themes" / file.name).write_bytes(file.read_bytes())
    code = "from hfbench.paths import packaged_themes; print(packaged_themes())"
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str(package / "themes")
