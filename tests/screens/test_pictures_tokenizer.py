"""The Tokenizer tab as pictures: facts, a text with its tokens, two tokenizers compared, a conversation, trouble."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from picture_models import llama
from small_tokenizers import CHATML, byte_level, wordpiece, write
from test_pictures import LOOKS, place, take  # noqa: F401 - fixtures of the other pictures
from textual import events
from textual.pilot import Pilot

from hfbench.screens.model import ModelScreen
from hfbench.screens.model_tabs.tokenizer import TokenizerTab
from hfbench.widgets.message_table import MessageTable
from hfbench.widgets.token_table import TokenTable

pytest.importorskip("tokenizers")

SECONDS = 60.0
TEXT = "hello world on café\n\tBe brief: 👩 <think>naïve</think><|im_end|>"


def model(folder: Path) -> Path:
    """A llama whose tokenizer knows a few words, and a template."""
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|im_end|>", "chat_template": CHATML}
    return write(llama(folder), byte_level(bos=True), {**config, "bos_token": "<|im_start|>"})


@pytest.fixture
def opened(place: Path, until: Any) -> Any:  # noqa: F811
    """Open the model's Tokenizer tab, press these keys, and wait until it is at rest."""

    async def go(pilot: Pilot[None], *keys: str, paste: str = "") -> TokenizerTab:
        await until(pilot, lambda: pilot.app.screen.at_rest, SECONDS)  # type: ignore[attr-defined]
        pilot.app.open_model("models/smollm2-135m")  # type: ignore[attr-defined]
        await until(pilot, lambda: isinstance(pilot.app.screen, ModelScreen) and pilot.app.screen.at_rest, SECONDS)
        pilot.app.screen.action_front(TokenizerTab.__name__)  # type: ignore[attr-defined]
        tab = pilot.app.screen.query_one(TokenizerTab)
        for number, key in enumerate(keys):
            await pilot.press(key)
            if paste and not number:
                pilot.app.post_message(events.Paste(paste))
                await pilot.pause()
                await until(pilot, lambda: tab.at_rest, SECONDS)  # keys that follow go through the tokens
        await until(pilot, lambda: tab.at_rest, SECONDS)
        await pilot.pause()
        return tab

    return go


@pytest.mark.parametrize("look", [each.values for each in LOOKS], ids=[str(each.id) for each in LOOKS])
class TestPictures:
    """One picture a view and look."""

    def test_text(self, take: Any, place: Path, opened: Any, look: Any) -> None:  # noqa: F811
        model(place / "models" / "smollm2-135m")

        async def scene(pilot: Pilot[None]) -> None:
            tab = await opened(pilot, "i", paste=TEXT)
            assert tab.query_one(TokenTable).encoded.raw == TEXT.encode()

        take(look, scene)

    def test_compared(self, take: Any, place: Path, until: Any, opened: Any, look: Any) -> None:  # noqa: F811
        model(place / "models" / "smollm2-135m")
        write(place / "models" / "bert-tiny", wordpiece())

        async def scene(pilot: Pilot[None]) -> None:
            keys = ("i", "escape", "w", *"models/bert-tiny", "enter", "down", "down", "down", "down", "enter")
            tab = await opened(pilot, *keys, paste=TEXT)
            await until(pilot, lambda: tab._text.answer and tab._text.answer.comparison, SECONDS)
            assert tab.query_one(TokenTable).cursor == 4

        take(look, scene)

    def test_chat(self, take: Any, place: Path, opened: Any, look: Any) -> None:  # noqa: F811
        model(place / "models" / "smollm2-135m")

        async def scene(pilot: Pilot[None]) -> None:
            keys = ("c", "x", "down", "n", *"hello world", "escape", "down", "enter")
            tab = await opened(pilot, *keys)
            assert len(tab.query_one(MessageTable).messages) == 4

        take(look, scene)


@pytest.mark.parametrize("look", [each.values for each in LOOKS[:2]], ids=[str(each.id) for each in LOOKS[:2]])
class TestTroublePictures:
    """What is wrong, in a sentence where the answer would stand."""

    def test_broken(self, take: Any, place: Path, opened: Any, look: Any) -> None:  # noqa: F811
        folder = model(place / "models" / "smollm2-135m")
        write(folder, b'{"version": "1.0", "model": oops}')

        async def scene(pilot: Pilot[None]) -> None:
            tab = await opened(pilot, "i", paste="hello")
            assert tab._text.answer is not None
            assert tab._text.answer.error is not None

        take(look, scene)

    def test_refused(self, take: Any, place: Path, opened: Any, look: Any) -> None:  # noqa: F811
        folder = model(place / "models" / "smollm2-135m")
        (folder / "chat_template.jinja").write_text("{{ raise_exception('Conversation roles must alternate') }}")

        async def scene(pilot: Pilot[None]) -> None:
            tab = await opened(pilot, "c")
            assert tab._chat.answer is not None
            assert tab._chat.answer.error is not None

        take(look, scene)
