"""The tour: a card on every screen that says what is seen and what to press, and follows where the user goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.timer import Timer

from hfbench.screens.base import BenchScreen
from hfbench.screens.tour_stops import STOPS, Stop
from hfbench.widgets.tour_card import TourCard

if TYPE_CHECKING:
    from hfbench.app import Workbench

LOOKS = 0.2
"""Seconds between two looks at where the user is; nothing is painted unless that changed."""


class Tour:
    """One walk through the stops. It follows where the user goes; who skips a stop is brought to the next one, as its
    keys would do, but that no job is started."""

    def __init__(self, app: Workbench) -> None:
        self.app = app
        self.at = 0
        self._been = False
        """Whether the user was where the stop is about while it was shown."""
        self._timer: Timer = app.set_interval(LOOKS, self.look)
        self._shown: list[tuple[BenchScreen, int, bool]] = []
        self.look()

    @property
    def stop(self) -> Stop:
        """Where it stands."""
        return STOPS[self.at]

    def look(self) -> None:
        """Go on when the user did what the stop asks for, and have every screen show the stop."""
        here = self.stop.here(self.app)
        self._been = self._been or here
        if self.stop.left(self.app) and (self._been or not self.stop.by_leaving):
            self._go(self.at + 1)
            here = self._been = self.stop.here(self.app)
        screens = [each for each in self.app.screen_stack if isinstance(each, BenchScreen) and each.is_mounted]
        showing = [(each, self.at, here) for each in screens]
        if showing != self._shown:
            self._shown = showing
            for screen in screens:
                self._card(screen).show(f"tour {self.at + 1}/{len(STOPS)}  {self.stop.title}", self._words(here))

    def step(self, by: int) -> None:
        """A stop forward or back, and its place with it; past the last one the tour ends."""
        if self.at + by >= len(STOPS):
            self.end()
            return
        self._go(max(0, self.at + by))
        if not self.stop.here(self.app) or (self.stop.left(self.app) and not self.stop.by_leaving):
            self.stop.bring(self.app)
        self.look()

    def end(self) -> None:
        """Take the cards away."""
        self._timer.stop()
        self.app.tour = None
        for screen in self.app.screen_stack:
            for card in screen.query(TourCard):
                card.remove()

    def _go(self, place: int) -> None:
        self.at, self._been = place, False

    def _words(self, here: bool) -> str:
        return self.stop.words(self.app.config.keys, here=here)

    def _card(self, screen: BenchScreen) -> TourCard:
        for card in screen.query(TourCard):
            return card
        card = TourCard()
        screen.mount(card, after="#body")
        return card
