"""The table of a plan, and the part of it that is seen."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from hfbench.widgets.help import Help
from hfbench.widgets.plan_rows import COLUMNS
from hfbench.widgets.record_table import RecordTable


class PlanTable(RecordTable, inherit_bindings=False):
    """Targets that differ in layer, expert and rank alone are one row; `o` stays with the screen."""

    help = Help(
        "Plan",
        "A row is what becomes of tensors of one kind, in all layers and on all ranks; `*` stands for their numbers. "
        "Below are tensors that are left out, notes, and the flags to launch Megatron with. `enter` tells a row in "
        "full, `/` filters: every word must occur in a row.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("down,j", "move(1)", "down", show=False),
        Binding("pageup", "page(-1)", "page up", show=False),
        Binding("pagedown", "page(1)", "page down", show=False),
        Binding("home", "first", "first", show=False),
        Binding("end", "last", "last", show=False),
        Binding("enter", "choose", "row in full", id="convert.row"),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(COLUMNS, id=id)
