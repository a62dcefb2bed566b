"""How the workbench looks and which keys it obeys: themes and their files, no colours at all, the user's key map."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from textual.app import App
from textual.filter import LineFilter, Monochrome, NoColor

from hfbench.config import Config, ConfigError, names_no_binding
from hfbench.errors import HfbenchError, UsageError
from hfbench.paths import config_file, theme_folders
from hfbench.text import did_you_mean
from hfbench.theming import DEFAULT_THEME, ThemeWatch, load_themes
from hfbench.widgets.colourless import Colourless

OWN_FILTERS = (Monochrome, NoColor)
"""What Textual itself does under NO_COLOR: greys, which are colours too, or nothing that shows where the cursor is."""


def refuse_unknown(theme: str) -> None:
    """UsageError for a theme that no file holds."""
    known = load_themes(theme_folders()).loaded
    if theme not in known:
        raise UsageError(f"there is no theme {theme!r}", where="--theme", remedy=_near(theme, known))


def _near(theme: str, known: Collection[str]) -> str:
    return did_you_mean(theme, known) or f"known: {', '.join(sorted(known))}"


class Dressing(App[None]):
    """The application, as far as it has themes and keys that are a user's to choose."""

    config: Config
    theme_folders: Sequence[Path] = ()
    _themes_changed: ThemeWatch
    _colourless: Colourless | None = None

    def complain(self, error: HfbenchError | str) -> None:
        """Show a sentence that stays long enough to be read."""
        self.notify(str(error), severity="error", timeout=15, markup=False)

    def load_themes(self) -> None:
        """Take in the themes there are and put on the one that is wanted, else the default."""
        self.theme_folders = theme_folders()
        self._themes_changed = ThemeWatch(self.theme_folders)
        self._own_themes: set[str] = set()
        self._register_themes()
        wanted, known = self.config.ui.theme, self._own_themes
        self.theme = wanted if wanted in known else DEFAULT_THEME
        if wanted not in known:
            remedy = _near(wanted, known)
            self.complain(ConfigError(f"there is no theme {wanted!r}", where=config_file(), remedy=remedy))

    def reload_themes(self) -> None:
        """Take in theme files that changed."""
        if self._themes_changed.changed():
            self._register_themes()
            self.refresh_css(animate=False)

    def theme_names(self) -> list[str]:
        """The themes a user may choose: ours and their own."""
        return sorted(self._own_themes)

    def apply_keys(self, known: Iterable[str]) -> None:
        """Go by the user's key map, of which each name should be one of the known ids."""
        ids = set(known)
        for name in self.config.keys.keys() - ids:
            self.complain(names_no_binding(name, ids))
        self.set_keymap({name: keys for name, keys in self.config.keys.items() if name in ids})

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's hook: what is done to each line before it is painted."""
        filters = [each for each in super().get_line_filters() if not isinstance(each, OWN_FILTERS)]
        if not self.no_color:
            return filters
        if self._colourless is None or self._colourless.theme is not self.current_theme:
            self._colourless = Colourless(self.current_theme)
        return [*filters, self._colourless]

    def _register_themes(self) -> None:
        """Take in every theme that can be read; one that cannot keeps its last good colours."""
        themes = load_themes(self.theme_folders)
        self._own_themes |= set(themes.loaded)
        for theme in themes.loaded.values():
            self.register_theme(theme)
        for failure in themes.failed:
            self.complain(str(failure))
