"""The Model screen: what it answers at once, its tabs and keys, and every way a folder can be broken."""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pages import judged, read, text

from hfbench.checks.finding import Finding
from hfbench.models.stream import follow
from hfbench.paths import cache_root
from hfbench.screens.launch import LaunchScreen
from hfbench.screens.model import TABS, ModelScreen
from hfbench.screens.model_tabs.base import Detail
from hfbench.screens.model_tabs.finding_lines import MOST_ALIKE, finding_lines
from hfbench.screens.model_tabs.tab_line import TabLine, tab_spans
from hfbench.screens.model_tabs.tensors import TensorsTab
from hfbench.screens.models import ModelsScreen
from hfbench.screens.recent import read_recent
from hfbench.widgets.cells import spans_width
from hfbench.widgets.filter_bar import FilterBar
from hfbench.widgets.glyphs import ASCII

LFS = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 123\n"


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_first_screen_answers_without_a_key(
    bench: Any, until: Any, picture: Any, make_model: Any, size: tuple[int, int]
) -> None:
    folder = make_model()
    async with bench(str(folder)).run_test(size=size) as pilot:
        await until(pilot, lambda: judged(pilot), 60)
        await until(pilot, lambda: "Findings" in text(picture, pilot))
        shown = text(picture, pilot)
        room = ("in 2 files", "125 KiB model.embed_") if size > (80, 24) else ()
        for answer in (
            *room,
            "parameters 96,832 (96.8k)",
            "157 KiB in 4 tensors, 1 safetensors file",
            "79.5% BF16 125 KiB 1 tensor",
            "20.3% F8_E4M3 32.0 KiB 2 tensors",
            "architecture LlamaForCausalLM (llama)",
            "2 layers · 64 hidden · 4/2 heads of 16",
            "context 8,192 tokens · vocabulary 1,000",
            "config bfloat16 · tied embeddings",
            "x transformers",
            "x vLLM",
            "ok TensorRT-LLM",
            "x Megatron-core",
            "Findings (2 errors, 2 warnings, 2 infos)",
            "x HB238 model.safetensors: 16 tensors of",
            "4 tensors 157 KiB",
        ):
            assert answer in shown
        await until(pilot, lambda: read_recent() == [str(folder)])


def truncated(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:60])


