"""Pulls from a hub that is not honest, or breaks off: what is published is right, or nothing is."""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import fields
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from stand_in_hub import COMMIT, StandIn, redirect, send, send_file, stand_in

from hfbench.actions.pull import PullResult
from hfbench.errors import HfbenchError, UsageError
from hfbench.hub.facts import HubFile
from hfbench.hub.pull import pull
from hfbench.hub.pulling import crew, places
from hfbench.hub.pulling.content import Wish
from hfbench.hub.pulling.facts import Pulled
from hfbench.jobs.run import Run

MIB = 1 << 20
WEIGHTS = bytes(range(256)) * (6 * MIB // 256)
FILES = {"config.json": b"{}", "model.safetensors": WEIGHTS, "README.md": b"# Model\n", "empty.txt": b""}
AT = f"/org/model/resolve/{COMMIT}/model.safetensors"
QUICK = Wish(patience=1.0)


@pytest.fixture
def hub() -> Iterator[StandIn]:
    with stand_in(files=dict(FILES)) as running:
        yield running


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def pulled(hub: StandIn, cache: Path, run: Run | None = None, wish: Wish = QUICK, **more: Any) -> Pulled:
    return pull("org/model", run or Run(), endpoint=hub.url, cache=cache, wish=wish, **more)


def etag(content: bytes) -> str:
    return hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()


def blobs(cache: Path) -> set[str]:
    return {each.name for each in (cache / "models--org--model" / "blobs").glob("*")}


def cut_after(count: int) -> Callable[[BaseHTTPRequestHandler], None]:
    """An answer that promises everything and breaks off."""

    def answer(at: BaseHTTPRequestHandler) -> None:
        at.send_response(200)
        at.send_header("Content-Length", str(len(WEIGHTS)))
        at.end_headers()
        at.wfile.write(WEIGHTS[:count])
        at.wfile.flush()
        at.close_connection = True

    return answer


def test_the_layout_is_that_of_stock_clients(hub: StandIn, cache: Path) -> None:
    done = pulled(hub, cache)
    top = cache / "models--org--model"
    assert Path(done.folder) == top / "snapshots" / COMMIT
    assert (top / "refs" / "main").read_text() == COMMIT
    assert {name: (Path(done.folder) / name).read_bytes() for name in FILES} == FILES
    assert blobs(cache) == {etag(content) for content in FILES.values()}
    assert os.readlink(Path(done.folder) / "config.json") == f"../../blobs/{etag(b'{}')}"
    assert not list(cache.rglob("*incomplete"))


def test_a_second_pull_fetches_nothing(hub: StandIn, cache: Path) -> None:
    pulled(hub, cache)
    hub.asked.clear()
    again = pulled(hub, cache)
    assert again.fetched_bytes == 0
    assert {each.state for each in again.files} == {"here"}
    assert not [path for path in hub.paths() if "/resolve/" in path]


def test_a_dry_run_tells_sizes_and_writes_nothing(hub: StandIn, cache: Path) -> None:
    told = pulled(hub, cache, dry_run=True)
    assert told.wanted_bytes == sum(len(content) for content in FILES.values())
    assert not cache.exists()


def test_wrong_bytes_of_the_right_size_are_never_published(hub: StandIn, cache: Path) -> None:
    flipped = bytearray(WEIGHTS)
    flipped[3 * MIB] ^= 1
    hub.answers[AT] = lambda at: send(at, 200, bytes(flipped), {"X-Repo-Commit": COMMIT})
    with pytest.raises(
        HfbenchError, match=rf"model\.safetensors: the hub sent wrong bytes: the git id is .*{etag(WEIGHTS)}"
    ):
        pulled(hub, cache)
    assert etag(WEIGHTS) not in blobs(cache)
    assert not (cache / "models--org--model" / "snapshots" / COMMIT / "model.safetensors").is_symlink()
    assert not (cache / "models--org--model" / "refs" / "main").exists()
    assert not [name for name in blobs(cache) if name.startswith(etag(WEIGHTS))]
    del hub.answers[AT]
    assert pulled(hub, cache).fetched_bytes >= len(WEIGHTS)


def test_a_hub_that_says_another_hash_than_it_listed_is_refused_before_the_bytes(hub: StandIn, cache: Path) -> None:
    hub.answers[AT] = lambda at: send(at, 200, WEIGHTS, {"ETag": f'"{"0" * 40}"'})
    with pytest.raises(HfbenchError, match=r"the hub lists the content .* and sends 000000000000"):
        pulled(hub, cache)


def test_a_file_of_another_size_than_listed_is_refused(hub: StandIn, cache: Path) -> None:
    hub.answers[AT] = lambda at: send(at, 200, WEIGHTS + b"more")
    with pytest.raises(HfbenchError, match=r"lists 6,291,456 bytes and sends a file of 6,291,460"):
        pulled(hub, cache)


def test_a_broken_answer_is_gone_on_with_in_the_same_pull(hub: StandIn, cache: Path) -> None:
    def once(at: BaseHTTPRequestHandler) -> None:
        hub.answers.pop(AT)
        cut_after(5 * MIB)(at)

    hub.answers[AT] = once
    done = pulled(hub, cache, wish=Wish(patience=20))
    assert done.fetched_bytes == sum(len(content) for content in FILES.values())
    ranges = [each.headers.get("range", "") for each in hub.asked if "model.safetensors" in each.path]
    assert ranges[0] == ""
    assert int(ranges[1].removeprefix("bytes=").partition("-")[0]) > 4 * MIB


def test_what_came_before_the_network_went_is_kept_and_not_asked_for_again(hub: StandIn, cache: Path) -> None:
    hub.answers[AT] = cut_after(5 * MIB)

    def gone(at: BaseHTTPRequestHandler) -> None:
        hub.answers[AT] = lambda at: at.connection.shutdown(socket.SHUT_RDWR)
        cut_after(5 * MIB)(at)

    hub.answers[AT] = gone
    with pytest.raises(HfbenchError):
        pulled(hub, cache)
    del hub.answers[AT]
    hub.asked.clear()
    done = pulled(hub, cache)
    assert done.resumed_bytes > 4 * MIB
    assert done.fetched_bytes + done.resumed_bytes >= len(WEIGHTS)
    assert done.fetched_bytes < 2 * MIB
    assert (Path(done.folder) / "model.safetensors").read_bytes() == WEIGHTS


def test_an_earlier_run_that_left_damage_costs_one_new_start_and_says_so(hub: StandIn, cache: Path) -> None:
    hub.answers[AT] = cut_after(5 * MIB)
    with pytest.raises(HfbenchError):
        pulled(hub, cache, wish=Wish(patience=0.1))
    part = cache / "models--org--model" / "blobs" / f"{etag(WEIGHTS)}.hfbench.incomplete"
    with part.open("r+b") as file:
        file.seek(MIB)
        file.write(b"damaged")
    del hub.answers[AT]
    done = pulled(hub, cache)
    assert done.restarted == ("model.safetensors",)
    assert any("damaged, so it starts anew" in note for note in done.notes)
    assert (Path(done.folder) / "model.safetensors").read_bytes() == WEIGHTS


def test_a_file_that_changed_on_the_hub_starts_anew_by_a_sentence(hub: StandIn, cache: Path) -> None:
    hub.answers[AT] = cut_after(5 * MIB)
    with pytest.raises(HfbenchError):
        pulled(hub, cache, wish=Wish(patience=0.1))
    del hub.answers[AT]
    hub.files["model.safetensors"] = WEIGHTS[::-1]
    done = pulled(hub, cache)
    assert any("model.safetensors has changed on the hub" in note for note in done.notes)
    assert (Path(done.folder) / "model.safetensors").read_bytes() == WEIGHTS[::-1]
    assert not list(cache.rglob("*incomplete"))


def test_a_hub_without_ranges_still_serves(hub: StandIn, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "STRETCH", MIB)
    hub.answers[AT] = lambda at: send(at, 200, WEIGHTS, {"X-Repo-Commit": COMMIT})
    done = pulled(hub, cache)
    assert (Path(done.folder) / "model.safetensors").read_bytes() == WEIGHTS
    assert any("sends no parts of files" in note for note in done.notes)


def test_large_files_are_fetched_in_stretches(hub: StandIn, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "STRETCH", MIB)
    done = pulled(hub, cache)
    assert (Path(done.folder) / "model.safetensors").read_bytes() == WEIGHTS
    ranges = {each.headers.get("range", "") for each in hub.asked if "model.safetensors" in each.path}
    assert ranges == {f"bytes={start}-{start + MIB - 1}" for start in range(0, 6 * MIB, MIB)}


def test_the_token_does_not_travel_to_the_host_of_the_files(
    hub: StandIn, cache: Path, monkeypatch: pytest.MonkeyPatch, settings: Callable[[str], None]
) -> None:
    monkeypatch.setenv("LAB_TOKEN", "secret-token")
    settings(f'[endpoints.lab]\nurl = "{hub.url}"\ntoken_env = "LAB_TOKEN"\n')
    with stand_in(files=dict(FILES)) as elsewhere:
        elsewhere.answers["/cdn"] = lambda at: send_file(at, WEIGHTS)
        hub.answers[AT] = redirect(f"{elsewhere.url}/cdn?signature=x")
        done = pull("lab:org/model", Run(), cache=cache, wish=QUICK)
        assert (Path(done.folder) / "model.safetensors").read_bytes() == WEIGHTS
        assert {each.headers.get("authorization") for each in hub.asked} == {"Bearer secret-token"}
        assert [each.headers.get("authorization") for each in elsewhere.asked] == [None]


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "a/../../b", "a\\b", ".git/config", "a//b"])
def test_a_path_that_leads_out_of_the_folder_is_refused(hub: StandIn, cache: Path, path: str) -> None:
    hub.files[path] = b"x"
    with pytest.raises(HfbenchError):
        pulled(hub, cache, wish=Wish(runtime="all"))
    assert not list(cache.rglob("*.json"))


