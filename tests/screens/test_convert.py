"""The Convert screen: a plan at once, impossible layouts explained, the conversion and its proof as real jobs."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hf_models import checkpoint, written
from textual.widgets import Input

from hfbench.actions.convert_megatron import ConvertMegatron
from hfbench.jobs.run import Run
from hfbench.screens.choose_model import ChooseModel
from hfbench.screens.confirm import AskText
from hfbench.screens.convert import ConvertScreen
from hfbench.screens.job import JobScreen
from hfbench.widgets.convert_chooser import ConvertChooser
from hfbench.widgets.convert_panes import RowDetail, Walls
from hfbench.widgets.plan_table import PlanTable

pytest.importorskip("numpy")


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """A llama with 4 heads and 2 key-value heads in 4 layers."""
    return written(tmp_path / "tiny", checkpoint("llama"))


def to_megatron(model: Path, out: Path, **more: Any) -> Path:
    ConvertMegatron(model=str(model), out=out, **more).perform(Run())
    return out


def planned(pilot: Any) -> bool:
    """The page shows the plan of what is set up, or why there is none, and no job is under way."""
    screen = pilot.app.screen
    if not isinstance(screen, ConvertScreen) or screen.view.planning:
        return False
    return not any(job is not None and job.live for job in (screen.view.conversion, screen.view.proof))


def told(picture: Any, pilot: Any) -> str:
    """All that is on the screen, with one space for any white space."""
    return " ".join("\n".join(picture(pilot)).split())


async def opened(pilot: Any, until: Any, reference: Path) -> ConvertScreen:
    pilot.app.open_convert(str(reference))
    await until(pilot, lambda: planned(pilot))
    screen: ConvertScreen = pilot.app.screen
    return screen


async def answer(pilot: Any, until: Any, key: str, text: str) -> None:
    """Press a key that asks, and answer."""
    await pilot.press(key)
    await until(pilot, lambda: isinstance(pilot.app.screen, AskText))
    pilot.app.screen.query_one(Input).value = text
    await pilot.press("enter")


async def test_choose_convert_prove_and_find_it_again(
    bench: Any, until: Any, picture: Any, tiny: Path, tmp_path: Path
) -> None:
    async with bench(str(tiny), watch=True).run_test(size=(80, 24)) as pilot:
        await pilot.press("C")
        await until(pilot, lambda: planned(pilot))
        await pilot.press("t", "p", "w")
        await until(pilot, lambda: planned(pilot))
        screen = pilot.app.screen
        assert [rank.name for rank in screen.view.choice().ranks] == [
            f"mp_rank_0{t}_00{p}" for p in (0, 1) for t in (0, 1)
        ]
        await until(pilot, lambda: "4 ranks of" in told(picture, pilot))
        assert "*.linear_qkv" in told(picture, pilot)
        assert "nothing to prove yet" in told(picture, pilot)
        out = tmp_path / "tiny-megatron-tp2-pp2"
        assert not out.exists()  # a plan writes nothing
        await pilot.press("x")
        await until(pilot, lambda: screen.view.made and screen.view.made.finished, 120)
        assert (out / "release" / "mp_rank_01_001" / "model_optim_rng.pt").is_file()
        await until(pilot, lambda: "convert ok llama:" in told(picture, pilot))
        await pilot.press("V")
        await until(pilot, lambda: screen.view.proven and screen.view.proven.finished, 120)
        await until(pilot, lambda: "proof ok proven by weights" in told(picture, pilot))
        assert "weights ok proven" in told(picture, pilot)
        assert Path(screen.view.proven.result.reports[0]).is_file()
        job = screen.view.made.job
        await until(pilot, lambda: {job, screen.view.proven.job} <= {row.id for row in pilot.app.machine.known_jobs})
        await pilot.press("escape", "C")
        await until(pilot, lambda: planned(pilot) and pilot.app.screen.view.proven)
        again = pilot.app.screen
        assert again is not screen
        assert (again.view.wish.tp, again.view.wish.pp) == (2, 2)
        assert again.view.made.job == job
        await until(pilot, lambda: "proof ok proven by weights" in told(picture, pilot))
        await pilot.press("b")
        await until(pilot, lambda: planned(pilot) and pilot.app.screen is not again)
        assert pilot.app.screen.view.source.megatron
        await until(pilot, lambda: "back to Hugging Face" in told(picture, pilot))


async def test_an_impossible_layout_is_explained_in_place_and_the_keys_go_on(
    bench: Any, until: Any, picture: Any, tiny: Path
) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, until, tiny)
        await pilot.press("t", "t")
        await until(pilot, lambda: "x 4 attention heads do not divide by --tp 3" in told(picture, pilot))
        assert "use --tp 1 or 2" in told(picture, pilot)
        assert not screen.query_one(PlanTable).display
        assert screen.view.choice().ranks == ()
        await pilot.press("x")
        assert screen.view.conversion is None
        await pilot.press("T")
        await until(pilot, lambda: planned(pilot) and screen.query_one(PlanTable).display)
        await until(pilot, lambda: "do not divide" not in told(picture, pilot))
        assert len(screen.view.choice().ranks) == 2
        await pilot.press("F")
        await until(pilot, lambda: "1 file of" in told(picture, pilot))
        assert "llama to safetensors" in told(picture, pilot)
        assert screen.view.wish.folder.endswith("tiny-safetensors")


async def test_uneven_stages_are_asked_for_and_mend_what_was_refused(
    bench: Any, until: Any, picture: Any, tiny: Path
) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, until, tiny)
        await pilot.press("p", "p")
        await until(pilot, lambda: "use --first-stage-layers 2" in told(picture, pilot))
        await answer(pilot, until, "s", "two")
        await until(pilot, lambda: "write for example 7,8" in told(picture, pilot))
        await answer(pilot, until, "s", "2,1")
        await until(pilot, lambda: planned(pilot) and screen.view.refusal is None)
        assert screen.view.wish.stages == (2, 1)
        assert len(screen.view.choice().ranks) == 3


async def test_the_cursor_shows_where_keys_go(bench: Any, until: Any, picture: Any, tiny: Path) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        await opened(pilot, until, tiny)
        shown = []
        for key in ("", "tab", "shift+tab"):
            await pilot.press(*filter(None, [key]))
            shown.append("> t TP" in "\n".join(picture(pilot)))
        assert shown == [True, False, True]


async def test_arrows_turn_what_the_cursor_is_on_and_the_command_says_the_same(
    bench: Any, until: Any, picture: Any, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[str] = []

    async def copy(self: Any, text: str) -> None:
        copied.append(text)

    monkeypatch.setattr(ConvertScreen, "copy", copy)
    async with bench().run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, until, tiny)
        assert isinstance(screen.focused, ConvertChooser)
        await pilot.press("right", "down", "right")
        await answer(pilot, until, "o", "/made/here")
        await until(pilot, lambda: planned(pilot) and screen.view.planned.out)
        await pilot.press("y", "Y")
        await until(pilot, lambda: len(copied) == 2)
        assert copied[0].split()[:3] == ["hfbench", "convert", "megatron"]
        assert {"--tp 2", "--pp 2", "--out /made/here"} <= set(map(" ".join, pairwise(copied[0].split())))
        assert copied[1].startswith(f"hfbench verify {tiny} /made/here")


async def test_a_row_is_told_in_full_and_rows_are_filtered(bench: Any, until: Any, picture: Any, tiny: Path) -> None:
    async with bench(ascii=True).run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, until, tiny)
        await pilot.press("tab", "/")
        await pilot.press(*"fc1", "enter", "enter")
        table, detail = screen.query_one(PlanTable), screen.query_one(RowDetail)
        await until(pilot, lambda: detail.display and "made of" in told(picture, pilot))
        assert 0 < table.row_count() < table.total
        assert all("fc1" in table.rows[row].cells["target"] for row in range(table.row_count()))
        assert "model.layers.*.post_attention_layernorm" in told(picture, pilot).replace(" ", "")
        assert told(picture, pilot).isascii()
        await pilot.press("escape")
        assert not detail.display
        assert isinstance(pilot.app.screen, ConvertScreen)
        await pilot.press("escape")
        assert table.row_count() == table.total


async def test_a_checkpoint_of_megatron_opens_the_way_back_also_from_what_it_carries(
    bench: Any, until: Any, picture: Any, tiny: Path, tmp_path: Path
) -> None:
    made = to_megatron(tiny, tmp_path / "made", tp=2)
    async with bench().run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, until, made / "hf")
        assert screen.view.source.reference == str(made)
        assert screen.view.wish.action == "convert.hf"
        await until(pilot, lambda: "llama back to Hugging Face" in told(picture, pilot))
        await pilot.press("x")
        await until(pilot, lambda: screen.view.made and screen.view.made.finished, 120)
        assert (tmp_path / "made-hf" / "model.safetensors").read_bytes() != b""


async def test_a_converted_model_that_is_not_the_same_is_told_with_the_tensor(
    bench: Any, until: Any, picture: Any, tiny: Path, tmp_path: Path
) -> None:
    made = to_megatron(tiny, tmp_path / "tiny-megatron-tp1")
    file = next(made.glob("release/*/model_optim_rng.pt"))
    raw = bytearray(file.read_bytes())
    raw[raw.index(first_row())] ^= 1
    file.write_bytes(raw)
    async with bench().run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, until, tiny)
        await until(pilot, lambda: "where something lies already" in told(picture, pilot))
        await pilot.press("w", "V")
        await until(pilot, lambda: screen.view.proven and screen.view.proven.finished, 120)
        await until(pilot, lambda: "proof x differs: weights" in told(picture, pilot))
        assert "weights x differs" in told(picture, pilot)
        assert "embedding.word_embeddings.weight" in told(picture, pilot)
        await pilot.press("J")
        await until(pilot, lambda: isinstance(pilot.app.screen, JobScreen))
        assert pilot.app.screen.job.id == screen.view.proven.job


def first_row() -> bytes:
    """The first row of the embedding as it stands in files."""
    return bytes(checkpoint("llama").bits()["model.embed_tokens.weight"][0].astype("<u2").tobytes())


async def test_a_job_that_fails_is_told_in_full_and_can_be_tried_again(
    bench: Any, until: Any, picture: Any, tiny: Path, tmp_path: Path
) -> None:
    (tmp_path / "tiny-megatron-tp1").write_text("in the way")
    async with bench().run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, until, tiny)
        await pilot.press("x")
        await until(pilot, lambda: screen.view.made and screen.view.made.error, 120)
        await until(pilot, lambda: "convert x failed:" in told(picture, pilot))
        (tmp_path / "tiny-megatron-tp1").unlink()
        await pilot.press("x")
        await until(pilot, lambda: screen.view.made and screen.view.made.finished, 120)
        await until(pilot, lambda: "failed" not in told(picture, pilot))


async def test_a_place_without_a_model_says_so_and_the_screen_can_be_left(
    bench: Any, until: Any, picture: Any, tmp_path: Path
) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        await opened(pilot, until, tmp_path / "nothing")
        await until(pilot, lambda: "there is no such folder" in told(picture, pilot))
        await pilot.press("t", "x", "V", "enter", "escape")
        await until(pilot, lambda: not isinstance(pilot.app.screen, ConvertScreen))


async def test_the_palette_asks_which_model_when_another_is_wanted(bench: Any, until: Any, tiny: Path) -> None:
    async with bench().run_test(size=(80, 24)) as pilot:
        await pilot.app.run_action("convert(True)")
        await until(pilot, lambda: isinstance(pilot.app.screen, ChooseModel))
        pilot.app.screen.query_one(Input).value = str(tiny)
        await until(pilot, lambda: pilot.app.screen.at_rest)
        await pilot.press("enter")
        await until(pilot, lambda: planned(pilot))
        assert pilot.app.screen.view.source.reference == str(tiny)
        assert pilot.app.screen.query_one(Walls).size.height >= 5


@pytest.mark.parametrize(("size", "width"), [((80, 24), 26), ((120, 30), 30)])
async def test_on_a_wide_terminal_the_chooser_takes_more(
    bench: Any, until: Any, tiny: Path, size: tuple[int, int], width: int
) -> None:
    async with bench().run_test(size=size) as pilot:
        screen = await opened(pilot, until, tiny)
        await until(pilot, lambda: screen.query_one(ConvertChooser).outer_size.width == width)
