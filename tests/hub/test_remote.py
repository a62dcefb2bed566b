"""A model opened on a hub: read as if it were here, and never believed to have its weights."""

from __future__ import annotations

import json
import os
import shutil
import struct
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from hub_lab import Lab, client_of, stock
from small_hub_model import safetensors, write_model
from stand_in_hub import COMMIT, StandIn, send, send_file, stand_in

from hfbench.convert.gguf_file import read_gguf
from hfbench.convert.gguf_source import open_gguf
from hfbench.errors import HfbenchError
from hfbench.hub import headers as headers_module
from hfbench.hub import remote as remote_module
from hfbench.hub.at_hand import opened
from hfbench.hub.refusals import HubError, NotAHub, Offline
from hfbench.hub.remote import open_remote
from hfbench.models.reference import NotCached, cache_folder, cached_name, resolve
from hfbench.models.remote_mark import MARK, read_mark
from hfbench.models.stream import Done, follow
from hfbench.models.summary import summarise
from hfbench.paths import remote_root

Hfbench = Callable[..., Any]
REF = "lab:team/small"


@pytest.fixture
def shadow(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`lab:team/small`, opened."""
    return open_remote(lab.client(monkeypatch, lab.hub.writer), "team/small").folder


# What it holds


def test_small_files_are_whole_and_of_weights_the_header_alone(lab: Lab, shadow: Path) -> None:
    for path in lab.model.iterdir():
        raw = path.read_bytes()
        if path.suffix == ".safetensors":
            raw = raw[: 8 + struct.unpack("<Q", raw[:8])[0]]
        assert (shadow / path.name).read_bytes() == raw
    assert {each.name for each in shadow.iterdir()} == {MARK, *(each.name for each in lab.model.iterdir())}


def test_each_header_takes_one_request_or_two(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    long = safetensors({"w": [1]}, metadata={"note": "x" * 200_000})
    with stand_in(files={"a.safetensors": safetensors({"w": [4]}), "b.safetensors": long}) as hub:
        open_remote(client_of(hub), "org/model")
        asked = [each.headers.get("range") for each in hub.asked if "resolve" in each.path]
    size = 8 + struct.unpack("<Q", long[:8])[0]
    whole = len(safetensors({"w": [4]}))
    assert sorted(map(str, asked)) == sorted(["bytes=0-65535", f"bytes=65536-{size - 1}", f"bytes=0-{whole - 1}"])


def test_a_hub_without_ranges_serves_as_well() -> None:
    long = safetensors({"w": [1]}, metadata={"note": "x" * 200_000})
    with stand_in(files={"model.safetensors": long}) as hub:
        path = f"/org/model/resolve/{COMMIT}/model.safetensors"
        hub.answers[path] = lambda at: send(at, 200, long)
        folder = open_remote(client_of(hub), "org/model").folder
    assert summarise(folder).tensors == 1


def test_the_header_of_a_gguf_file_comes_as_far_as_it_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = small_gguf(vocabulary=30_000)
    with stand_in(files={"model.gguf": raw}) as hub:
        found = open_remote(client_of(hub), "org/model")
    here = (found.folder / "model.gguf").read_bytes()
    assert raw.startswith(here)
    assert len(here) < len(raw)
    held = found.folder / "sparse.gguf"
    held.write_bytes(here)
    os.truncate(held, len(raw))
    assert read_gguf(held).tensors.keys() == {"output.weight"}
    with pytest.raises(HfbenchError, match="converting needs the weights"):
        open_gguf(found.folder / "model.gguf")


def small_gguf(*, vocabulary: int) -> bytes:
    """A GGUF file whose metadata hold a vocabulary, and one tensor of 4 MiB."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    words = b"".join(text(f"word {number}") for number in range(vocabulary))
    meta = text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, vocabulary) + words
    rows = 1 << 20
    tensor = text("output.weight") + struct.pack("<IQIQ", 1, rows, 0, 0)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + meta + tensor
    return head + bytes(-len(head) % 32) + bytes(4 * rows)


