"""The Compare screen over job folders with made-up samples, compared by the real action in its child process."""

from __future__ import annotations

from typing import Any

from measured_runs import make_job, result, times

from hfbench.screens.compare import CompareScreen, CompareTable
from hfbench.screens.job import JobScreen
from hfbench.screens.jobs import JobsScreen
from hfbench.screens.watchers import Watchers
from hfbench.widgets.list_and_detail import ListAndDetail


async def compared(pilot: Any, until: Any) -> CompareScreen:
    """The page, once the comparison is there."""
    await until(pilot, lambda: isinstance(pilot.app.screen, CompareScreen) and pilot.app.screen._asked)
    screen: CompareScreen = pilot.app.screen
    return screen


def text(picture: Any, pilot: Any) -> str:
    return " ".join(" ".join(picture(pilot)).split())


def row_of(picture: Any, pilot: Any, metric: str) -> str:
    """The line of a metric in the table."""
    found: str = next(line for line in picture(pilot) if line.strip(" >").split()[:1] == [metric])
    return found


async def test_differences_come_first_then_each_metric_with_ratio_interval_and_verdict(
    bench: Any, until: Any, picture: Any
) -> None:
    slow = make_job(result(times(0.010)), number=1)
    fast = make_job(result(times(0.005, seed=2)), number=2, params={"model": "./smol", "dtype": "fp32"})
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.open_compare([slow, fast])
        screen = await compared(pilot, until)
        rows = screen.query_one(CompareTable).rows
        keys = [rows[at].key.partition(":")[0] for at in range(len(rows))]
        assert keys == sorted(keys), "differences before metrics"
        assert rows[0].key == "difference:0"
        assert any("dtype" in line and "! differs" in line for line in picture(pilot))
        tpot = row_of(picture, pilot, "tpot")
        assert "ok FASTER" in tpot
        assert "0.50" in tpot
        assert ".." in tpot
        await pilot.press("x")
        await until(pilot, lambda: screen.sides == (fast, slow) and screen._asked)
        assert "x SLOWER" in row_of(picture, pilot, "tpot")


async def test_what_spoils_a_verdict_stands_beside_it_and_in_full_below(bench: Any, until: Any, picture: Any) -> None:
    throttled = [{"word": "throttled", "detail": "the card was slowed by heat", "next": "let it cool down"}]
    a = make_job(result(times(0.010)), number=1)
    b = make_job(result(times(0.005, seed=2), verdicts=throttled), number=2)
    async with bench().run_test(size=(120, 40)) as pilot:
        pilot.app.open_compare([a, b])
        screen = await compared(pilot, until)
        table = screen.query_one(CompareTable)
        assert table.move_to("metric:0:0")
        await until(pilot, lambda: "slowed by heat" in text(picture, pilot))
        assert "spoiled by ! B: throttled" in text(picture, pilot)
        assert "~ UNDECIDED !" in row_of(picture, pilot, "tpot")
        assert "it would have been FASTER" in text(picture, pilot)
        await pilot.press("enter")
        await until(pilot, lambda: screen.query_one(ListAndDetail).detail.has_focus)


async def test_several_are_compared_with_the_first_pair_by_pair(bench: Any, until: Any, picture: Any) -> None:
    jobs = [make_job(result(times(0.010 * number, seed=number)), number=number) for number in (1, 2, 3)]
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.open_compare(jobs)
        await compared(pilot, until)
        assert "pair 1 of 2, n shows the next" in text(picture, pilot)
        await pilot.press("n")
        await until(pilot, lambda: "C/A" in text(picture, pilot))
        assert "pair 2 of 2" in text(picture, pilot)


async def test_what_cannot_be_compared_is_one_sentence(bench: Any, until: Any, picture: Any) -> None:
    a = make_job(result(times(0.010)), number=1)
    async with bench().run_test(size=(80, 24)) as pilot:
        pilot.app.open_compare([a, "nothing-of-that-name"])
        screen = await compared(pilot, until)
        assert screen.result is None
        assert "nothing-of-that-name" in text(picture, pilot)


async def test_the_page_of_a_job_is_compared_with_what_is_marked_or_becomes_the_first(
    bench: Any, until: Any, picture: Any, toasts: Any
) -> None:
    one, two = (make_job(result(times(0.010, seed=number)), number=number) for number in (1, 2))
    async with bench(watch=True).run_test(size=(80, 24), notifications=True) as pilot:
        pilot.app.watchers.start()
        pilot.app.open_job(one)
        await until(pilot, lambda: isinstance(pilot.app.screen, JobScreen) and pilot.app.screen.snapshot)
        await pilot.press("equals_sign")
        await until(pilot, lambda: isinstance(pilot.app.screen, JobsScreen))
        assert "mark another with space" in " ".join(toasts(pilot).split())
        pilot.app.open_job(two)
        await until(pilot, lambda: isinstance(pilot.app.screen, JobScreen) and pilot.app.screen.snapshot)
        await pilot.press("equals_sign")
        assert (await compared(pilot, until)).sides == (one, two)


async def test_jobs_are_marked_in_their_list_and_compared_from_there(
    bench: Any, until: Any, picture: Any, toasts: Any
) -> None:
    jobs = {make_job(result(times(0.010, seed=number)), number=number) for number in (1, 2)}
    async with bench(watch=True).run_test(size=(80, 24), notifications=True) as pilot:
        assert isinstance(pilot.app.watchers, Watchers)
        pilot.app.watchers.start()
        await pilot.press("2")
        await until(pilot, lambda: isinstance(pilot.app.screen, JobsScreen) and len(pilot.app.machine.known_jobs) == 2)
        await pilot.press("space", "equals_sign")
        await until(pilot, lambda: "mark two jobs or more" in toasts(pilot))
        await until(pilot, lambda: any("+ 00000" in line for line in picture(pilot)))
        await pilot.press("down", "space", "equals_sign")
        screen = await compared(pilot, until)
        assert set(screen.sides) == jobs
        assert screen.result is not None