def dangling(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to("/nowhere/at/all")


BROKEN: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "no config": (lambda f: (f / "config.json").unlink(), "config.json: missing", "parameters 96,832"),
    "list config": (lambda f: (f / "config.json").write_text("[1]"), "config.json: the root is a list", "96,832"),
    "config of nothing": (lambda f: (f / "config.json").write_text(""), "config.json", "parameters 96,832"),
    "config is a folder": (
        lambda f: ((f / "config.json").unlink(), (f / "config.json").mkdir()),
        "config.json",
        "parameters 96,832",
    ),
    "truncated": (truncated, "model.safetensors: the header claims", "LlamaForCausalLM"),
    "lfs pointer": (
        lambda f: (f / "model.safetensors").write_text(LFS),
        "this is a git-lfs pointer, not the file of 123 bytes",
        "LlamaForCausalLM",
    ),
    "fifo": (
        lambda f: ((f / "model.safetensors").unlink(), os.mkfifo(f / "model.safetensors")),
        "a FIFO, not a plain file",
        "LlamaForCausalLM",
    ),
    "dangling link": (dangling, "'/nowhere/at/all', where nothing is", "LlamaForCausalLM"),
    "web page": (lambda f: (f / "model.safetensors").write_text("<html>" * 99), "model.safetensors:", "LlamaFor"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "the folder holds no weights", "LlamaForCausalLM"),
    "bad values": (
        lambda f: (f / "config.json").write_text('{"num_hidden_layers": "x", "model_type": 3}'),
        "num_hidden_layers is 'x', an integer is needed",
        "parameters 96,832",
    ),
    "index escapes": (
        lambda f: (f / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../../etc/passwd"}}'),
        "../../etc/passwd",
        "LlamaForCausalLM",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
async def test_a_broken_folder_says_so_in_a_sentence_and_shows_the_rest(
    bench: Any, until: Any, picture: Any, make_model: Any, case: str
) -> None:
    harm, sentence, rest = BROKEN[case]
    folder = make_model()
    harm(folder)
    async with bench(str(folder)).run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: read(pilot))
        await until(pilot, lambda: sentence in re.sub(r"\s+", " ", beside(picture(pilot))))
        shown = text(picture, pilot)
        assert rest in shown
        assert "Traceback" not in shown
        assert re.search(r"Findings \([1-9]", shown)
        for _ in TABS:
            await pilot.press("right_square_bracket", "down", "enter")
        assert pilot.app.screen.front.title == "Overview"


def beside(lines: list[str]) -> str:
    """The right column of the overview, as running text."""
    return "\n".join(line[66:].strip() for line in lines)


async def test_a_missing_shard_is_named_and_the_others_are_counted(
    bench: Any, until: Any, picture: Any, make_model: Any
) -> None:
    folder = make_model(files=3)
    (folder / "model-00002-of-00003.safetensors").unlink()
    async with bench(str(folder)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: read(pilot))
        await until(pilot, lambda: "2 of 3 safetensors files" in text(picture, pilot))
        assert "x model-00002-of-00003.safetensors: missing" in text(picture, pilot)


@pytest.mark.parametrize("case", ["gone", "file", "empty", "bare", "typo", "blank"])
async def test_a_reference_that_leads_nowhere_stays_on_the_screen_as_a_sentence(
    bench: Any, until: Any, picture: Any, make_model: Any, tmp_path: Path, case: str
) -> None:
    folder = make_model()
    (tmp_path / "empty").mkdir()
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "notes.txt").touch()
    reference, sentence = {
        "gone": (str(tmp_path / "gone"), "there is no such folder"),
        "file": (str(folder / "config.json"), "this is a file"),
        "empty": (str(tmp_path / "empty"), "the folder is empty"),
        "bare": (str(tmp_path / "bare"), "no config.json and no weights"),
        "typo": ("org/nothing-here", "the repository is not in the cache"),
        "blank": (" ", "no model was named"),
    }[case]
    async with bench(reference).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: read(pilot))
        await until(pilot, lambda: sentence in text(picture, pilot))
        assert re.search(r"\bx ", text(picture, pilot))
        for key in ("right", "b", "enter", "slash", "escape", "y", "u"):
            await pilot.press(key)
        await until(pilot, lambda: read(pilot) and sentence in text(picture, pilot))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, ModelsScreen))


@pytest.mark.unprivileged
async def test_a_folder_that_may_not_be_read_says_so(bench: Any, until: Any, picture: Any, make_model: Any) -> None:
    folder = make_model()
    folder.chmod(0)
    async with bench(str(folder)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: "the folder cannot be read" in text(picture, pilot))


@pytest.mark.parametrize("size", [(80, 24), (60, 16)])
async def test_brackets_and_arrows_go_through_the_tabs_and_around(
    bench: Any, until: Any, picture: Any, make_model: Any, size: tuple[int, int]
) -> None:
    async with bench(str(make_model())).run_test(size=size) as pilot:
        await until(pilot, lambda: read(pilot))
        titles = [tab.title for tab in TABS]
        for forth, back in (("right_square_bracket", "left_square_bracket"), ("right", "left")):
            for title in [*titles[1:], titles[0]]:
                moves_a_cell = pilot.app.screen.front.title == "Fit"  # there the arrows belong to the grid
                await pilot.press("right_square_bracket" if moves_a_cell else forth)
                await until(pilot, lambda title=title: f"[{title}]" in picture(pilot)[1])
                assert title in picture(pilot)[0]
                assert pilot.app.screen.focused.is_attached
            await pilot.press(back)
            await until(pilot, lambda: f"[{titles[-1]}]" in picture(pilot)[1])
            await pilot.press(forth)