def test_what_is_too_large_for_a_look_is_left_and_told() -> None:
    with stand_in(files={"config.json": b"{}", "big.json": b" " * (5 << 20), "photo.png": b"x"}) as hub:
        found = open_remote(client_of(hub), "org/model")
        assert not any(path.endswith(("big.json", "photo.png")) for path in hub.paths())
    assert found.notes == ("1 file of 5.00 MiB too large to fetch for a look: 'big.json'",)
    assert {name: file.held for name, file in found.mark.files.items()} == {
        "config.json": "whole",
        "big.json": "nothing",
        "photo.png": "nothing",
    }


# What reads it


def test_everything_that_reads_headers_says_what_it_says_of_the_files_themselves(
    lab_settings: Lab, hfbench: Hfbench
) -> None:
    lab = lab_settings
    assert hfbench("hub", "open", REF).returncode == 0
    there, here = (json.loads(hfbench("inspect", each, "--json").stdout) for each in (REF, str(lab.model)))
    for told in (there, here):
        for place in ("model", "folder", "source", "revision", "commit"):
            told.pop(place)
    assert there == here
    for action, *more in (["resolve"], ["fit", "--gpu", "24GiB"], ["explain"]):
        one, two = (json.loads(hfbench(action, each, *more, "--json").stdout) for each in (REF, str(lab.model)))
        for key in ("runtimes", "total_bytes", "terms", "verdict", "keys", "rows", "weights"):
            assert one.get(key) == two.get(key), key
    assert hfbench("diff", REF, str(lab.model)).returncode == 0
    judged = json.loads(hfbench("check", REF, "--json").stdout)
    local = json.loads(hfbench("check", str(lab.model), "--json").stdout)
    assert [each["id"] for each in judged["findings"] if each["id"] != "HB807"] == [
        each["id"] for each in local["findings"]
    ]
    assert [each["id"] for each in judged["findings"]].count("HB807") == 1


def test_the_model_screen_reads_it_as_it_reads_a_folder(shadow: Path) -> None:
    frames = list(follow(resolve(REF)))
    assert isinstance(frames[-1], Done)
    assert (frames[-1].tensors, frames[-1].summary().broken) == (21, False)


def test_one_shard_of_it_can_be_named(shadow: Path, hfbench: Hfbench) -> None:
    shard = str(shadow / "model-00001-of-00002.safetensors")
    assert json.loads(hfbench("inspect", shard, "--json").stdout)["tensors"] == 10
    assert hfbench("check", shard).returncode == 0


def test_a_file_that_is_here_is_verified_and_one_that_is_not_is_no_success(lab_settings: Lab, hfbench: Hfbench) -> None:
    hfbench("hub", "open", REF)
    done = hfbench("files", REF, "--sha256", "--json")
    told = {each["name"]: each for each in json.loads(done.stdout)["files"]}
    assert done.returncode == 1
    assert told["config.json"]["verdict"] == "ok"
    assert told["model-00001-of-00002.safetensors"]["verdict"] == "unreadable"
    assert "hfbench pull lab:team/small fetches them" in told["model-00001-of-00002.safetensors"]["note"]
    assert hfbench("files", REF, "--sha256", "--only", "*.json").returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        ["check", REF, "--values"],
        ["diff", REF, REF, "--values"],
        ["convert", "megatron", REF, "--out", "OUT"],
        ["convert", "safetensors", REF, "--out", "OUT"],
        ["bench", "generate", REF],
        ["bench", "load", REF],
        ["graph", "verify", REF],
        ["verify", REF, "MODEL"],
        ["verify", "MODEL", REF],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_whatever_needs_weights_says_that_they_are_not_here(
    lab_settings: Lab, shadow: Path, tmp_path: Path, hfbench: Hfbench, words: list[str]
) -> None:
    if words == ["verify", "MODEL", REF]:  # its second is a path
        words = ["verify", str(lab_settings.model), str(shadow)]
    places = {"OUT": str(tmp_path / "out"), "MODEL": str(lab_settings.model)}
    done = hfbench(*(places.get(word, word) for word in words))
    assert done.returncode in (2, 4), (done.stdout, done.stderr)
    said = " ".join((done.stdout + done.stderr).split())
    assert "needs the weights, and only their headers are here. hfbench pull lab:team/small" in said
    assert not (tmp_path / "out").exists()


