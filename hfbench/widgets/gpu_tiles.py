"""GPUs as tiles, or as one row each where tiles do not fit; a plain twin of the grid that paints them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hfbench.actions.gpus_text import notes
from hfbench.gpu.reading import Unavailable, Value, known
from hfbench.gpu.telemetry import DeviceReading
from hfbench.text import printable
from hfbench.units import GIB
from hfbench.widgets.cells import Span, clip, fit, spans_width
from hfbench.widgets.glyphs import Glyphs, State

TILE_LINES = 5
LEAST_TILE, WIDEST_TILE = 36, 58
GAP = 2
MARK = 2
UNREAD = "n/a"

NAME, WIDEST_NAME = 9, 22
BAR, WIDEST_BAR = 8, 16
MEMORY, UTIL, TEMP, POWER, CLOCK = 13, 5, 5, 11, 9
LEAST_STATE = 16

Loads = Mapping[int, Sequence[float | None]]
"""The last utilisations of each card by its index, oldest first."""


@dataclass(frozen=True, slots=True)
class Fold:
    """How cards are laid out: so many beside each other, each `lines` high. One line each is a table."""

    columns: int
    lines: int
    width: int
    """Cells of one card."""

    def place(self, number: int) -> tuple[int, int]:
        """Row and column of a card."""
        return divmod(number, self.columns)

    def height(self, cards: int) -> int:
        """Lines for so many cards: a blank line between rows of tiles, a header over a table."""
        rows = -(-cards // self.columns)
        return rows + 1 if self.lines == 1 else rows * (self.lines + 1) - 1


def fold(cards: int, width: int, height: int) -> Fold:
    """Tiles where all of them fit `height` lines, else a table."""
    columns = max(1, min(cards, (width + GAP) // (LEAST_TILE + GAP)))
    tiles = Fold(columns, TILE_LINES, min(WIDEST_TILE, (width - GAP * (columns - 1)) // columns))
    if tiles.width >= LEAST_TILE and tiles.height(cards) <= height:
        return tiles
    return Fold(1, 1, width)


def grid_lines(
    devices: Sequence[DeviceReading], loads: Loads, cursor: int, *, at: Fold, height: int, focused: bool, glyphs: Glyphs
) -> list[list[Span]]:
    """All cards in the lines of their fold; of a table that is too long, the part around the cursor."""
    if at.lines == 1:
        return _table(devices, cursor, at.width, height, focused, glyphs)
    lines: list[list[Span]] = []
    for start in range(0, len(devices), at.columns):
        tiles = [
            tile_lines(
                device, loads.get(device.index, ()), at.width, _mark(start + place == cursor, focused, glyphs), glyphs
            )
            for place, device in enumerate(devices[start : start + at.columns])
        ]
        lines += [[]] if lines else []
        for parts in zip(*tiles, strict=True):
            line: list[Span] = []
            for part in parts:
                line += [(" " * GAP, "")] if line else []
                line += _filled(part, at.width)
            lines.append(line)
    return lines


def tile_lines(
    device: DeviceReading, load: Sequence[float | None], width: int, mark: Span, glyphs: Glyphs
) -> list[list[Span]]:
    """One card in TILE_LINES lines of `width` cells."""
    head: list[Span] = [mark, (f"{device.index} {short_name(device)}", "title")]
    if device.reason:
        lost = _clipped([("  ", ""), (f"{glyphs.error} {printable(device.reason)}", "error")], width, glyphs)
        return [_clipped(head, width, glyphs), lost, [], [], []]
    text, state = summary(device, glyphs)
    memory = f" {memory_text(device)}"
    busy = f"  {_number(device.utilization.gpu) + '%':>4} busy "
    heat = f"  {_number(device.temperature)} C  {_pair(device.power, device.power_limit)} W"
    clock = f"  {_pair(device.clock_sm, device.clock_sm_max)} MHz"
    return [
        _clipped(head, width, glyphs),
        [
            ("  ", ""),
            *_bar(memory_share(device), max(4, min(WIDEST_BAR, width - MARK - len(memory))), glyphs, full=0.95),
            (memory, ""),
        ],
        [(busy + load_line(load, width - len(busy), glyphs), "")],
        _clipped([(heat + clock, "")], width, glyphs),
        _clipped([("  ", ""), (text, state)], width, glyphs),
    ]


def summary(device: DeviceReading, glyphs: Glyphs) -> tuple[str, State]:
    """The worst that is to be said of a card, with its sign; else who works on it."""
    for text, state in notes(device):
        if state in ("error", "warn"):
            found: State = "error" if state == "error" else "warn"
            return f"{glyphs.sign(found)} {text}", found
    processes = known(device.processes) or ()
    ours = sum(bool(each.job) for each in processes)
    told = [f"{ours} job{'s' * (ours != 1)}"] if ours else []
    others = len(processes) - ours
    told += [f"{others} process{'es' * (others != 1)}"] if others else []
    return f" {glyphs.dot} ".join([glyphs.ok, *told]), "ok"


def load_line(load: Sequence[float | None], width: int, glyphs: Glyphs) -> str:
    """The last percentages as one sign each, the lowest for nothing; a value that is not known is a blank."""
    last, signs = list(load)[-width:] if width else [], glyphs.levels[1:]
    top = len(signs) - 1
    return "".join(" " if each is None else signs[round(min(100.0, max(0.0, each)) / 100 * top)] for each in last)


def short_name(device: DeviceReading) -> str:
    """The card's name without its maker's."""
    name = known(device.name)
    return printable(name).removeprefix("NVIDIA ") if name else "GPU"


def memory_share(device: DeviceReading) -> float | None:
    """What is used of the memory; None where one of both is not known."""
    used, total = known(device.memory.used), known(device.memory.total)
    return None if used is None or not total else used / total


def memory_text(device: DeviceReading) -> str:
    """`61.0/141 GiB`."""
    used, total = device.memory.used, device.memory.total
    return f"{_gib(used, 1)}/{_gib(total, 0)} GiB"


def _table(
    devices: Sequence[DeviceReading], cursor: int, width: int, height: int, focused: bool, glyphs: Glyphs
) -> list[list[Span]]:
    first, room = 0, max(1, height - 1)
    if len(devices) > room:
        room = max(1, room - 1)
        first = min(max(0, cursor - room // 2), len(devices) - room)
    shown = devices[first : first + room]
    name, clock = _widths(width)
    head = f"{' ' * MARK}{'GPU':<{3 + name}} {'Memory':<{BAR + 1 + MEMORY}}"
    head += f" {'Util':>{UTIL}} {'Temp':>{TEMP}} {'Power':>{POWER}}" + (f" {'SM MHz':>{CLOCK}}" if clock else "")
    lines: list[list[Span]] = [[(clip(f"{head}  State", width, ellipsis=glyphs.ellipsis), "muted")]]
    for number, device in enumerate(shown, first):
        lines.append(_row(device, _mark(number == cursor, focused, glyphs), name, clock, width, glyphs))
    if hidden := len(devices) - len(shown):
        lines.append([(f"{' ' * MARK}and {hidden} more GPUs: arrows reach them", "muted")])
    return lines


def _widths(width: int) -> tuple[int, bool]:
    """Cells of the name, and whether there is room for the clock."""
    fixed = MARK + 3 + 1 + BAR + 1 + MEMORY + 1 + UTIL + 1 + TEMP + 1 + POWER + 2 + LEAST_STATE
    clock = width - fixed - NAME >= CLOCK + 1
    return max(NAME, min(WIDEST_NAME, width - fixed - (CLOCK + 1) * clock)), clock


def _row(device: DeviceReading, mark: Span, name: int, clock: bool, width: int, glyphs: Glyphs) -> list[Span]:
    head: list[Span] = [mark, (f"{device.index:<3}{fit(short_name(device), name, ellipsis=glyphs.ellipsis)} ", "title")]
    if device.reason:
        return _clipped([*head, (f"{glyphs.error} {printable(device.reason)}", "error")], width, glyphs)
    numbers = f" {memory_text(device):>{MEMORY}} {_number(device.utilization.gpu) + '%':>{UTIL}}"
    numbers += f" {_number(device.temperature) + 'C':>{TEMP}} {_pair(device.power, device.power_limit) + ' W':>{POWER}}"
    numbers += f" {_number(device.clock_sm):>{CLOCK}}" if clock else ""
    line: list[Span] = [*head, *_bar(memory_share(device), BAR, glyphs, full=0.95), (numbers, "")]
    return _clipped([*line, ("  ", ""), summary(device, glyphs)], width, glyphs)


def _mark(here: bool, focused: bool, glyphs: Glyphs) -> Span:
    return (glyphs.cursor.ljust(MARK), "key" if focused else "muted") if here else (" " * MARK, "")


def _bar(share: float | None, width: int, glyphs: Glyphs, *, full: float = 2.0) -> list[Span]:
    if share is None:
        return [(fit(UNREAD, width), "unknown")]
    return [(glyphs.bar(share, width), "warn" if share > full else "accent")]


def _clipped(spans: Sequence[Span], width: int, glyphs: Glyphs) -> list[Span]:
    """Spans cut at their end to `width` cells."""
    line: list[Span] = []
    left = width
    for text, style in spans:
        cut = clip(text, left, ellipsis=glyphs.ellipsis)
        line.append((cut, style))
        left -= spans_width([(cut, style)])
        if cut != text or left <= 0:
            break
    return line


def _filled(spans: Sequence[Span], width: int) -> list[Span]:
    return [*spans, (" " * (width - spans_width(spans)), "")]


def _number(value: Value) -> str:
    return UNREAD if isinstance(value, Unavailable) else f"{value:.0f}"


def _pair(value: Value, most: Value) -> str:
    return _number(value) if isinstance(most, Unavailable) else f"{_number(value)}/{_number(most)}"


def _gib(value: Value, digits: int) -> str:
    return UNREAD if isinstance(value, Unavailable) else f"{value / GIB:.{digits}f}"
