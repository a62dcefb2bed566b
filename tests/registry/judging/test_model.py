"""What `hfbench check` would say of a model is said when it is committed: refused where strict, else a warning."""

from __future__ import annotations

import asyncio
import hashlib
import json
import struct
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from hub_inside import REPO, hub_inside
from hub_process import make_hub
from test_commits import file, lines

from hfbench.registry.hub import Hub
from hfbench.registry.judging import model
from hfbench.registry.judging.folder_child import judge_apart

Inside = tuple[Hub, httpx2.AsyncClient]
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 1000\n"
CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_hidden_layers": 1,
    "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100, "rope_theta": 10000.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> object:
    return make_hub(tmp_path_factory.mktemp("judged"))


@pytest.fixture
async def strict(settings: object) -> AsyncIterator[Inside]:
    """A hub with an empty strict repository."""
    async with hub_inside(settings.settings, settings.writer) as found:  # type: ignore[attr-defined]
        namespace, _, name = REPO.partition("/")
        asked = {"name": name, "organization": namespace}
        await found[1].request("DELETE", "/api/repos/delete", json=asked)
        await found[1].post("/api/repos/create", json=asked)
        assert (await found[1].put(f"/api/models/{REPO}/settings", json={"strict": True})).status_code == 200
        yield found


async def commit(client: httpx2.AsyncClient, *files: tuple[str, bytes]) -> httpx2.Response:
    body = lines(*(file(path, content) for path, content in files))
    return await client.post(f"/api/models/{REPO}/commit/main", content=body)


def weights(*names: str, cut: int = 0) -> bytes:
    """Tensors of 8 bytes each."""
    told = {n: {"dtype": "BF16", "shape": [4], "data_offsets": [p * 8, p * 8 + 8]} for p, n in enumerate(names)}
    header = json.dumps(told).encode()
    return struct.pack("<Q", len(header)) + header + bytes(8 * len(names) - cut)


def index(**where: str) -> bytes:
    return json.dumps({"metadata": {"total_size": 8}, "weight_map": where}).encode()


async def refused(client: httpx2.AsyncClient, *files: tuple[str, bytes]) -> str:
    answer = await commit(client, *files)
    assert answer.status_code == 400, answer.text
    return str(answer.json()["error"])


async def test_a_strict_repository_is_told_every_problem_at_once(strict: Inside) -> None:
    told = await refused(
        strict[1],
        ("config.json", b'{"model_type": '),
        ("model.safetensors.index.json", index(a="model-1.safetensors", b="model-2.safetensors")),
        ("model-1.safetensors", weights("a", cut=4)),
        ("extra.bin", POINTER),
    )
    for words in ("config.json", "model-2.safetensors", "model-1.safetensors", "extra.bin: this is a git-lfs pointer"):
        assert words in told
    assert (await strict[1].get(f"/api/models/{REPO}/tree/main")).json() == []


async def test_a_model_without_a_tokenizer_is_refused_where_strict(strict: Inside) -> None:
    told = await refused(strict[1], ("config.json", json.dumps(CONFIG).encode()), ("model.safetensors", weights("w")))
    assert "there is no tokenizer.json" in told


async def test_a_shard_that_is_deleted_is_missed(strict: Inside) -> None:
    """What the commit adds is nothing: the model it leaves behind is judged."""
    _, client = strict
    await client.put(f"/api/models/{REPO}/settings", json={"strict": False})
    await commit(
        client,
        ("model.safetensors.index.json", index(a="model-1.safetensors", b="model-2.safetensors")),
        ("model-1.safetensors", weights("a")),
        ("model-2.safetensors", weights("b")),
    )
    await client.put(f"/api/models/{REPO}/settings", json={"strict": True})
    body = lines(("deletedFile", {"path": "model-2.safetensors"}))
    answer = await client.post(f"/api/models/{REPO}/commit/main", content=body)
    assert answer.status_code == 400
    assert "model-2.safetensors" in answer.json()["error"]


async def test_weights_that_were_uploaded_are_judged_by_their_header(strict: Inside) -> None:
    """Their bytes are not in the commit, and are longer than what is read of them."""
    _, client = strict
    header = json.dumps({"w": {"dtype": "BF16", "shape": [200_000], "data_offsets": [0, 400_000]}}).encode()
    content = struct.pack("<Q", len(header)) + header + bytes(399_000)
    sha256 = hashlib.sha256(content).hexdigest()
    asked = {"operation": "upload", "objects": [{"oid": sha256, "size": len(content)}]}
    told = (await client.post(f"/{REPO}.git/info/lfs/objects/batch", json=asked)).json()["objects"][0]
    assert (await client.put(told["actions"]["upload"]["href"], content=content)).status_code == 200
    step = ("lfsFile", {"path": "model.safetensors", "algo": "sha256", "oid": sha256})
    answer = await client.post(f"/api/models/{REPO}/commit/main", content=lines(step))
    assert (answer.status_code, "model.safetensors" in answer.json()["error"]) == (400, True)


async def test_another_branch_of_a_strict_repository_takes_halves_and_warns(strict: Inside) -> None:
    _, client = strict
    assert (await client.post(f"/api/models/{REPO}/branch/staging", json={})).status_code == 200
    body = lines(file("config.json", b"{"))
    answer = await client.post(f"/api/models/{REPO}/commit/staging", content=body)
    assert (answer.status_code, "config.json" in answer.headers["x-hf-warning"]) == (200, True)
    refused = await client.post(f"/api/models/{REPO}/commit/main", content=body)
    assert (refused.status_code, "strict" in refused.json()["error"]) == (400, True)


async def test_others_take_it_and_warn(strict: Inside) -> None:
    _, client = strict
    await client.put(f"/api/models/{REPO}/settings", json={"strict": False})
    answer = await commit(client, ("config.json", b"{"), ("model.safetensors", weights("w", cut=1)))
    assert answer.status_code == 200
    assert answer.headers["x-hf-warning"].startswith("validation; ")
    assert "config.json" in answer.headers["x-hf-warning"]


async def test_files_that_are_no_model_are_not_judged(strict: Inside) -> None:
    begun = time.monotonic()
    answer = await commit(strict[1], ("README.md", b"# notes"), ("data/notes.txt", b"x"))
    assert (answer.status_code, "x-hf-warning" in answer.headers) == (200, False)
    assert time.monotonic() - begun < 30


async def test_the_hub_answers_while_a_model_is_judged(strict: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    _, client = strict
    ended: list[str] = []

    def slowly(folder: Path, name: str, seconds: float) -> object:
        time.sleep(0.5)
        return judge_apart(folder, name, seconds)

    async def ask() -> None:
        await commit(client, ("config.json", json.dumps(CONFIG).encode()))
        ended.append("commit")

    async def look() -> None:
        await asyncio.sleep(0.1)
        assert (await client.get("/health")).status_code == 200
        ended.append("health")

    monkeypatch.setattr(model, "judge_apart", slowly)
    await asyncio.gather(ask(), look())
    assert ended == ["health", "commit"]


async def test_a_model_that_takes_too_long_is_refused_where_strict(
    strict: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "SECONDS", 0.0001)
    assert "could not be judged" in await refused(strict[1], ("config.json", json.dumps(CONFIG).encode()))


async def test_a_file_with_the_name_of_our_mark_does_not_hide_another(strict: Inside) -> None:
    mark = json.dumps({"files": {"config.json": {"size": 1, "held": "nothing"}}}).encode()
    told = await refused(strict[1], (".hfbench-remote.json", mark), ("config.json", b"{"))
    assert "config.json" in told
