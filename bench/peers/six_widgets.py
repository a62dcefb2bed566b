"""The peer of the first frame: an application with six stock widgets of Textual and nothing else."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.widgets import DataTable, Footer, Header, Input, Tab, Tabs, Tree

ROWS = 200


class SixWidgets(App[None]):
    """What a careful beginner would put on a first screen."""

    TITLE = "six widgets"
    BINDINGS = [Binding("q", "quit", "quit"), Binding("d", "quit", "details")]
    CSS = "DataTable { height: 1fr; } Tree { height: 6; }"

    def compose(self) -> ComposeResult:
        yield Header()
        yield Input(placeholder="filter")
        yield Tabs(Tab("Tensors"), Tab("Files"), Tab("Runs"))
        yield DataTable()
        yield Tree("folder")
        yield Footer()

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        table.add_columns("name", "dtype", "shape", "bytes")
        table.add_rows((f"model.layers.{row}.weight", "BF16", "4096x4096", "33,554,432") for row in range(ROWS))
        tree = self.query_one(Tree)
        for number in range(5):
            tree.root.add_leaf(f"model-{number}.safetensors")
        tree.root.expand()
        table.focus()


if __name__ == "__main__":
    SixWidgets().run()