async def test_a_tab_that_shows_the_picture_already_is_not_laid_out_again(
    bench: Any, until: Any, make_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bench(str(make_model())).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: judged(pilot), 60)
        screen = pilot.app.screen
        await until(pilot, lambda: not (screen._background.busy or screen._judging.busy), 60)
        await pilot.pause()
        for _ in TABS:
            await pilot.press("right_square_bracket")
        shown: list[str] = []
        for tab in TABS:
            monkeypatch.setattr(tab, "show", lambda self, view: shown.append(type(self).__name__))
        for _ in TABS:
            await pilot.press("right_square_bracket")
        assert shown == []
        screen._show(screen.view.__class__(reference="another"))
        assert shown == [type(screen.front).__name__]


async def test_a_click_on_a_name_goes_to_its_tab(bench: Any, until: Any, make_model: Any) -> None:
    async with bench(str(make_model())).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: read(pilot))
        await pilot.click(TabLine, offset=(13, 0))
        await until(pilot, lambda: pilot.app.screen.front.title == "Config")


async def test_b_shows_the_biggest_tensors_whatever_was_filtered(
    bench: Any, until: Any, picture: Any, make_model: Any
) -> None:
    async with bench(str(make_model())).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: read(pilot))
        await pilot.press("t", "slash", *"norm", "enter")
        await until(pilot, lambda: "1 of 4 match 256 B" in text(picture, pilot))
        await pilot.press("left", "left", "b")
        first = r"> model.embed_tokens.weight +BF16 +1000x64 +125 KiB"
        await until(pilot, lambda: re.search(first, picture(pilot)[4]))
        assert "bytes▼" in picture(pilot)[3]
        assert not pilot.app.screen.query_one(TensorsTab).query_one(FilterBar).display


async def test_enter_shows_all_of_a_tensor_and_escape_closes_it_before_it_leaves(
    bench: Any, until: Any, picture: Any, make_model: Any
) -> None:
    async with bench(str(make_model())).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: read(pilot))
        await pilot.press("t", "enter")
        await until(pilot, lambda: "1,000 x 64 (64,000 elements)" in text(picture, pilot))
        assert "bytes 0 to 128,000 of the data in model.safetensors" in text(picture, pilot)
        await pilot.press("end")
        await until(pilot, lambda: "bytes 160,768 to 161,024 of the data" in text(picture, pilot))
        await pilot.press("escape")
        assert not pilot.app.screen.query_one(TensorsTab).query_one(Detail).display
        assert isinstance(pilot.app.screen, ModelScreen)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, ModelsScreen))


async def test_groups_unfold_in_the_tensors_tab(bench: Any, until: Any, picture: Any, make_model: Any) -> None:
    async with bench(str(make_model())).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: read(pilot))
        await pilot.press("t", "g")
        await until(pilot, lambda: "+ model.layers.*.mlp.down_proj.weight" in text(picture, pilot))
        await pilot.press("down", "enter")
        await until(pilot, lambda: "model.layers.1.mlp.down_proj.weight" in text(picture, pilot))


async def test_y_copies_what_the_tab_has_under_its_cursor(bench: Any, until: Any, make_model: Any) -> None:
    folder, board = make_model(), cache_root() / "clipboard.txt"
    async with bench(str(folder)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: read(pilot))
        for keys, wanted in [
            (["y"], str(folder)),
            (["right", "down", "y"], '"model_type": "llama"'),
            (["t", "end", "y"], "model.norm.weight"),
            (["right", "end", "y"], str(folder / "model.safetensors")),
        ]:
            await pilot.press(*keys)
            await until(pilot, lambda wanted=wanted: board.exists() and board.read_text() == wanted)


async def test_the_configuration_is_filtered_by_path_and_value(
    bench: Any, until: Any, picture: Any, make_model: Any
) -> None:
    async with bench(str(make_model())).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: read(pilot))
        await pilot.press("right", "slash", *"rope", "enter")
        await until(pilot, lambda: "architectures" not in text(picture, pilot))
        assert 'rope_scaling.rope_type "llama3"' in text(picture, pilot)
        assert "rope_scaling.factor 8.0" in text(picture, pilot)
        await pilot.press("enter")
        await until(pilot, lambda: "key rope_scaling.rope_type value" in text(picture, pilot))


