"""The Diff screen as pictures: the summary, tensors with and without values, keys, a template, and the choice of B."""

# ruff: noqa: F401, F811 - fixtures of the other pictures are imported by name

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from picture_models import llama
from test_pictures import LOOKS, place, take
from textual.pilot import Pilot

from hfbench.actions.diff import Diff
from hfbench.jobs.run import Run
from hfbench.screens.choose_model import ChooseModel
from hfbench.screens.diff import DiffScreen
from hfbench.screens.diff_ask import Compared, JobMoved
from hfbench.widgets.differences import differences_of
from hfbench.widgets.progress_text import Phase
from hfbench.widgets.record_table import RecordTable

pytest.importorskip("numpy")

TEMPLATE = (
    "{%- for message in messages %}\n  {{- '<|' + message.role + '|>' }}\n  {{- message.content }}\n{%- endfor %}\n"
)


def numbers(count: int, factor: float) -> bytes:
    """Floats that look like weights."""
    return struct.pack(f"<{count}f", *(factor * math.sin(place) / 40 for place in range(count)))


def model(folder: Path, *, tuned: bool) -> Path:
    """A small model, or what training made of it: other values, a wrapper around names, another template."""
    folder.mkdir(parents=True)
    prefix, factor = ("module.", 1.02) if tuned else ("", 1.0)
    header, data = {}, b""
    for name, shape, changes in tensors(tuned):
        raw = numbers(math.prod(shape), factor if changes else 1.0)
        at = [len(data), len(data) + len(raw)]
        header[prefix + name] = {"dtype": "F32", "shape": shape, "data_offsets": at}
        data += raw
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    config = {"model_type": "llama", "vocab_size": 66 if tuned else 64, "tie_word_embeddings": True}
    config |= {"rope_scaling": {"rope_type": "llama3", "factor": 32.0 if tuned else 8.0}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "generation_config.json").write_text(json.dumps({"temperature": 0.7 if tuned else 0.6, "top_p": 0.9}))
    vocab = {f"token{n}": n for n in range(66 if tuned else 64)}
    bpe = {"type": "BPE", "vocab": vocab, "merges": ["a b", "c d"] if tuned else ["a b"]}
    (folder / "tokenizer.json").write_text(json.dumps({"model": bpe}))
    template = TEMPLATE.replace("message.content", "message.content | trim") if tuned else TEMPLATE
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    return folder


def tensors(tuned: bool) -> Iterator[tuple[str, list[int], bool]]:
    """Name, shape, and whether training changed it."""
    yield "model.embed_tokens.weight", [66 if tuned else 64, 8], True
    for layer in range(4):
        yield f"model.layers.{layer}.mlp.up_proj.weight", [16, 8], layer > 1
        yield f"model.layers.{layer}.input_layernorm.weight", [8], False
    if not tuned:
        yield "model.layers.0.self_attn.rotary_emb.inv_freq", [4], False
    yield "model.norm.weight", [8], False
    if tuned:
        yield "lm_head.weight", [66, 8], True


@pytest.mark.parametrize("look", [each.values for each in LOOKS], ids=[str(each.id) for each in LOOKS])
class TestDiffPictures:
    """One picture a tab and look."""

    @pytest.fixture
    def pair(self, place: Path) -> tuple[str, str]:
        model(place / "models" / "smollm2-135m", tuned=False)
        model(place / "models" / "smollm2-135m-tuned", tuned=True)
        return "models/smollm2-135m", "models/smollm2-135m-tuned"

    @pytest.mark.parametrize("tab", ["SummaryTab", "DiffTensorsTab", "ConfigDiffTab", "TemplateDiffTab"])
    def test_tabs(self, take: Any, until: Any, pair: Any, look: Any, tab: str) -> None:
        async def scene(pilot: Pilot[None]) -> None:
            await opened(pilot, until, pair)
            pilot.app.screen.action_front(tab)

        take(look, scene)

    @pytest.mark.parametrize("tab", ["SummaryTab", "DiffTensorsTab", "TokenizerDiffTab"])
    def test_values(self, take: Any, until: Any, pair: Any, look: Any, tab: str) -> None:
        async def scene(pilot: Pilot[None]) -> None:
            await opened(pilot, until, pair)
            result = Diff(a=pair[0], b=pair[1], values=True).perform(Run())
            screen = pilot.app.screen
            screen.post_message(Compared(result, differences_of(result)))
            await until(pilot, lambda: screen.view.result is result)
            screen.action_front(tab)
            await until(pilot, lambda: screen.at_rest)
            await pilot.press("down", "enter")

        take(look, scene)

    def test_values_under_way(
        self, take: Any, until: Any, pair: Any, look: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def scene(pilot: Pilot[None]) -> None:
            await opened(pilot, until, pair)
            screen = pilot.app.screen
            screen.post_message(JobMoved("some-job", (Phase("values", "running", fraction=0.42, remaining=31.0),)))
            await until(pilot, lambda: screen.view.phases)
            # a screen whose job is under way is not at rest, and its picture is wanted all the same
            monkeypatch.setattr(DiffScreen, "at_rest", True)

        take(look, scene)

    def test_choice(self, take: Any, until: Any, pair: Any, place: Path, look: Any) -> None:
        llama(place / "models" / "my-finetune-v3")

        async def scene(pilot: Pilot[None]) -> None:
            await until(pilot, lambda: pilot.app.screen.at_rest)
            await pilot.press("equals_sign")
            await until(pilot, lambda: isinstance(pilot.app.screen, ChooseModel) and pilot.app.screen.at_rest)
            await until(pilot, lambda: pilot.app.screen.query_one(RecordTable).total == 2)

        take(look, scene)


async def opened(pilot: Pilot[None], until: Any, pair: tuple[str, str]) -> None:
    """The Diff screen of the pair, compared by headers and files."""
    pilot.app.open_diff(*pair)
    await until(pilot, lambda: isinstance(pilot.app.screen, DiffScreen) and pilot.app.screen.view.result, 60)