def test_a_library_that_knows_nothing_of_this_cannot_take_it_for_weights(shadow: Path) -> None:
    """Zeros in place of the weights would load, and answer nonsense."""
    safetensors_library = pytest.importorskip("safetensors")
    with (
        pytest.raises(safetensors_library.SafetensorError),
        safetensors_library.safe_open(shadow / "model-00001-of-00002.safetensors", framework="numpy"),
    ):
        pass


# References


def test_a_model_that_is_not_open_is_told_with_both_ways() -> None:
    with pytest.raises(NotCached, match=r"hfbench hub open far:org/name looks at it .*, hfbench pull far:org/name"):
        resolve("far:org/name")


def test_branch_and_commit_lead_to_the_same_folder_and_others_nowhere(lab: Lab, shadow: Path) -> None:
    assert resolve(REF).folder == resolve(f"{REF}@{lab.commit}").folder == shadow
    assert (resolve(REF).source, resolve(REF).name) == ("remote", REF)
    with pytest.raises(NotCached):
        resolve(f"{REF}@v2")


def test_a_commit_that_was_fetched_whole_is_taken_from_the_cache(lab: Lab, shadow: Path) -> None:
    snapshot = cache_folder() / cached_name("team/small") / "snapshots" / lab.commit
    shutil.copytree(lab.model, snapshot)
    assert resolve(REF).folder == snapshot
    assert resolve(REF).source == "cache"
    (snapshot / "model-00002-of-00002.safetensors").unlink()
    assert resolve(REF).folder == shadow


def test_of_a_model_without_safetensors_the_cache_is_taken_too() -> None:
    with stand_in(files={"config.json": b"{}", "pytorch_model.bin": b"x" * 99}) as hub:
        open_remote(client_of(hub), "org/model")
    assert resolve("lab:org/model").source == "remote"
    snapshot = cache_folder() / cached_name("org/model") / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (snapshot / "pytorch_model.bin").write_bytes(b"x" * 99)
    assert resolve("lab:org/model").source == "cache"


def test_a_model_opened_at_an_address_is_named_after_it(hfbench: Hfbench) -> None:
    with stand_in(files={"config.json": b"{}", "model.safetensors": safetensors({"w": [4]})}) as hub:
        told = json.loads(hfbench("hub", "open", "org/model", "--endpoint", hub.url, "--json").stdout)
    assert told["reference"] == f"{hub.url.removeprefix('http://').replace(':', '-')}:org/model"
    assert json.loads(hfbench("inspect", told["reference"], "--json").stdout)["tensors"] == 1


def test_a_folder_of_that_name_goes_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shadow: Path) -> None:
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path / REF)
    assert resolve(REF).source == "local"