async def test_a_configuration_that_is_no_object_is_shown_as_it_is(
    bench: Any, until: Any, picture: Any, make_model: Any
) -> None:
    folder = make_model(config='{\n  "a": 1,\n  "b\x1b[31m": oops,\n}')
    async with bench(str(folder)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: read(pilot))
        await pilot.press("right")
        await until(pilot, lambda: 'line 3 "b\\x1b[31m": oops,' in text(picture, pilot))
        assert "x config.json: line 3, column" in text(picture, pilot)


async def test_the_tokenizer_tab_tells_special_tokens_with_their_ids(
    bench: Any, until: Any, picture: Any, make_model: Any
) -> None:
    folder = make_model()
    vocabulary = {"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}}, "added_tokens": [{"id": 2, "content": "<s>"}]}
    (folder / "tokenizer.json").write_text(json.dumps(vocabulary))
    settings = {"tokenizer_class": "Fast\x1b[1m", "bos_token": "<s>", "chat_template": "{{ x }}"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    async with bench(str(folder)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: read(pilot))
        await pilot.press("right", "right")
        await until(pilot, lambda: "bos_token 2 <s>" in text(picture, pilot))
        shown = text(picture, pilot)
        assert "vocabulary 3 tokens, 1 of them added, highest id 2" in shown
        assert "class Fast\\x1b[1m" in shown
        assert "7 characters in tokenizer_config.json" in shown
        await pilot.press("enter")
        await until(pilot, lambda: "U+003C U+0073 U+003E" in text(picture, pilot))


async def test_links_and_sizes_stand_in_the_files_tab(
    bench: Any, until: Any, picture: Any, make_model: Any, tmp_path: Path
) -> None:
    folder = make_model()
    (folder / "outside.json").symlink_to(tmp_path / "elsewhere")
    async with bench(str(folder)).run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: read(pilot))
        pilot.app.screen.action_front("FilesTab")
        await until(pilot, lambda: "model.safetensors weights 158 KiB" in text(picture, pilot))
        assert "where nothing is" in text(picture, pilot)


async def test_keys_work_and_the_table_grows_while_tensors_still_arrive(
    bench: Any, until: Any, make_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys_are_typed = threading.Event()

    def slowly(location: Any) -> Iterator[Any]:
        for number, frame in enumerate(follow(location)):
            if number == 4:
                keys_are_typed.wait(60)
            yield frame

    monkeypatch.setattr("hfbench.screens.model_reader.follow", slowly)
    many = {f"model.layers.{row}.mlp.experts.{row % 7}.down_proj.weight": ("F32", (2,)) for row in range(40_000)}
    async with bench(str(make_model(tensors=many, files=8))).run_test(size=(80, 24)) as pilot:
        await pilot.press("t")
        screen = pilot.app.screen
        await until(pilot, lambda: screen.view.reading and screen.query_one(TensorsTab).table.row_count() > 2)
        await pilot.press("down", "down", "enter")
        await until(pilot, lambda: screen.query_one(TensorsTab).table.cursor == 2)
        await until(pilot, lambda: screen.query_one(TensorsTab).query_one(Detail).display)
        assert screen.view.reading
        keys_are_typed.set()
        await until(
            pilot, lambda: screen.at_rest or (read(pilot) and not screen.query_one(TensorsTab).table.rows.busy), 60
        )
        assert screen.view.tensors == screen.query_one(TensorsTab).table.rows.total == 40_000
        assert screen.query_one(TensorsTab).table.cursor == 2
        assert screen.view.columns is screen.query_one(TensorsTab).table.rows.columns


async def test_leaving_ends_the_reading_and_its_process(bench: Any, until: Any, make_model: Any) -> None:
    many = {f"layers.{row}.weight": ("F32", (2,)) for row in range(30_000)}
    async with bench(str(make_model(tensors=many, files=30))).run_test(size=(80, 24)) as pilot:
        screen = pilot.app.screen
        await until(pilot, lambda: screen.view.shard > 0)
        await pilot.press("escape")
        await until(pilot, lambda: not screen._background.busy and not children())


def children() -> list[str]:
    """Processes of this one that read a model."""
    ids = [id for task in Path("/proc/self/task").iterdir() for id in told(task / "children").split()]
    return [id.decode() for id in ids if b"hfbench.models.stream" in told(Path(f"/proc/{id.decode()}/cmdline"))]


def told(file: Path) -> bytes:
    """What /proc tells; nothing of a thread or a process that has just ended."""
    try:
        return file.read_bytes()
    except OSError:
        return b""


async def test_reading_again_sees_what_changed(bench: Any, until: Any, picture: Any, make_model: Any) -> None:
    folder = make_model(files=2)
    hidden = folder / "model-00001-of-00002.safetensors"
    kept = hidden.read_bytes()
    hidden.unlink()
    async with bench(str(folder)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: read(pilot) and "1 of 2 safetensors files" in text(picture, pilot))
        hidden.write_bytes(kept)
        await pilot.press("u")
        await until(pilot, lambda: read(pilot) and "tensors, 2 safetensors files" in text(picture, pilot))
        shutil.rmtree(folder)
        await pilot.press("u")
        await until(pilot, lambda: "there is no such folder" in text(picture, pilot))


async def test_capital_b_measures_this_model(bench: Any, until: Any, make_model: Any) -> None:
    folder = make_model()
    async with bench(str(folder)).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: read(pilot))
        await pilot.press("B")
        await until(pilot, lambda: isinstance(pilot.app.screen, LaunchScreen))
        assert pilot.app.screen.state.texts["model"] == str(folder)


async def test_names_cannot_reach_the_terminal_as_control_characters(
    bench: Any, until: Any, picture: Any, make_model: Any
) -> None:
    evil = {"evil\x1b[2J\u202egpj.weight": ("BF16", (2, 2))}
    folder = make_model(
        "models/\x1b[31mred", tensors=evil, config={"architectures": ["\x1b]0;x"], "model_type": "\x07"}
    )
    async with bench(str(folder)).run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: read(pilot))
        for _ in range(len(TABS)):
            assert not set("\x1b\x07\u202e") & set("".join(picture(pilot)))
            await pilot.press("right_square_bracket", "down", "enter")
            await pilot.pause()
        assert "evil\\x1b[2J\\u202egpj.weight" in text(picture, pilot)


