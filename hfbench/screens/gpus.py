"""The GPUs screen: what each card does and all that is known of one, or the reason there is none."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize

from hfbench.gpu.reading import Unavailable
from hfbench.gpu.telemetry import GpuSnapshot
from hfbench.screens.base import BenchScreen
from hfbench.screens.gpu_memory import GpuMemoryScreen
from hfbench.text import printable
from hfbench.widgets.facts_lines import Fact, facts_lines
from hfbench.widgets.glyphs import glyphs_of
from hfbench.widgets.gpu_facts import card_facts
from hfbench.widgets.gpu_grid import GpuGrid
from hfbench.widgets.help import Help
from hfbench.widgets.notice import Notice
from hfbench.widgets.span_view import SpanView

FRAME = 3
"""Lines of title, strip and keys."""

LEAST_GRID, LEAST_DETAIL = 3, 7
"""Lines kept for the cards, and for what is told of one of them."""


class GpusScreen(BenchScreen):
    """Cards as tiles or rows, and the one under the cursor in full."""

    help = Help(
        "GPUs",
        "Read once a second through NVML; values that change slowly every five. A value the driver does not give is "
        "`n/a`, one it gave some time ago is told with its age. A driver that hangs holds nothing up.\n"
        "`e` explains where the memory of the card under the cursor went, and what to do.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("e", "explain", "explain memory", id="gpus.explain"),
        Binding("y", "copy_uuid", "copy UUID", id="gpus.copy"),
    ]

    DEFAULT_CSS = "GpusScreen SpanView { margin-top: 1; }"

    def trail(self) -> tuple[str, ...]:
        """The panel itself."""
        return ("GPUs",)

    def body(self) -> ComposeResult:
        """Why there is none, the cards, and one of them."""
        yield Notice()
        yield GpuGrid()
        yield SpanView()

    def on_mount(self) -> None:
        """Show what is known already."""
        self.query_one(SpanView).can_focus = False  # the keys stay with the cards
        self.query_one(GpuGrid).cursor = self.bench.places.card
        self.set_focus(self.query_one(GpuGrid))
        if self.bench.machine.gpus is not None:
            self.show_snapshot(self.bench.machine.gpus)
        else:
            self.query_one(Notice).show("looking for GPUs", state="muted")

    def machine_changed(self) -> None:
        """Another sample."""
        super().machine_changed()
        if self.bench.machine.gpus is not None:
            self.show_snapshot(self.bench.machine.gpus)

    def on_resize(self, event: Resize) -> None:
        """Fold anew."""
        super().on_resize(event)
        if self.is_mounted and self.bench.machine.gpus is not None:
            self.call_after_refresh(self.machine_changed)

    def show_snapshot(self, snapshot: GpuSnapshot) -> None:
        """Repaint from a sample."""
        notice, grid = self.query_one(Notice), self.query_one(GpuGrid)
        if snapshot.reason:
            remedy = "jobs run on the CPU; this page looks again every second"
            notice.show(f"no GPU: {snapshot.reason}", remedy=remedy, state="warn")
        elif snapshot.demo:
            notice.show("these cards are made up", remedy="unset HFBENCH_DEMO_GPUS to see what is here", state="warn")
        else:
            notice.clear()
        grid.display = bool(snapshot.devices)
        room = self.app.size.height - FRAME - LEAST_DETAIL - (notice.size.height if notice.display else 0)
        grid.show(snapshot.devices, self.bench.machine.loads, max(room, LEAST_GRID))
        self._show_card(snapshot)

    @on(GpuGrid.Moved)
    def _moved(self, message: GpuGrid.Moved) -> None:
        self.bench.places.card = message.index
        if self.bench.machine.gpus is not None:
            self._show_card(self.bench.machine.gpus)
            self.query_one(SpanView).action_scroll_ends(-1)

    @on(GpuGrid.Scrolled)
    def _scrolled(self, message: GpuGrid.Scrolled) -> None:
        self.query_one(SpanView).action_scroll_pages(message.pages)

    @on(GpuGrid.Chosen)
    def _chosen(self, message: GpuGrid.Chosen) -> None:
        processes = message.device.processes
        jobs = [each.job for each in processes if each.job] if not isinstance(processes, Unavailable) else []
        if jobs:
            self.bench.open_job(jobs[0])
        else:
            self.notify("no job of hfbench works on this GPU", markup=False)

    def action_explain(self) -> None:
        """A page on the memory of the card under the cursor."""
        device = self.query_one(GpuGrid).current
        if device is not None:
            self.app.push_screen(GpuMemoryScreen(device))
        else:
            self.notify("there is no GPU whose memory could be explained")

    async def action_copy_uuid(self) -> None:
        """The UUID of the card under the cursor."""
        device = self.query_one(GpuGrid).current
        if device is not None:
            await self.copy(_text(device.uuid))

    def _show_card(self, snapshot: GpuSnapshot) -> None:
        grid, glyphs = self.query_one(GpuGrid), glyphs_of(self.app)
        device = grid.current
        facts: list[Fact] = []
        if device is not None:
            load = () if grid.shows_loads else self.bench.machine.loads.get(device.index, ())
            facts = [
                *card_facts(device, load, glyphs),
                Fact("driver", f"{_text(snapshot.driver)}, CUDA {_text(snapshot.cuda)}"),
            ]
            name = _text(device.name) if not device.reason else ""
            facts.insert(0, Fact(f"GPU {device.index}", name))
        self.query_one(SpanView).show(lambda width: facts_lines(facts, width, glyphs))


def _text(value: str | Unavailable) -> str:
    return f"unknown: {value.reason}" if isinstance(value, Unavailable) else printable(value)
