"""The page that explains where the memory of one GPU went, by the action gpus.explain."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message

from hfbench.actions.aside import Aside
from hfbench.actions.params import command_line
from hfbench.actions.registry import find
from hfbench.errors import HfbenchError, UsageError
from hfbench.gpu.reading import known
from hfbench.screens.background import Background, Stopped
from hfbench.screens.base import BenchScreen
from hfbench.text import printable
from hfbench.units import show_ago
from hfbench.widgets.facts_lines import Fact, facts_lines
from hfbench.widgets.glyphs import glyphs_of
from hfbench.widgets.help import Help
from hfbench.widgets.memory_facts import memory_facts
from hfbench.widgets.notice import Notice
from hfbench.widgets.span_view import SpanView

if TYPE_CHECKING:
    from hfbench.gpu.explain.result import ExplainResult
    from hfbench.gpu.telemetry import DeviceReading

ACTION = "gpus.explain"


@dataclass
class Explained(Message):
    """The action has answered."""

    result: ExplainResult


@dataclass
class NotExplained(Message):
    """Why there is no answer."""

    error: HfbenchError


class GpuMemoryScreen(BenchScreen):
    """Causes with their evidence and remedy, then every part of the memory that is known."""

    help = Help(
        "Memory explained",
        "What holds the memory of this GPU, as far as the driver tells it; where a job of hfbench works on it, what "
        "that job's allocator last told too. `u` looks again, `y` copies the command, `escape` closes.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("u", "update", "update", id="gpu-memory.update"),
        Binding("y", "copy_command", "copy command", id="gpu-memory.copy"),
        Binding("escape", "back", "close", id="screen.back"),
    ]

    def __init__(self, device: DeviceReading) -> None:
        super().__init__()
        self.index = device.index
        self.card = str(known(device.name) or "")
        ours = [each.pid for each in known(device.processes) or () if each.job]
        self.values: dict[str, object] = {"pid": ours[0]} if ours else {}
        self.result: ExplainResult | None = None
        self.read_at: float | None = None
        """When the memory was looked at (time.time())."""
        self._asking = Background(self, NotExplained)
        self._answered = False

    @property
    def at_rest(self) -> bool:
        """Explained, or told why not."""
        return super().at_rest and self._answered

    def trail(self) -> tuple[str, ...]:
        """Which card."""
        return ("GPUs", printable(f"{self.index} {self.card}".rstrip()), "memory")

    def status(self) -> tuple[str, ...]:
        """How old the figures are."""
        age = () if self.read_at is None else (f"read {show_ago(max(0.0, time.time() - self.read_at))}",)
        return (*age, *super().status())

    def body(self) -> ComposeResult:
        """Trouble, and the page."""
        yield Notice()
        yield SpanView()

    def on_mount(self) -> None:
        """Ask at once."""
        self.set_focus(self.query_one(SpanView))
        self.set_interval(1.0, self._tick)
        self.action_update()

    def _tick(self) -> None:
        if self.in_front and self.read_at is not None:
            self.refresh_frame()

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._asking.stop()

    def action_update(self) -> None:
        """Look again; what was told stays until the answer comes."""
        self._answered = False
        self._asking.start(self.explain)
        self._paint()

    def explain(self, stopped: Stopped, post: Callable[[Message], None]) -> None:
        """In a child process: the driver may hang, and a process's maps are read."""
        with Aside() as aside:
            try:
                result = aside.ask(ACTION, self.values, stopped)
            except UsageError:  # the process of the job has left the card
                self.values = {}
                result = aside.ask(ACTION, {}, stopped)
            post(Explained(result))

    async def action_copy_command(self) -> None:
        """The command that tells the same."""
        await self.copy(command_line(["hfbench", *ACTION.split(".")], find(ACTION).params, self.values))

    @on(Explained)
    def _explained(self, message: Explained) -> None:
        self.result, self._answered, self.read_at = message.result, True, time.time()
        if not self.app.is_running:
            return  # leaving: the widgets are gone already
        notice, gpus = self.query_one(Notice), self.bench.machine.gpus
        notice.show("these cards are made up", state="warn") if gpus and gpus.demo else notice.clear()
        self.refresh_frame()
        self._paint()

    @on(NotExplained)
    def _not_explained(self, message: NotExplained) -> None:
        self._answered = True
        if not self.app.is_running:
            return
        self.query_one(Notice).show_error(message.error)
        self._paint()

    def _paint(self) -> None:
        facts, glyphs = self._facts(), glyphs_of(self.app)
        self.query_one(SpanView).show(lambda width: facts_lines(facts, width, glyphs))

    def _facts(self) -> list[Fact]:
        if self.result is None:
            return [] if self._answered else [Fact("", "looking at the memory ...", "muted")]
        told = [each for each in self.result.explanations if each.picture.device == f"cuda:{self.index}"]
        if told:
            return memory_facts(told[0])
        return [Fact("memory", self.result.reason or "the driver does not show this card now", "unknown")]
