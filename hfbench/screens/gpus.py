"""The GPUs screen: what each card does, or the reason there is none."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from hfbench.gpu.reading import Unavailable, Value
from hfbench.gpu.telemetry import DeviceReading, GpuSnapshot
from hfbench.screens.base import BenchScreen
from hfbench.text import printable
from hfbench.units import show_bytes
from hfbench.widgets.facts_lines import Fact
from hfbench.widgets.facts_table import FactsTable
from hfbench.widgets.help import Help
from hfbench.widgets.notice import Notice
from hfbench.widgets.record_columns import Column
from hfbench.widgets.record_rows import Record
from hfbench.widgets.record_table import RecordTable

COLUMNS = (
    Column("index", "GPU", align="right"),
    Column("name", "Name", flexible=True, min=14, max=30),
    Column("used", "Used", align="right"),
    Column("total", "Total", align="right"),
    Column("util", "Util", align="right"),
    Column("temperature", "Temp", align="right"),
    Column("power", "Power", align="right"),
    Column("limit", "Limit", align="right", priority=1),
    Column("sm", "SM clock", align="right", priority=2),
)


class GpusScreen(BenchScreen):
    """Name, memory, utilisation, temperature and power of each card."""

    help = Help(
        "GPUs",
        "Read once a second through NVML. `n/a` stands where the driver does not answer; the line below says why.",
    )

    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "copy_uuid", "copy UUID", id="gpus.copy")]

    def trail(self) -> tuple[str, ...]:
        """The panel itself."""
        return ("GPUs",)

    def body(self) -> ComposeResult:
        """The cards, and what the driver says of itself."""
        yield Notice()
        yield RecordTable(COLUMNS, empty=" ")
        yield FactsTable(id="driver")

    def on_mount(self) -> None:
        """Show what is known already."""
        self.set_focus(self.query_one(RecordTable))
        if self.bench.machine.gpus is not None:
            self.show_snapshot(self.bench.machine.gpus)
        else:
            self.query_one(Notice).show("looking for GPUs", state="muted")

    def machine_changed(self) -> None:
        """Another sample."""
        super().machine_changed()
        if self.bench.machine.gpus is not None:
            self.show_snapshot(self.bench.machine.gpus)

    def show_snapshot(self, snapshot: GpuSnapshot) -> None:
        """Repaint from a sample."""
        notice, table = self.query_one(Notice), self.query_one(RecordTable)
        if snapshot.reason:
            notice.show(
                f"no GPU: {snapshot.reason}",
                remedy="jobs run on the CPU; this page looks again every second",
                state="warn",
            )
        else:
            notice.clear()
        table.display = bool(snapshot.devices)
        table.show([record_of(device) for device in snapshot.devices])
        facts = [Fact("driver", _text(snapshot.driver)), Fact("CUDA", _text(snapshot.cuda))]
        facts += [Fact(f"GPU {d.index}", why, "warn") for d in snapshot.devices for why in reasons(d)]
        self.query_one(FactsTable).show(facts if snapshot.devices else [])

    async def action_copy_uuid(self) -> None:
        """The UUID of the card under the cursor."""
        snapshot, key = self.bench.machine.gpus, self.query_one(RecordTable).current
        for device in snapshot.devices if snapshot else ():
            if str(device.index) == key:
                await self.copy(_text(device.uuid))


def record_of(device: DeviceReading) -> Record:
    """A card as a row."""
    return Record(
        key=str(device.index),
        cells={
            "index": str(device.index),
            "name": device.reason or _text(device.name).removeprefix("NVIDIA "),
            "used": _number(device.memory.used, "B"),
            "total": _number(device.memory.total, "B"),
            "util": _number(device.utilization.gpu, "%"),
            "temperature": _number(device.temperature, "C"),
            "power": _number(device.power, "W"),
            "limit": _number(device.power_limit, "W"),
            "sm": _number(device.clock_sm, "MHz"),
        },
        states={"name": "error"} if device.reason else {},
    )


def reasons(device: DeviceReading) -> list[str]:
    """Why values of a card are unknown, each reason once."""
    if device.reason:
        return [device.reason]
    values = {
        "memory": device.memory.used,
        "utilisation": device.utilization.gpu,
        "temperature": device.temperature,
        "power": device.power,
    }
    return [f"{name}: {value.reason}" for name, value in values.items() if isinstance(value, Unavailable)]


def _number(value: Value, unit: str) -> str:
    if isinstance(value, Unavailable):
        return "n/a"
    return show_bytes(value) if unit == "B" else f"{value:.0f} {unit}"


def _text(value: str | Unavailable) -> str:
    return f"unknown: {value.reason}" if isinstance(value, Unavailable) else printable(value)
