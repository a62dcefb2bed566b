"""The GPUs screen: cards, unknown values with their reasons, and no card at all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hfbench.gpu.reading import Unavailable
from hfbench.gpu.telemetry import DeviceReading, GpuSnapshot, Memory, Utilization
from hfbench.screens.messages import GpusSampled
from hfbench.units import GIB
from hfbench.widgets.machine_strip import MachineStrip


def card(index: int, **changes: Any) -> DeviceReading:
    """A card that answers everything."""
    reading = DeviceReading(
        index=index,
        uuid=f"GPU-{index}",
        name="NVIDIA H200",
        memory=Memory(used=61 * GIB, reserved=GIB, free=79 * GIB, total=141 * GIB),
        utilization=Utilization(gpu=97, memory=50),
        temperature=64,
        power=512,
        power_limit=700,
        clock_sm=1980,
        clock_memory=2619,
    )
    return replace(reading, **changes)


def snapshot(*cards: DeviceReading, reason: str = "") -> GpuSnapshot:
    """A sample."""
    return GpuSnapshot(driver="580.65", cuda="13.0", reason=reason, devices=cards)


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_eight_cards_are_all_shown_with_whole_numbers(bench: Any, until: Any, picture: Any, size: Any) -> None:
    async with bench().run_test(size=size) as pilot:
        pilot.app.post_message(GpusSampled(snapshot(*map(card, range(8))), 0.0))
        await pilot.press("3")
        await until(pilot, lambda: "\n".join(picture(pilot)).count("61.0 GiB") == 8)
        assert "\n".join(picture(pilot)).count("512 W") == 8
        assert "8x H200" in picture(pilot)[0]


async def test_an_unknown_value_is_never_zero_and_its_reason_is_told(bench: Any, until: Any, picture: Any) -> None:
    blind = card(0, power=Unavailable("no permission"), temperature=Unavailable("not supported"))
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.post_message(GpusSampled(snapshot(blind), 0.0))
        await pilot.press("3")
        await until(pilot, lambda: "power: no permission" in "\n".join(picture(pilot)))
        row = next(line for line in picture(pilot) if "H200" in line and "61.0 GiB" in line)
        assert "n/a" in row
        assert " 0 W" not in row


async def test_a_lost_card_costs_only_its_own_row(bench: Any, until: Any, picture: Any) -> None:
    gone = Unavailable("the GPU is lost")
    lost = card(1, reason="the GPU is lost", name=gone, memory=Memory(used=gone, reserved=gone, free=gone, total=gone))
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.post_message(GpusSampled(snapshot(card(0), lost), 0.0))
        await pilot.press("3")
        await until(pilot, lambda: "the GPU is lost" in "\n".join(picture(pilot)))
        assert any("H200" in line and "512 W" in line for line in picture(pilot))


async def test_without_a_card_the_reason_stands_there(bench: Any, until: Any, picture: Any) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.post_message(GpusSampled(snapshot(reason="the driver is not loaded"), 0.0))
        await pilot.press("3")
        await until(pilot, lambda: "no GPU: the driver is not loaded" in "\n".join(picture(pilot)))
        strip = pilot.app.screen.query_one(MachineStrip)
        assert strip.state.reason == "no GPU"


async def test_control_characters_in_a_name_never_reach_the_screen(bench: Any, until: Any, picture: Any) -> None:
    async with bench().run_test(size=(120, 40)) as pilot:
        pilot.app.post_message(GpusSampled(snapshot(card(0, name="H\x1b[31m200\u202e")), 0.0))
        await pilot.press("3")
        await until(pilot, lambda: "\\x1b" in "\n".join(picture(pilot)))
        assert not set("\x1b\u202e") & set("\n".join(picture(pilot)))