async def test_ascii_terminals_get_ascii(bench: Any, until: Any, picture: Any, make_model: Any) -> None:
    async with bench(str(make_model()), ascii=True).run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: read(pilot))
        await until(pilot, lambda: judged(pilot), 60)
        for _ in TABS:
            assert "".join(picture(pilot)).isascii()
            await pilot.press("right_square_bracket")


def test_a_thousand_findings_stay_readable() -> None:
    many = [
        Finding(id="HB142", name="x", severity="error", file=f"shard {n}", message="gone " * 9) for n in range(1000)
    ]
    lines = [spans for _, spans in finding_lines(many, 40, ASCII, under_way=False)]
    assert lines[-1][-1] == (f"and {1000 - MOST_ALIKE:,} more of HB142", "muted")
    assert sum(line[1][0].startswith("x") for line in lines) == MOST_ALIKE
    assert max(map(spans_width, lines)) <= 40


@pytest.mark.parametrize("width", [10, 20, 45, 200])
def test_the_tab_in_front_is_always_named(width: int) -> None:
    names = [tab.title for tab in TABS]
    for name in names:
        text = "".join(part for part, _ in tab_spans(names, name, width, "…"))
        assert f"[{name}]" in text[: max(width, len(name) + 2)]
        told = re.findall(r"\w+", text)
        assert set(told) <= set(names)  # never a part of one
        assert (told == names) == (width == 200)
        assert text.startswith("…") == (told[0] != names[0]) or width == 10
        assert text.endswith("…") == (told[-1] != names[-1]) or width == 10
