"""How long a slow line is busy with what was written to it, so that no more is painted than it can carry."""

from __future__ import annotations

import os
import re
import termios

BITS = 10
"""Of a byte on a serial line: eight, a start and a stop."""

REST = 1.0
"""How long, by what the last repaint took, the line stays free of repaints that no key asked for: half of it is for
whoever types."""

SERIAL = re.compile(r"/dev/(tty(S|USB|ACM|AMA)|hvc)\d+")
"""Terminals whose speed is true. That of a pseudo-terminal is what some client was set to: macOS says 9600 there."""

SPEEDS = {getattr(termios, name): int(name[1:]) for name in dir(termios) if re.fullmatch(r"B[1-9]\d+", name)}


class LinePace:
    """The clock of one line. A `baud` of 0 is a line as fast as one likes."""

    def __init__(self, baud: int = 0) -> None:
        self.rate = baud / BITS
        """Bytes a second; 0 for any number."""
        self.began = self.free = 0.0
        """When the line began to carry what it carries, and when it has carried it."""

    def wrote(self, size: int, now: float) -> None:
        """So many bytes were given to the line."""
        if not self.rate:
            self.began = self.free = now
            return
        if now >= self.free:
            self.began = self.free = now
        self.free += size / self.rate

    def may_paint(self, now: float, asked: float) -> bool:
        """Whether a repaint would reach its reader without standing in line; `asked` is when a key was last pressed."""
        if not self.rate or asked > self.began:
            return now >= self.free
        return now >= self.free + (self.free - self.began) * REST


def serial_baud(descriptor: int) -> int:
    """The speed of a real serial line; 0 for any other terminal."""
    try:
        if not SERIAL.fullmatch(os.ttyname(descriptor)):
            return 0
        return SPEEDS.get(termios.tcgetattr(descriptor)[5], 0)
    except (OSError, termios.error):
        return 0