def test_too_little_room_is_told_before_anything_is_fetched(
    hub: StandIn, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hfbench.hub.pull.free_bytes", lambda folder: 5 * MIB)
    with pytest.raises(HfbenchError, match=r"6\.00 MiB are missing, and the disk has 5\.00 MiB free"):
        pulled(hub, cache)
    assert not [path for path in hub.paths() if "/resolve/" in path]


def test_a_file_larger_than_the_process_may_write_is_a_sentence_and_nothing_is_published(
    hub: StandIn, cache: Path
) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4 * MIB, before[1]))
    try:
        with pytest.raises(HfbenchError, match=r"model\.safetensors.*larger than a file may be"):
            pulled(hub, cache)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert etag(WEIGHTS) not in blobs(cache)
    assert (Path(pulled(hub, cache).folder) / "model.safetensors").read_bytes() == WEIGHTS


def test_a_file_system_without_links_gets_files_and_is_told_of(
    hub: StandIn, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulated: os.symlink refuses as vfat does."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(places.os, "symlink", refuse)
    done = pulled(hub, cache)
    assert (Path(done.folder) / "model.safetensors").read_bytes() == WEIGHTS
    assert not (Path(done.folder) / "model.safetensors").is_symlink()
    assert any("has no symbolic links" in note for note in done.notes)
    assert pulled(hub, cache).fetched_bytes == 0


def test_a_file_system_without_flock_gets_markers_and_is_told_of(
    hub: StandIn, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulated: flock answers as a file system without it does."""
    import fcntl

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", refuse)
    done = pulled(hub, cache)
    assert (Path(done.folder) / "model.safetensors").read_bytes() == WEIGHTS
    assert any("has no flock" in note for note in done.notes)
    assert not [path for path in (cache / ".locks").rglob("*.lock") if path.read_bytes()], "no marker stays behind"


def other_blob(cache: Path, content: bytes) -> Path:
    """The content in another repository of the cache, under the name of the weights."""
    blob = cache / "models--org--other" / "blobs" / etag(WEIGHTS)
    blob.parent.mkdir(parents=True)
    blob.write_bytes(content)
    return blob


def test_a_content_that_another_model_has_is_copied_and_not_fetched(hub: StandIn, cache: Path, tmp_path: Path) -> None:
    other_blob(cache, WEIGHTS)
    for more in ({}, {"to": tmp_path / "plain"}):
        done = pulled(hub, cache, **more)
        assert done.copied_bytes == len(WEIGHTS)
        assert (Path(done.folder) / "model.safetensors").read_bytes() == WEIGHTS
    assert not [path for path in hub.paths() if path.endswith("model.safetensors")]


def test_a_damaged_copy_in_another_model_is_not_believed(hub: StandIn, cache: Path) -> None:
    other_blob(cache, WEIGHTS[:-1] + b"X")
    done = pulled(hub, cache)
    assert done.restarted == ("model.safetensors",)
    assert (Path(done.folder) / "model.safetensors").read_bytes() == WEIGHTS


def test_a_link_in_another_model_is_not_copied_through(hub: StandIn, cache: Path, tmp_path: Path) -> None:
    blob = other_blob(cache, b"")
    blob.unlink()
    (tmp_path / "secret").write_bytes(WEIGHTS)
    blob.symlink_to(tmp_path / "secret")
    assert pulled(hub, cache).copied_bytes == 0


def test_leftovers_of_stock_clients_are_explained_and_left_alone(hub: StandIn, cache: Path) -> None:
    orphan = cache / "models--org--model" / "blobs" / f"{etag(WEIGHTS)}.0a1b2c3d.incomplete"
    orphan.parent.mkdir(parents=True)
    orphan.write_bytes(WEIGHTS[:MIB])
    told: list[str] = []
    pulled(hub, cache, Run(emit=lambda event: told.append(getattr(event, "text", ""))))
    assert any("1 download that another client broke off, 1.00 MiB" in text for text in told)
    assert orphan.exists()


def test_a_file_that_another_process_downloads_is_waited_for(hub: StandIn, cache: Path) -> None:
    from hfbench.hub.pulling.locks import BlobLock

    place = places.CachePlace(cache, "org/model", COMMIT)
    file = HubFile("model.safetensors", len(WEIGHTS), etag(WEIGHTS))
    lock = BlobLock(place.lock(file))
    assert lock.take()

    def other() -> None:
        time.sleep(0.5)
        (place.blobs / file.etag).write_bytes(WEIGHTS)
        lock.release()

    thread = threading.Thread(target=other)
    thread.start()
    done = pulled(hub, cache)
    thread.join()
    assert (Path(done.folder) / "model.safetensors").read_bytes() == WEIGHTS
    assert not [path for path in hub.paths() if path.endswith("model.safetensors")]


def test_a_folder_gets_plain_files_with_the_notes_of_stock_clients(hub: StandIn, cache: Path, tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    done = pulled(hub, cache, to=folder)
    assert {name: (folder / name).read_bytes() for name in FILES} == FILES
    assert not (folder / "model.safetensors").is_symlink()
    note = (folder / ".cache/huggingface/download/model.safetensors.metadata").read_text().splitlines()
    assert note[:2] == [COMMIT, etag(WEIGHTS)]
    assert done.fetched_bytes == sum(len(content) for content in FILES.values())
    assert pulled(hub, cache, to=folder).fetched_bytes == 0


def test_a_file_of_somebody_in_the_folder_is_not_replaced_unasked(hub: StandIn, cache: Path, tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "config.json").write_text("mine")
    with pytest.raises(HfbenchError, match=r"config\.json: is another file than the hub's"):
        pulled(hub, cache, to=folder)
    assert (folder / "config.json").read_text() == "mine"
    pulled(hub, cache, to=folder, replace=True)
    assert (folder / "config.json").read_bytes() == b"{}"


def test_a_link_that_leads_out_of_the_folder_is_not_written_through(hub: StandIn, cache: Path, tmp_path: Path) -> None:
    folder, outside = tmp_path / "plain", tmp_path / "outside.json"
    folder.mkdir()
    outside.write_text("mine")
    (folder / "config.json").symlink_to(outside)
    with pytest.raises(HfbenchError, match="a link leads out of the folder"):
        pulled(hub, cache, to=folder, replace=True)
    assert outside.read_text() == "mine"


def test_contradictions_in_the_request_are_refused(cache: Path) -> None:
    with pytest.raises(UsageError, match="names no model of a hub"):
        pull("./folder", Run(), cache=cache)
    with pytest.raises(UsageError, match="is of lab, and --endpoint says other"):
        pull("lab:org/model", Run(), endpoint="other", cache=cache)
    with pytest.raises(UsageError, match="is at v1, and --revision says v2"):
        pull("org/model@v1", Run(), revision="v2", cache=cache)


def test_a_listing_whose_file_is_also_a_folder_is_refused_before_anything_is_fetched(hub: StandIn, cache: Path) -> None:
    hub.files["README.md/x.json"] = b"{}"
    with pytest.raises(HfbenchError, match=r"'README\.md' as a file and as the folder of 'README\.md/x\.json'"):
        pulled(hub, cache, wish=Wish(include=("*",)))
    assert not blobs(cache)


def test_a_pull_that_fetches_nothing_says_that_it_did_not_read_again(hub: StandIn, cache: Path) -> None:
    first = pulled(hub, cache)
    (Path(first.folder) / "model.safetensors").resolve().write_bytes(bytes(len(WEIGHTS)))
    second = PullResult(**{each.name: getattr(pulled(hub, cache), each.name) for each in fields(PullResult)})
    assert "contents were not read again: pull --verify does" in "\n".join(second.lines())
    told = PullResult(**{each.name: getattr(first, each.name) for each in fields(PullResult)})
    assert "not read again" not in "\n".join(told.lines())


def test_a_blob_that_was_damaged_here_is_fetched_again_when_it_is_asked_for(hub: StandIn, cache: Path) -> None:
    first = pulled(hub, cache)
    blob = cache / "models--org--model" / "blobs" / etag(WEIGHTS)
    with blob.open("r+b") as file:
        file.write(b"wrong")
    assert pulled(hub, cache).fetched_bytes == 0
    asked = pulled(hub, cache, wish=Wish(patience=1.0, verify=True), dry_run=True)
    assert (asked.wanted_bytes, blob.read_bytes() == WEIGHTS) == (len(WEIGHTS), False)
    mended = pulled(hub, cache, wish=Wish(patience=1.0, verify=True))
    assert mended.notes == ("model.safetensors is damaged here: it is fetched again",)
    assert {each.path for each in mended.files if each.state == "fetched"} == {"model.safetensors"}
    assert (Path(first.folder) / "model.safetensors").read_bytes() == WEIGHTS
    assert pulled(hub, cache, wish=Wish(patience=1.0, verify=True)).fetched_bytes == 0


def test_a_damaged_file_that_is_no_link_is_mended_too(hub: StandIn, cache: Path) -> None:
    file = Path(pulled(hub, cache).folder) / "model.safetensors"
    file.unlink()
    file.write_bytes(b"wrong" + WEIGHTS[5:])
    pulled(hub, cache, wish=Wish(patience=1.0, verify=True))
    assert file.read_bytes() == WEIGHTS
