"""Key to paint in a tensor table of a million rows, in a real pseudo-terminal, and the filter's answer per key.

`python bench/tensor_table.py` measures and keeps the records; `--app` is the program that is measured,
`--bare` its peer.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from itertools import cycle

from claims import Claim, finish, run
from terminal import Terminal

ROWS = 1_000_000
QUERY = "experts.38"

PEER = "as much as in a bare line-API table that computes nothing"

LINE = Claim(
    name="tensor-table-line", sentence=f"a cursor key in {ROWS:,} tensors costs at most 1.5x {PEER}", bound=1.5
)
PAGE = Claim(name="tensor-table-page", sentence=f"a page key in {ROWS:,} tensors costs at most 1.5x {PEER}", bound=1.5)
END = Claim(name="tensor-table-end", sentence=f"home and end in {ROWS:,} tensors cost at most 1.5x {PEER}", bound=1.5)
FILTER = Claim(
    name="tensor-table-filter",
    sentence=f"each key of a filter over {ROWS:,} tensors is painted within 50 ms",
    bound=0.050,
)


def bare() -> None:
    """The peer: the least that Textual needs to scroll lines with a cursor."""
    from rich.segment import Segment
    from rich.style import Style
    from textual.app import App, ComposeResult
    from textual.binding import Binding
    from textual.geometry import Size
    from textual.scroll_view import ScrollView
    from textual.strip import Strip

    class Lines(ScrollView, can_focus=True, inherit_bindings=False):
        BINDINGS = [
            Binding("down", "move(1)"),
            Binding("pagedown", "move(38)"),
            Binding("end", "move(1000000000)"),
            Binding("home", "move(-1000000000)"),
        ]
        cursor = 0

        def on_mount(self) -> None:
            self.virtual_size = Size(0, ROWS)

        def action_move(self, rows: int) -> None:
            before, self.cursor = self.cursor, max(0, min(ROWS - 1, self.cursor + rows))
            top = self.scroll_offset.y
            if not top <= self.cursor < top + self.size.height:
                y = self.cursor if self.cursor < top else self.cursor - self.size.height + 1
                self.scroll_to(y=y, animate=False)
            self.refresh_line(before)
            self.refresh_line(self.cursor)

        def render_line(self, y: int) -> Strip:
            row = y + self.scroll_offset.y
            text = f"  model.layers.{row % 61}.mlp.experts.{row % 384}.gate_proj.{row:<60} F8_E4M3  7168x2048  14.0 MiB"
            return Strip([Segment(text, Style(reverse=row == self.cursor))]).adjust_cell_length(self.size.width)

    class Bare(App[None]):
        def compose(self) -> ComposeResult:
            yield Lines()

    Bare().run()


def app() -> None:
    """A screen with the filter bar and the table alone."""
    from textual.app import App, ComposeResult

    from hfbench.models.columns import TensorColumns
    from hfbench.widgets.filter_bar import FilterBar
    from hfbench.widgets.tensor_table import TensorTable

    columns = TensorColumns()
    parts = ("gate", "up", "down")
    columns.add_shard(
        "one",
        (
            (
                f"model.layers.{row % 61}.mlp.experts.{row % 384}.{parts[row % 3]}_proj.{row}",
                "F8_E4M3",
                (7168, 2048),
                0,
                14 << 20,
            )
            for row in range(ROWS)
        ),
    )

    class Table(App[None]):
        BINDINGS = [("slash", "filter", "filter")]

        def compose(self) -> ComposeResult:
            yield FilterBar()
            yield TensorTable(columns)

        def on_mount(self) -> None:
            self.query_one(TensorTable).focus()

        def on_filter_bar_changed(self, event: FilterBar.Changed) -> None:
            self.query_one(TensorTable).filter = event.text

        def action_filter(self) -> None:
            self.query_one(FilterBar).open()

    Table().run()


def measure() -> None:
    """Press keys in running programs, ours and the peer in turns; every sample is kept."""
    notes = {"rows": ROWS, "size": "120x40"}
    records = []
    with Terminal([sys.executable, __file__, "--bare"]) as peer, Terminal([sys.executable, __file__, "--app"]) as ours:
        for terminal in (peer, ours):
            terminal.wait_for("model.layers")
            terminal.drain(1.0)
        for claim, keys in ((LINE, ("down",)), (PAGE, ("pagedown",)), (END, ("end", "home"))):
            press, sizes = pressing(ours, *keys)
            record = run(claim, press, pressing(peer, *keys)[0], rounds=20, warmup=2, notes=notes)
            records.append(record)
            median = statistics.median(record.subject) * 1e3
            print(f"  {median:.1f} ms, {statistics.median(sizes):.0f} bytes a repaint")
        ours.press("/")
        typed = [*QUERY, *["backspace"] * len(QUERY)]
        record = run(FILTER, pressing(ours, *typed)[0], rounds=len(typed) * 2, warmup=0, notes=notes)
        records.append(record)
        print(f"  slowest key {max(record.subject) * 1e3:.1f} ms, memory {ours.peak_bytes() / 2**20:.0f} MiB")
    finish(*records)


def pressing(terminal: Terminal, *keys: str) -> tuple[Callable[[], float], list[int]]:
    """A measure that presses the keys in turn, and the bytes each repaint took."""
    sizes: list[int] = []
    turn = cycle(keys)

    def press() -> float:
        painted = terminal.press(next(turn))
        sizes.append(len(painted.output))
        return painted.seconds

    return press, sizes


if __name__ == "__main__":
    {"--app": app, "--bare": bare}.get(sys.argv[-1], measure)()
