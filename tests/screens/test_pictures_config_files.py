"""The Config and Files tabs as pictures: a key in detail, defaults, hashes that are right, differ and are under way."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from picture_models import llama, write_shard
from test_pictures import LOOKS, place, take  # noqa: F401 - fixtures of the other pictures

from hfbench.models.inventory.inventory import Reading
from hfbench.screens.model import ModelScreen
from hfbench.screens.model_tabs.config import ConfigTab
from hfbench.screens.model_tabs.files import FilesTab, Hashing
from hfbench.widgets.notice import Notice
from hfbench.widgets.record_table import RecordTable

GENERATION = {"do_sample": True, "temperature": 0.6, "top_p": 0.95, "eos_token_id": [2, 7]}


def model(folder: Path) -> Path:
    """A llama with a stretched context, settings that its class works out, and generation settings."""
    llama(folder)
    config = json.loads((folder / "config.json").read_text())
    rope = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    layers = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    kept = [f"model.layers.{number}.{name}" for number in range(4) for name in layers]
    quantization = {"quant_method": "fp8", "activation_scheme": "dynamic", "modules_to_not_convert": kept}
    config |= {"rope_scaling": rope, "head_dim": None, "quantization_config": quantization}
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    (folder / "generation_config.json").write_text(json.dumps(GENERATION))
    return folder


def cached(hub: Path) -> Path:
    """A cached repository of two revisions; one blob of the newer is damaged, and one link leads nowhere."""
    repository = hub / "models--org--tiny"
    (repository / "refs").mkdir(parents=True)
    (repository / "blobs").mkdir()
    (repository / "refs" / "main").write_text("1" * 40)
    config = b'{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}'
    first, second = (repository / "snapshots" / (digit * 40) for digit in "12")
    shards = {}
    for number in (1, 2):
        shard = repository / f"{number}.tmp"
        write_shard(shard, [(f"model.layers.{number}.mlp.up_proj.weight", "BF16", (256, 64))])
        shards[f"model-0000{number}-of-00002.safetensors"] = shard.read_bytes()
        shard.unlink()
    for snapshot in (first, second):
        snapshot.mkdir(parents=True)
        files = (
            {"config.json": config, **shards} if snapshot is first else {"config.json": config, "a.bin": b"old" * 999}
        )
        for name, data in files.items():
            git = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
            digest = git if name.endswith(".json") else hashlib.sha256(data).hexdigest()
            (repository / "blobs" / digest).write_bytes(data)
            (snapshot / name).symlink_to(f"../../blobs/{digest}")
    (first / "tokenizer.json").symlink_to("../../blobs/gone")
    (repository / "blobs" / ("d" * 64 + ".5f3a.incomplete")).write_bytes(b"half" * 5000)
    damaged = (first / "model-00002-of-00002.safetensors").resolve()
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"!")
    for each in (repository / "blobs").iterdir():
        os.utime(each, (1_600_000_000, 1_600_000_000))
    return hub


async def front(pilot: Any, until: Any, reference: str, tab: type[ConfigTab] | type[FilesTab]) -> Any:
    """Open a model and bring a tab to the front, at rest."""
    await until(pilot, lambda: pilot.app.screen.at_rest, 60)
    pilot.app.open_model(reference)
    await until(pilot, lambda: isinstance(pilot.app.screen, ModelScreen) and pilot.app.screen.at_rest, 60)
    pilot.app.screen.action_front(tab.__name__)
    found = pilot.app.screen.query_one(tab)
    await until(pilot, lambda: found.at_rest, 60)
    return found


@pytest.mark.parametrize("look", [each.values for each in LOOKS], ids=[str(each.id) for each in LOOKS])
class TestConfigAndFiles:
    """One picture a state and look."""

    def test_config(self, take: Any, until: Any, place: Path, look: Any) -> None:  # noqa: F811
        model(place / "models" / "tiny")

        async def scene(pilot: Any) -> None:
            tab = await front(pilot, until, "models/tiny", ConfigTab)
            assert tab.query_one(RecordTable).move_to("config.json\0head_dim")
            assert "LlamaConfig makes it 64" in tab.hint()

        take(look, scene)

    def test_config_key(self, take: Any, until: Any, place: Path, look: Any) -> None:  # noqa: F811
        model(place / "models" / "tiny")

        async def scene(pilot: Any) -> None:
            tab = await front(pilot, until, "models/tiny", ConfigTab)
            assert tab.query_one(RecordTable).move_to("config.json\0quantization_config.modules_to_not_convert")
            await pilot.press("enter")
            await until(pilot, lambda: tab.has_class("-opened"))

        take(look, scene)

    def test_config_defaults(self, take: Any, until: Any, place: Path, look: Any) -> None:  # noqa: F811
        model(place / "models" / "tiny")

        async def scene(pilot: Any) -> None:
            tab = await front(pilot, until, "models/tiny", ConfigTab)
            tab.action_shown()
            tab.action_shown()
            assert tab.query_one(RecordTable).move_to("config.json\0mlp_bias")

        take(look, scene)

    def test_files_hashed(self, take: Any, until: Any, place: Path, look: Any, monkeypatch: Any) -> None:  # noqa: F811
        monkeypatch.setenv("HF_HUB_CACHE", str(cached(place / "hub")))

        async def scene(pilot: Any) -> None:
            tab = await front(pilot, until, "org/tiny", FilesTab)
            await pilot.press("H")
            await until(pilot, lambda: tab.at_rest and tab.query_one(Notice).display, 60)

        take(look, scene)

    def test_files_hashing(
        self,
        take: Any,  # noqa: F811
        until: Any,
        place: Path,  # noqa: F811
        look: Any,
        picture: Any,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        folder = model(place / "models" / "tiny")
        os.mkfifo(folder / "pipe.bin")
        text = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 4976698672\n"
        (folder / "vision.safetensors").write_text(text)

        async def scene(pilot: Any) -> None:
            tab = await front(pilot, until, "models/tiny", FilesTab)
            tab._under_way = True  # a hash that is always as far as this
            tab.post_message(Hashing(Reading("model-00002-of-00002.safetensors", 6 * 10**8, 10**9), 3.0))
            await until(pilot, lambda: tab.query_one("ProgressLine").display)
            pilot.app.screen.refresh_bindings()
            await until(pilot, lambda: "stop hashing" in picture(pilot)[-1])
            monkeypatch.setattr(FilesTab, "at_rest", True)  # it never ends, and is not waited for

        take(look, scene)