def test_offline_says_what_is_here_in_its_place(lab: Lab, shadow: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    client = lab.client(monkeypatch, "")
    with pytest.raises(
        Offline, match=r"HF_HUB_OFFLINE forbids the network\. Here is 'lab:team/small': hfbench inspect"
    ):
        client.info("team/small")
    with pytest.raises(Offline, match="Here are 'lab:team/small'"):
        client.info("team/other")
    assert summarise(REF).tensors == 21


# Again, and at once


def test_opened_again_only_the_commit_is_asked_for() -> None:
    with stand_in(files={"config.json": b"{}", "model.safetensors": safetensors({"w": [4]})}) as hub:
        open_remote(client_of(hub), "org/model")
        hub.asked.clear()
        again = open_remote(client_of(hub), "org/model")
        assert hub.paths() == ["/api/models/org/model/revision/main"]
    assert (again.files, again.fetched) == (0, 0)


def test_after_a_commit_only_what_changed_is_fetched_and_both_stay_pinned(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
from huggingface_hub import HfApi
api = HfApi()
api.create_repo("team/moving", exist_ok=True)
api.upload_folder(repo_id="team/moving", folder_path=%r)
api.create_tag("team/moving", tag="v1")
print(api.upload_file(repo_id="team/moving", path_in_repo="generation_config.json", path_or_fileobj=b"{}").oid)
"""
    client = lab.client(monkeypatch, lab.hub.writer)
    newest = stock(lab.url, lab.hub.writer, code % str(lab.model)).splitlines()[-1]
    first = open_remote(client, "team/moving", "v1")
    second = open_remote(client, "team/moving")
    assert (second.mark.commit, second.files, second.reused) == (newest, 1, 5)
    assert (resolve("lab:team/moving").folder / "generation_config.json").read_text() == "{}"
    assert "temperature" in (resolve("lab:team/moving@v1").folder / "generation_config.json").read_text()
    assert first.folder != second.folder
    assert {each.reference for each in opened()} == {"lab:team/moving", "lab:team/moving@v1"}


def test_two_that_open_the_same_model_at_once_both_have_it(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    client = lab.client(monkeypatch, lab.hub.writer)
    folders: list[Path] = []
    threads = [
        threading.Thread(target=lambda: folders.append(open_remote(client, "team/small").folder)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(folders) == 4
    assert len(set(folders)) == 1
    assert [each.name for each in folders[0].parent.iterdir()] == [folders[0].name]


def test_another_hub_under_the_same_name_is_not_taken_for_the_first() -> None:
    with stand_in(files={"config.json": b'{"a": 1}'}) as one, stand_in(files={"config.json": b'{"b": 2}'}) as two:
        open_remote(client_of(one), "org/model")
        folder = open_remote(client_of(two), "org/model").folder
    assert (folder / "config.json").read_bytes() == b'{"b": 2}'


def test_what_a_killed_process_left_is_swept(lab: Lab, shadow: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = shadow.parent / ".new-1-2"
    left.mkdir()
    os.utime(left, (time.time() - 2 * 3600,) * 2)
    shutil.rmtree(shadow)
    open_remote(lab.client(monkeypatch, lab.hub.writer), "team/small")
    assert not left.exists()


# Hubs that lie


def broken(hub: StandIn, match: str, kind: type[HfbenchError] = HubError) -> None:
    with pytest.raises(kind, match=match):
        open_remote(client_of(hub), "org/model")
    assert not list(remote_root().rglob("config.json")), "nothing of a model that was refused stays"
    assert not list(remote_root().rglob(".new-*"))


def test_content_that_is_not_what_its_hash_says_is_refused() -> None:
    with stand_in(files={"config.json": b'{"a": 1}'}) as hub:
        hub.answers[f"/org/model/resolve/{COMMIT}/config.json"] = lambda at: send(at, 200, b'{"a": 2}')
        broken(hub, "is not what its hash says")


@pytest.mark.parametrize(("said", "sent"), [(8, b"{}      {}"), (10, b"{}"), (8, b"")])
def test_a_size_that_was_a_lie_is_refused(said: int, sent: bytes) -> None:
    with stand_in(files={"config.json": b"{}      "}, sizes={"config.json": said}) as hub:
        hub.answers[f"/org/model/resolve/{COMMIT}/config.json"] = lambda at: send(at, 200, sent)
        broken(hub, "has .* bytes, and the list of files says")


def test_a_body_that_ends_early_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from hfbench.hub import client as client_module

    monkeypatch.setattr(client_module, "WAITS", (0.01, 0.01))

    def cut(at: BaseHTTPRequestHandler) -> None:
        at.send_response(200)
        at.send_header("Content-Length", "8")
        at.end_headers()
        at.wfile.write(b"{}")
        at.close_connection = True

    with stand_in(files={"config.json": b"{}      "}) as hub:
        hub.answers[f"/org/model/resolve/{COMMIT}/config.json"] = cut
        broken(hub, "breaks off", HfbenchError)


def test_an_answer_from_another_commit_is_refused() -> None:
    with stand_in(files={"config.json": b"{}"}) as hub:
        hub.answers[f"/org/model/resolve/{COMMIT}/config.json"] = lambda at: send(
            at, 200, b"{}", {"X-Repo-Commit": "d" * 40}
        )
        broken(hub, "comes from another commit, dddddddddddd")


def test_a_header_that_claims_more_than_the_file_has_is_kept_as_it_is_and_told_by_the_reader() -> None:
    raw = struct.pack("<Q", 1 << 60) + b"{}" * 50_000
    with stand_in(files={"config.json": b"{}", "model.safetensors": raw}) as hub:
        found = open_remote(client_of(hub), "org/model")
        assert sum("model.safetensors" in path for path in hub.paths()) == 1
    assert any("claims" in problem.found for problem in summarise(found.folder).problems)


def test_headers_without_end_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_module, "MOST_BYTES", 300_000)
    monkeypatch.setattr(headers_module, "FIRST", 1000)
    raw = safetensors({"w": [1]}, metadata={"note": "x" * 200_000})
    with stand_in(files={f"m{number}.safetensors": raw for number in range(3)}) as hub:
        broken(hub, "of small files and headers")


def test_more_files_of_weights_than_any_model_has_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from hfbench.hub import selection

    monkeypatch.setattr(selection, "MOST_HEADERS", 3)
    with stand_in(files={f"m{number}.safetensors": b"x" for number in range(4)}) as hub:
        broken(hub, "has 4 files of weights, more than 3")


def test_a_name_that_is_a_file_and_a_folder_is_refused() -> None:
    with stand_in(files={"a.json": b"{}", "a.json/b.json": b"{}"}) as hub:
        broken(hub, "is a file and a folder at once")


def test_a_path_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    with stand_in(files={"../../../evil.json": b"{}"}) as hub:
        broken(hub, "is not the path of a file in a model", NotAHub)
    assert not list(tmp_path.rglob("evil.json"))


def test_one_that_never_ends_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_module, "OPEN_TIME", 0.5)

    def hang(at: BaseHTTPRequestHandler) -> None:
        time.sleep(2)
        send_file(at, b"{}")

    with stand_in(files={"config.json": b"{}"}) as hub:
        hub.answers[f"/org/model/resolve/{COMMIT}/config.json"] = hang
        began = time.monotonic()
        broken(hub, "took longer than 0.5 s", HfbenchError)
        assert time.monotonic() - began < 2


def test_a_job_that_waits_for_a_hub_is_cancelled_at_once(hfbench: Hfbench) -> None:
    with stand_in(files={"config.json": b"{}"}) as hub:
        hub.answers[f"/org/model/resolve/{COMMIT}/config.json"] = lambda at: time.sleep(20)
        job = json.loads(hfbench("hub", "open", "org/model", "--endpoint", hub.url, "--detach", "--json").stdout)["job"]
        while not any("resolve" in path for path in hub.paths()):
            time.sleep(0.05)
        began = time.monotonic()
        hfbench("jobs", "cancel", job)
        done = hfbench("jobs", "wait", job)
        assert time.monotonic() - began < 5
    assert "cancelled" in done.stdout
    assert not list(remote_root().rglob("config.json"))


def test_the_token_is_in_no_file_of_the_job_and_none_of_the_folder(
    lab_settings: Lab, hfbench: Hfbench, home: Path
) -> None:
    done = hfbench("hub", "open", REF)
    assert done.returncode == 0
    secret = lab_settings.hub.writer.encode()
    files = [path for path in home.rglob("*") if path.is_file()]
    assert any(path.name == "request.json" for path in files)
    assert not [path for path in files if secret in path.read_bytes()]
    assert read_mark(resolve(REF).folder) is not None
