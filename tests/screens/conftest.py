"""The workbench without its watchers, and waiting for what should become true."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from math import prod
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from parsed_once import style_sheets_parsed_once  # noqa: F401 - every test here has them
from settled import deterministic_pauses, settled  # noqa: F401 - every test here has these pauses
from textual.pilot import Pilot
from textual.widgets._toast import Toast

from hfbench.config import Config

SIZES = {"BF16": 2, "F32": 4, "F8_E4M3": 1}

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 1000,
    "max_position_embeddings": 8192,
    "dtype": "bfloat16",
    "tie_word_embeddings": True,
    "rope_scaling": {"rope_type": "llama3", "factor": 8.0},
}

Tensors = Mapping[str, tuple[str, Sequence[int]]]

TENSORS: Tensors = {
    "model.embed_tokens.weight": ("BF16", (1000, 64)),
    "model.layers.0.mlp.down_proj.weight": ("F8_E4M3", (64, 256)),
    "model.layers.1.mlp.down_proj.weight": ("F8_E4M3", (64, 256)),
    "model.norm.weight": ("F32", (64,)),
}

Until = Callable[[Pilot[None], Callable[[], object]], Awaitable[None]]


@pytest.fixture
def bench() -> Callable[..., Any]:
    """Make a Workbench with this configuration; nothing looks at GPUs or jobs unless asked to."""
    from hfbench.app import Workbench

    def make(model: str | None = None, *, config: Config | None = None, watch: bool = False, **more: Any) -> Workbench:
        return Workbench(config or Config(), model, watch=watch, **more)

    return make


@pytest.fixture
def until() -> Until:
    """Wait for a condition and until what it brought is painted; show the screen when it never comes true."""

    async def wait(pilot: Pilot[None], condition: Callable[[], object], seconds: float = 60.0) -> None:
        end = monotonic() + seconds
        while not condition():
            if pilot.app._exception:
                raise pilot.app._exception
            if monotonic() > end:
                raise AssertionError("this never came true; the screen shows\n" + "\n".join(lines(pilot)))
            await asyncio.sleep(0.01)
        await settled(pilot.app)

    return wait


@pytest.fixture
def picture() -> Callable[[Pilot[None]], list[str]]:
    """The text of every line on the screen."""
    return lines


@pytest.fixture
def toasts() -> Callable[[Pilot[None]], str]:
    """The words of the sentences in the corner, as they are painted."""

    def read(pilot: Pilot[None]) -> str:
        painted = lines(pilot)
        boxes = [toast.content_region for toast in pilot.app.screen.query(Toast)]
        words = [painted[y][box.x : box.right] for box in boxes for y in range(box.y, box.bottom)]
        return " ".join(" ".join(words).split())  # where a line breaks says nothing

    return read


@pytest.fixture
def make_model(tmp_path: Path) -> Callable[..., Path]:
    """Write a small model: its configuration as an object, as text or not at all, and its tensors in so many files."""

    def make(
        name: str = "models/tiny",
        *,
        config: Mapping[str, Any] | str | None = CONFIG,
        tensors: Tensors = TENSORS,
        files: int = 1,
    ) -> Path:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        if config is not None:
            (folder / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
        if files == 1:
            write_safetensors(folder / "model.safetensors", tensors)
            return folder
        names = [f"model-{number:05}-of-{files:05}.safetensors" for number in range(1, files + 1)]
        for number, file in enumerate(names):
            write_safetensors(folder / file, {name: tensors[name] for name in list(tensors)[number::files]})
        weight_map = {name: names[number % files] for number, name in enumerate(tensors)}
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
        return folder

    return make


def write_safetensors(path: Path, tensors: Tensors) -> None:
    """A file with that header and zeros for data; the zeros take no room on disk."""
    header, at = {}, 0
    for name, (dtype, shape) in tensors.items():
        end = at + SIZES[dtype] * prod(shape)
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, end]}
        at = end
    raw = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(raw).to_bytes(8, "little") + raw)
        file.truncate(8 + len(raw) + at)


def lines(pilot: Pilot[None]) -> list[str]:
    """The text of every line on the screen."""
    return [strip.text for strip in pilot.app.screen._compositor.render_strips()]
