"""The GPUs screen: cards, unknown values with their reasons, and no card at all."""

from __future__ import annotations

from typing import Any

import pytest
from gpu_readings import card, snapshot

from hfbench.gpu.reading import Unavailable
from hfbench.gpu.telemetry import GpuProcess, Memory
from hfbench.screens.gpus import GpusScreen
from hfbench.screens.messages import GpusSampled
from hfbench.units import GIB
from hfbench.widgets.active_keys import active_keys
from hfbench.widgets.gpu_grid import GpuGrid
from hfbench.widgets.machine_strip import MachineStrip


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_eight_cards_are_all_shown_with_whole_numbers(bench: Any, until: Any, picture: Any, size: Any) -> None:
    async with bench().run_test(size=size) as pilot:
        pilot.app.post_message(GpusSampled(snapshot(*map(card, range(8))), 0.0))
        await pilot.press("3")
        await until(pilot, lambda: "\n".join(picture(pilot)).count("61.0/141 GiB") == 8)
        assert "\n".join(picture(pilot)).count("512/700 W") == 8
        assert "8x H200" in picture(pilot)[0]


async def test_the_cursor_is_where_it_was_left_and_help_names_no_filter(bench: Any, until: Any, picture: Any) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.post_message(GpusSampled(snapshot(*map(card, range(8))), 0.0))
        for keys in (["3", "down", "down"], ["1", "3"]):
            await pilot.press(*keys)
            await until(pilot, lambda: isinstance(pilot.app.screen, GpusScreen) and pilot.app.screen.is_mounted)
            assert pilot.app.screen.query_one(GpuGrid).cursor == 2
        assert not [key for key in active_keys(pilot.app.screen) if "/" in key.keys]


async def test_an_unknown_value_is_never_zero_and_its_reason_is_told(bench: Any, until: Any, picture: Any) -> None:
    blind = card(0, power=Unavailable("no permission"), temperature=Unavailable("not supported"))
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.post_message(GpusSampled(snapshot(blind), 0.0))
        await pilot.press("3")
        await until(pilot, lambda: "n/a of 700 W" in "\n".join(picture(pilot)))
        await pilot.press("pagedown", "pagedown", "pagedown")
        await until(pilot, lambda: "power: no permission" in "\n".join(picture(pilot)))
        assert " 0 W" not in "\n".join(picture(pilot))


async def test_a_lost_card_costs_only_its_own_row(bench: Any, until: Any, picture: Any) -> None:
    gone = Unavailable("the GPU is lost")
    lost = card(1, reason="the GPU is lost", name=gone, memory=Memory(used=gone, reserved=gone, free=gone, total=gone))
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.post_message(GpusSampled(snapshot(card(0), lost), 0.0))
        await pilot.press("3")
        await until(pilot, lambda: "the GPU is lost" in "\n".join(picture(pilot)))
        assert "512/700 W" in "\n".join(picture(pilot))


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


async def test_arrows_choose_a_card_and_enter_opens_the_job_that_works_on_it(
    bench: Any, until: Any, picture: Any
) -> None:
    ours = GpuProcess(pid=8, kinds=("compute",), memory=GIB, user="ann", command="hfbench", job="abc")
    opened: list[str] = []
    app = bench()
    app.open_job = opened.append
    async with app.run_test(size=(120, 40)) as pilot:
        cards = [card(0), card(1, temperature=81), card(2), card(3, processes=(ours,), temperature=33)]
        pilot.app.post_message(GpusSampled(snapshot(*cards), 0.0))
        await pilot.press("3")
        await until(pilot, lambda: isinstance(pilot.app.screen, GpusScreen) and pilot.app.screen.is_mounted)
        await pilot.press("right")
        await until(pilot, lambda: "81 C" in "\n".join(picture(pilot)) and "GPU 1" in "\n".join(picture(pilot)))
        await pilot.press("enter")
        assert opened == []
        await pilot.press("end", "enter")
        await until(pilot, lambda: opened == ["abc"])
        assert "GPU 3" in "\n".join(picture(pilot))


async def test_old_values_are_told_with_their_age_on_every_screen(bench: Any, until: Any, picture: Any) -> None:
    async with bench().run_test(size=(120, 40)) as pilot:
        late = card(0, stale={"power": 7.0}, waiting="power has not been answered for 7 s")
        pilot.app.post_message(GpusSampled(snapshot(late), 0.0))
        await until(pilot, lambda: "values 7 s old" in picture(pilot)[-2])
        await pilot.press("3")
        await until(pilot, lambda: "x power has not been answered for 7 s" in "\n".join(picture(pilot)))


async def test_a_sample_paints_only_what_it_changed(bench: Any, until: Any, picture: Any) -> None:
    async with bench().run_test(size=(120, 40)) as pilot:
        pilot.app.post_message(GpusSampled(snapshot(*map(card, range(8))), 0.0))
        await pilot.press("3")
        await until(pilot, lambda: "\n".join(picture(pilot)).count("61.0/141 GiB") == 8)
        pilot.app.post_message(GpusSampled(snapshot(*map(card, range(8))), 1.0))
        await pilot.pause()
        painted: list[Any] = []
        grid = pilot.app.screen.query_one(GpuGrid)
        grid.refresh = lambda *regions, **more: painted.extend(regions)
        pilot.app.post_message(GpusSampled(snapshot(card(0, power=99), *map(card, range(1, 8))), 2.0))
        await until(pilot, lambda: painted)
        hot = [region for region in painted if region.y == 3]
        assert [(region.x, region.width < 40) for region in hot] == [(0, True)]
