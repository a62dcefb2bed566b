"""The Tokenizer tab: typed text, a second tokenizer beside it, conversations, and every way it can be broken."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pages import text
from small_tokenizers import CHATML, added, byte_level, wordpiece, write
from textual import events

from hfbench.paths import cache_root
from hfbench.screens.model import ModelScreen
from hfbench.screens.model_tabs.tokenizer import TokenizerTab
from hfbench.screens.models import ModelsScreen
from hfbench.widgets.message_table import MessageTable
from hfbench.widgets.text_entry import TextEntry
from hfbench.widgets.token_table import TokenTable

SIZES = [(80, 24), (120, 40)]
LONG = 60.0
"""Seconds a process may take to start on a machine that does much else."""


@pytest.fixture
def model(make_model: Any) -> Path:
    """A small model whose tokenizer knows a few words, and a template."""
    pytest.importorskip("tokenizers")
    return write(make_model(), byte_level(bos=True), {"chat_template": CHATML, "bos_token": "<|im_start|>"})


@pytest.fixture
def tab(until: Any) -> Callable[..., Any]:
    """Go to the Tokenizer tab, press these keys one after the other, and wait until it is at rest."""

    async def go(pilot: Any, *keys: str) -> TokenizerTab:
        await until(pilot, lambda: isinstance(pilot.app.screen, ModelScreen) and not pilot.app.screen.view.reading)
        if not isinstance(pilot.app.screen.front, TokenizerTab):
            pilot.app.screen.action_front(TokenizerTab.__name__)
        found = pilot.app.screen.front
        for key in keys:
            await pilot.press(key)
        await until(pilot, lambda: found.at_rest, LONG)
        await pilot.pause()
        return found  # type: ignore[no-any-return]

    return go


@pytest.mark.parametrize("size", SIZES)
async def test_typing_shows_tokens_ids_and_bytes_as_you_type(
    bench: Any, until: Any, picture: Any, model: Path, tab: Any, size: tuple[int, int]
) -> None:
    async with bench(str(model)).run_test(size=size) as pilot:
        await tab(pilot, "i", *"hello world", "enter", *"Be<|im_end|>")
        await until(pilot, lambda: "6 tokens · 24 bytes · 24 characters" in text(picture, pilot), LONG)
        shown = text(picture, pilot)
        assert "[Text]" in shown
        assert "<|im_start|>│hello│·world│↵" in shown
        assert "Be│<|im_end|>" in shown
        ids = byte_level()["model"]["vocab"]
        start = byte_level()["added_tokens"][0]["id"]
        assert f"> 0 {start} 0-0 special <|im_start|>" in shown, "\n".join(picture(pilot))
        assert f"1 {ids['hello']} 0-5 hello hello" in shown
        assert f"2 {ids['Ġworld']} 5-11 ·world Ġworld" in shown
        assert f"3 {ids['Ċ']} 11-12 ↵ Ċ" in shown


async def test_keys_of_the_screen_are_text_while_typing(
    bench: Any, until: Any, picture: Any, model: Path, tab: Any
) -> None:
    typed = "q?:;/[]123bBtyruacfiwsgmnpx."
    async with bench(str(model)).run_test(size=(80, 24)) as pilot:
        found = await tab(pilot, "i", *typed, "left", "right", "space")
        assert found.query_one("#text-entry", TextEntry).text == typed + " "
        assert pilot.app.is_running
        assert isinstance(pilot.app.screen, ModelScreen)
        assert pilot.app.screen.front is found
        assert pilot.app.focused is found.query_one("#text-entry")
        assert not pilot.app.machine.recording
        line = picture(pilot)[-1]
        assert "leave text" in line
        assert "quit" not in line
        assert "next tab" not in line
        await pilot.press("escape", "q")
        await until(pilot, lambda: not pilot.app.is_running)


@pytest.mark.parametrize(
    ("keys", "entry", "typed"),
    [
        (["i", *"qab", "escape", "c"], "#text-entry", "qab"),
        (["c", "enter", "ctrl+u", *"qab", "escape", "x"], "#message-entry", "qab"),
        (["c", "n", *"qab", "escape", "i"], "#message-entry", "qab"),
    ],
    ids=["text", "message", "new message"],
)
async def test_keys_typed_ahead_go_where_they_are_meant_to(
    bench: Any, until: Any, model: Path, tab: Any, keys: list[str], entry: str, typed: str
) -> None:
    async with bench(str(model)).run_test(size=(80, 24)) as pilot:
        found = await tab(pilot)
        for key in keys:  # in one burst, as over a slow line
            pilot.app.post_message(events.Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: found.query_one(entry, TextEntry).text == typed, LONG)
        await until(pilot, lambda: not pilot.app._waiting and pilot.app._in_flight is None)
        assert pilot.app.is_running
        assert isinstance(pilot.app.screen, ModelScreen)
        assert pilot.app.focused is not found.query_one(entry)


async def test_after_escape_the_same_keys_are_keys_again(bench: Any, until: Any, model: Path, tab: Any) -> None:
    async with bench(str(model)).run_test(size=(80, 24)) as pilot:
        found = await tab(pilot, "i", "a", "escape", "right_square_bracket")
        await until(pilot, lambda: pilot.app.screen.front is not found)
        await pilot.press("left_square_bracket")
        await until(pilot, lambda: pilot.app.screen.front is found)
        await pilot.press("slash", "b")
        assert found.query_one("#text-entry", TextEntry).text == "ab"


async def test_each_byte_of_a_cut_emoji_has_a_row(bench: Any, picture: Any, model: Path, tab: Any) -> None:
    async with bench(str(model)).run_test(size=(120, 40)) as pilot:
        await tab(pilot, "i", "👩", "é", "tab")
        shown = text(picture, pilot)
        assert "\\xf0│\\x9f│\\x91│\\xa9│\\xc3│\\xa9" in shown
        assert "1 172 0-1 \\xf0 ð" in shown


async def test_special_tokens_around_the_text_come_and_go(
    bench: Any, until: Any, picture: Any, model: Path, tab: Any
) -> None:
    async with bench(str(model)).run_test(size=(80, 24)) as pilot:
        await tab(pilot, "i", *"hello", "escape", "s")
        await until(pilot, lambda: "1 token · 5 bytes" in text(picture, pilot), LONG)
        assert "without special tokens around it" in text(picture, pilot)
        await tab(pilot, "s")
        await until(pilot, lambda: "2 tokens · 5 bytes" in text(picture, pilot), LONG)


async def test_a_second_tokenizer_is_named_compared_and_forgotten(
    bench: Any, until: Any, picture: Any, model: Path, tab: Any, tmp_path: Path
) -> None:
    other = write(tmp_path / "models" / "other", wordpiece())
    async with bench(str(model)).run_test(size=(120, 40)) as pilot:
        await tab(pilot, "i", *"hello world", "escape", "w", *str(other), "enter")
        await until(pilot, lambda: f"compared {other}: 4 tokens, 1.333 times as many" in text(picture, pilot), LONG)
        assert "they part at byte 5, token 2:" in text(picture, pilot)
        assert pilot.app.focused is pilot.app.screen.query_one(TokenTable)
        await tab(pilot, "w", *"/nowhere", "enter")
        await until(pilot, lambda: "there is no such folder" in text(picture, pilot), LONG)
        assert "3 tokens · 11 bytes" in text(picture, pilot)
        await tab(pilot, "w", "escape")
        await until(pilot, lambda: "compared" not in text(picture, pilot), LONG)


async def test_enter_tells_all_of_a_token_and_y_copies_the_ids(
    bench: Any, until: Any, picture: Any, model: Path, tab: Any
) -> None:
    board = cache_root() / "clipboard.txt"
    async with bench(str(model)).run_test(size=(80, 24)) as pilot:
        await tab(pilot, "i", *"hello é", "escape")
        found = await tab(pilot, "end", "enter")
        shown = text(picture, pilot)
        assert "token 4, id " in shown
        assert "of the vocabulary" in shown
        assert "place bytes 7 to 8: a9" in shown
        await pilot.press("up", "up")
        await until(pilot, lambda: "place bytes 5 to 6: 20" in text(picture, pilot))
        await pilot.press("escape")
        assert pilot.app.screen.front is found
        await pilot.press("y")
        await until(pilot, lambda: board.exists())
        ids = json.loads(board.read_text())
        assert ids == list(found.query_one(TokenTable).encoded.ids)
        assert len(ids) == 5


def broken(folder: Path, content: dict[str, Any] | bytes | None) -> None:
    (folder / "tokenizer.json").unlink()
    if content is not None:
        write(folder, content)


HUGE = b'{"version": "1.0", "added_tokens": ' + b"[" * 100_000
BROKEN: dict[str, tuple[dict[str, Any] | bytes | None, str]] = {
    "no JSON": (b"{oops", "tokenizer.json: the tokenizers library cannot read it"),
    "nested": (HUGE, "tokenizer.json: the tokenizers library cannot read it"),
    "a pointer": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git-lfs"),
    "none": (None, "there are no tokenizer files"),
    "no unknown": (
        {"version": "1.0", "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "?"}},
        "cannot cut this text: WordLevel error",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
async def test_a_broken_tokenizer_is_one_sentence_and_typing_goes_on(
    bench: Any, until: Any, picture: Any, model: Path, tab: Any, case: str
) -> None:
    content, sentence = BROKEN[case]
    broken(model, content)
    async with bench(str(model)).run_test(size=(120, 40)) as pilot:
        found = await tab(pilot, "i", *"hello")
        await until(pilot, lambda: sentence in text(picture, pilot), LONG)
        assert "Traceback" not in text(picture, pilot)
        assert found.query_one("#text-entry", TextEntry).text == "hello"


async def test_without_the_library_the_tab_names_the_extra_in_one_sentence(
    bench: Any, until: Any, picture: Any, model: Path, tab: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lacking").mkdir()
    (tmp_path / "lacking" / "tokenizers.py").write_text("raise ImportError(\"No module named 'tokenizers'\")")
    async with bench(str(model)).run_test(size=(120, 40)) as pilot:
        await tab(pilot)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lacking"))
        await tab(pilot, "i", "x")
        await until(pilot, lambda: "pip install 'hfbench[tokens]'" in text(picture, pilot), LONG)


async def test_names_of_tokens_cannot_reach_the_terminal(
    bench: Any, until: Any, picture: Any, model: Path, tab: Any
) -> None:
    told = byte_level()
    told["added_tokens"].append(added(9_000, "\x1b[2J\u202e"))
    template = "{{ messages[0].content }}\x1b[31m\u202e{{ raise_exception('\x1b]0;x') if tools }}"
    write(model, told, {"chat_template": template})
    async with bench(str(model)).run_test(size=(120, 40)) as pilot:
        await tab(pilot, "i")
        pilot.app.post_message(events.Paste("a\x1b[2J\u202eb"))
        await until(pilot, lambda: "special \\x1b[2J\\u202e \\x1b[2J\\u202e" in text(picture, pilot), LONG)
        assert not set("\x1b\u202e") & set("".join(picture(pilot)))
        await tab(pilot, "escape", "c")
        await until(pilot, lambda: "Oslo?\\x1b[31m\\u202e" in text(picture, pilot), LONG)
        await tab(pilot, "x")
        await until(pilot, lambda: "refuses this conversation: \\x1b]0;x" in text(picture, pilot), LONG)
        assert not set("\x1b\u202e") & set("".join(picture(pilot)))


async def test_the_latest_text_wins_behind_a_pasted_megabyte(
    bench: Any, until: Any, picture: Any, model: Path, tab: Any
) -> None:
    words = "hello world on " * 2**16
    async with bench(str(model)).run_test(size=(80, 24)) as pilot:
        found = await tab(pilot, "i")
        pilot.app.post_message(events.Paste(words))
        await until(pilot, lambda: found.query_one("#text-entry", TextEntry).buffer.size == len(words), LONG)
        for key in "hello":
            await pilot.press(key)
        assert picture(pilot)[4].rstrip().endswith("on hello")
        count = 4 * 2**16 + 1 + 1  # a space at the end joins no word, but the token in front does
        await until(pilot, lambda: found.at_rest, 4 * LONG)
        table = found.query_one(TokenTable)
        assert table.encoded.raw == f"{words}hello".encode()
        assert abs(len(table.encoded) - count) <= 2
        await pilot.press("escape", "end")
        await until(pilot, lambda: f"{len(words) + 5:,} " in text(picture, pilot))


async def test_leaving_ends_every_process(bench: Any, until: Any, model: Path, tab: Any) -> None:
    async with bench(str(model)).run_test(size=(80, 24)) as pilot:
        found = await tab(pilot, "i", "a", "escape", "c")
        desk = found._desk
        processes = [desk._tokenizer._child._process, desk._chat._child._process]
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, ModelsScreen))
        await until(pilot, lambda: all(each.poll() is not None for each in processes), LONG)


async def test_reading_again_loads_the_tokenizer_again(
    bench: Any, until: Any, picture: Any, model: Path, tab: Any
) -> None:
    async with bench(str(model)).run_test(size=(80, 24)) as pilot:
        await tab(pilot, "i", *"hello", "escape")
        await until(pilot, lambda: "2 tokens · 5 bytes" in text(picture, pilot), LONG)
        write(model, byte_level(words=()))
        await pilot.press("u")
        await until(pilot, lambda: "5 tokens · 5 bytes" in text(picture, pilot), LONG)


# -- conversations ------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
async def test_the_sample_is_rendered_with_its_tokens_and_source(
    bench: Any, until: Any, picture: Any, model: Path, tab: Any, size: tuple[int, int]
) -> None:
    async with bench(str(model)).run_test(size=size) as pilot:
        await tab(pilot, "c")
        await until(pilot, lambda: "<|im_start|>user↵" in text(picture, pilot), LONG)
        shown = text(picture, pilot)
        assert "template default, from tokenizer_config.json" in shown
        assert "sample messages · generation prompt · no tools" in shown
        assert "> user What is the time in Oslo?" in shown
        assert " tokens, " in shown
        await tab(pilot, "g")
        await until(pilot, lambda: "no generation prompt" in text(picture, pilot))
        await tab(pilot, "x")
        await pilot.press("tab", "end")
        await until(pilot, lambda: "1 tools" in text(picture, pilot), LONG)
        assert "a sample tool (ignored)" not in text(picture, pilot)
        await until(pilot, lambda: "assistant↵ It is noon.<|im_end|>↵" in text(picture, pilot))


async def test_messages_of_ones_own_are_written_and_the_sample_is_kept(
    bench: Any, until: Any, picture: Any, model: Path, tab: Any
) -> None:
    board = cache_root() / "clipboard.txt"
    async with bench(str(model)).run_test(size=(80, 24)) as pilot:
        found = await tab(pilot, "c", "enter", "ctrl+u", *"qi?", "escape")
        table = found.query_one(MessageTable)
        assert table.messages[0].text == "qi?"
        await tab(pilot, "space", "n", *"hello", "escape")
        assert [(each.role, each.text) for each in table.messages][:2] == [("assistant", "qi?"), ("user", "hello")]
        await tab(pilot, "end", "enter", "ctrl+u", "escape")
        assert "left out: it says nothing" in text(picture, pilot)
        await tab(pilot, "y")
        await until(pilot, lambda: board.exists())
        assert board.read_text() == (
            "<|im_start|>assistant\nqi?<|im_end|>\n<|im_start|>user\nhello<|im_end|>\n"
            "<|im_start|>assistant\nIt is noon.<|im_end|>\n<|im_start|>assistant\n"
        )
        await tab(pilot, "m")
        assert table.messages[0].text == "What is the time in Oslo?"
        await tab(pilot, "m")
        assert [each.text for each in table.messages][:2] == ["qi?", "hello"]


async def test_named_templates_are_gone_through(bench: Any, until: Any, picture: Any, model: Path, tab: Any) -> None:
    named = [{"name": "default", "template": "plain {{ messages[-1].content }}"}, {"name": "rag", "template": "docs"}]
    write(model, byte_level(), {"chat_template": named})
    async with bench(str(model)).run_test(size=(80, 24)) as pilot:
        await tab(pilot, "c")
        await until(pilot, lambda: "plain And in Lima?" in text(picture, pilot), LONG)
        assert "template default of 2, from tokenizer_config.json" in text(picture, pilot)
        await tab(pilot, "x")
        await until(pilot, lambda: "a sample tool (ignored)" in text(picture, pilot), LONG)
        await tab(pilot, "p")
        await until(pilot, lambda: "template rag of 2" in text(picture, pilot), LONG)
        await tab(pilot, "p")
        await until(pilot, lambda: "template default of 2" in text(picture, pilot), LONG)


TEMPLATES = {
    "refuses": ("{{ raise_exception('no roles like that') }}", "refuses this conversation: no roles like that"),
    "hangs": ("{{ 9 ** (9 ** 9) }}", r"takes more than 1 s of CPU time|was not done after 3\.5 s"),  # on a busy machine
    "swallows": ("{{ 'x' * 10000000000 }}", "takes more memory than allowed"),
    "reaches": ("{{ ''.__class__ }}", "is not safe and was not rendered"),
    "syntax": ("{% for m in messages %}", "does not compile: line 1"),
}


@pytest.mark.parametrize("case", TEMPLATES)
async def test_what_a_template_does_wrong_is_one_sentence(
    bench: Any, until: Any, picture: Any, model: Path, tab: Any, case: str
) -> None:
    template, sentence = TEMPLATES[case]
    write(model, byte_level(), {"chat_template": template})
    async with bench(str(model)).run_test(size=(120, 40)) as pilot:
        await tab(pilot, "c")
        await until(pilot, lambda: re.search(sentence, text(picture, pilot)), LONG)
        assert "Traceback" not in text(picture, pilot)


async def test_a_model_without_a_template_or_tokenizer_says_so(
    bench: Any, until: Any, picture: Any, model: Path, tab: Any
) -> None:
    write(model, b"{oops", {})
    async with bench(str(model)).run_test(size=(120, 40)) as pilot:
        await tab(pilot, "c")
        await until(pilot, lambda: "there is no chat template" in text(picture, pilot), LONG)
        write(model, b"{oops", {"chat_template": CHATML})
        await tab(pilot, "g")
        await until(pilot, lambda: "not counted: tokenizer.json" in text(picture, pilot), LONG)
        assert "<|im_start|>user↵" in text(picture, pilot)


# -- frames -------------------------------------------------------------------------------------


async def test_a_click_on_a_view_goes_there_and_f_goes_back(
    bench: Any, until: Any, picture: Any, model: Path, tab: Any
) -> None:
    async with bench(str(model)).run_test(size=(80, 24)) as pilot:
        found = await tab(pilot)
        await pilot.click("#tokenizer-views", offset=(15, 0))
        await until(pilot, lambda: found.front.title == "Chat")
        await pilot.press("f")
        await until(pilot, lambda: "bos_token" in text(picture, pilot))


async def test_ascii_terminals_get_ascii(bench: Any, until: Any, picture: Any, model: Path, tab: Any) -> None:
    async with bench(str(model), ascii=True).run_test(size=(80, 24)) as pilot:
        await tab(pilot, "i", *"hello world", "enter", "a")
        await until(pilot, lambda: "hello|_world|\\n" in text(picture, pilot), LONG)
        assert "> 0 " in text(picture, pilot)
        shown = picture(pilot)
        pieces = next(line.index("Piece") for line in shown if "Piece" in line)  # spelled as the vocabulary does
        assert all(line[:pieces].isascii() for line in shown)
        await tab(pilot, "escape", "c")
        await until(pilot, lambda: "<|im_start|>user\\n" in text(picture, pilot), LONG)
        assert "".join(picture(pilot)).isascii()


@pytest.mark.parametrize("size", [(60, 16), (80, 24), (200, 60)])
async def test_every_view_holds_out_at_every_size(
    bench: Any, until: Any, picture: Any, model: Path, tab: Any, size: tuple[int, int]
) -> None:
    async with bench(str(model)).run_test(size=size) as pilot:
        await tab(pilot, "i", *"hello world on", "escape", "down", "enter", "escape", "w", "x", "enter", "s")
        await pilot.resize_terminal(100, 30)
        await tab(pilot, "c", "n", *"hello", "escape", "tab", "pagedown", "home", "question_mark")
        await until(pilot, lambda: hasattr(pilot.app.screen, "help_text"))
        assert "Rendered text" in text(picture, pilot)
        await pilot.press("escape")
        await pilot.resize_terminal(*size)
        await tab(pilot, "f", "question_mark")
        await until(pilot, lambda: hasattr(pilot.app.screen, "help_text"))
