"""Memory explained from the GPUs screen: the action performed in a child, on made-up cards and where there is none."""

from __future__ import annotations

from typing import Any

import pytest
from gpu_readings import card, snapshot

from hfbench.gpu.explain.picture import MemoryPicture, OtherProcess
from hfbench.gpu.explain.rules import explain
from hfbench.gpu.telemetry import GpuProcess
from hfbench.screens.gpu_memory import GpuMemoryScreen
from hfbench.screens.gpus import GpusScreen
from hfbench.screens.messages import GpusSampled
from hfbench.units import GIB
from hfbench.widgets.memory_facts import memory_facts


def test_a_cause_comes_with_its_evidence_and_remedy_before_all_parts() -> None:
    picture = MemoryPicture(
        device="cuda:0",
        failed=True,
        request=20 * GIB,
        total=80 * GIB,
        free=2 * GIB,
        process_used=8 * GIB,
        reserved=7 * GIB,
        allocated=7 * GIB,
        others=(OtherProcess(pid=77, bytes=70 * GIB, who="ann python"), OtherProcess(pid=78, bytes=None)),
    )
    explanation = explain(picture, sources=("the test",))
    facts = memory_facts(explanation)
    assert [each.label for each in facts[:3]] == ["cause", "evidence", "remedy"]
    assert facts[0].state == "error"
    assert explanation.causes[0].remedy == facts[2].value
    lines = [f"{each.label} {' '.join(each.value.split())}" for each in facts]
    assert "memory asked for in one piece 20.0 GiB" in lines
    assert "others pid 77 70.0 GiB ann python" in lines
    assert " pid 78 not told" in lines
    assert "from the test" in lines


def test_where_nothing_is_wrong_it_says_so() -> None:
    facts = memory_facts(explain(MemoryPicture(device="cuda:0", total=80 * GIB, free=80 * GIB), sources=()))
    assert (facts[0].value, facts[0].state) == ("nothing stands out", "ok")


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_e_explains_the_card_under_the_cursor_and_escape_closes(
    bench: Any, until: Any, picture: Any, size: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HFBENCH_DEMO_GPUS", "2")  # also for the child that asks the driver
    async with bench(watch=True).run_test(size=size) as pilot:
        await pilot.press("3")
        await until(pilot, lambda: pilot.app.machine.gpus and pilot.app.machine.gpus.devices)
        await until(pilot, lambda: "demo card" in "\n".join(picture(pilot)[1:]))
        await pilot.press("end", "e")
        await until(pilot, lambda: isinstance(pilot.app.screen, GpuMemoryScreen) and pilot.app.screen.at_rest)
        assert "1 demo card" in picture(pilot)[0]
        explained = [each.picture.device for each in pilot.app.screen.result.explanations]
        assert explained == ["cuda:0", "cuda:1"]
        screen = "\n".join(picture(pilot))
        assert "free on the device" in screen
        assert "80.0 GiB" in screen
        assert "read 0 s ago" in screen or "read 1 s ago" in screen
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, GpusScreen))


async def test_a_job_that_left_the_card_is_no_reason_to_explain_nothing(
    bench: Any, until: Any, picture: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HFBENCH_DEMO_GPUS", "1")
    gone = GpuProcess(pid=4_999_999, kinds=("compute",), memory=GIB, user="ann", command="hfbench", job="abc")
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.post_message(GpusSampled(snapshot(card(0, processes=(gone,))), 0.0))
        await pilot.press("3")
        await until(pilot, lambda: "H200" in "\n".join(picture(pilot)[1:]))
        await pilot.press("e")
        await until(pilot, lambda: isinstance(pilot.app.screen, GpuMemoryScreen) and pilot.app.screen.result)
        assert pilot.app.screen.values == {}
        await until(pilot, lambda: "free on the device" in "\n".join(picture(pilot)))


async def test_where_the_driver_shows_no_card_any_more_the_reason_stands_there(
    bench: Any, until: Any, picture: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    monkeypatch.delenv("HFBENCH_DEMO_GPUS", raising=False)
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.post_message(GpusSampled(snapshot(card(5)), 0.0))
        await pilot.press("3")
        await until(pilot, lambda: "H200" in "\n".join(picture(pilot)[1:]))
        await pilot.press("e")
        await until(pilot, lambda: isinstance(pilot.app.screen, GpuMemoryScreen) and pilot.app.screen._answered)
        screen = " ".join(" ".join(picture(pilot)).split())
        assert "gpus.explain" in screen or "does not show this card now" in screen
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, GpusScreen))


async def test_without_a_card_e_says_there_is_nothing_to_explain(bench: Any, until: Any, toasts: Any) -> None:
    async with bench().run_test(size=(120, 40), notifications=True) as pilot:
        pilot.app.post_message(GpusSampled(snapshot(reason="the driver is not loaded"), 0.0))
        await pilot.press("3")
        await until(pilot, lambda: isinstance(pilot.app.screen, GpusScreen) and pilot.app.screen.is_mounted)
        await pilot.press("e")
        await until(pilot, lambda: "no GPU whose memory" in toasts(pilot))
