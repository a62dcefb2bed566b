"""Loaders in their processes: every byte right, and every way to fail a reason."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hfbench.errors import HfbenchError
from hfbench.gpu.loading.files import find_files
from hfbench.gpu.loading.loaders import LOADERS, find_loaders
from hfbench.gpu.loading.processes import LoaderFailed, LoaderProcess
from hfbench.gpu.loading.tensors import _PREPARE, digest, file_digest, loader_function, timed_load

ALWAYS = [each.id for each in LOADERS if not set(each.needs) - {"torch", "safetensors"} and each.id != "plain"]
BIG = 2**27
"""Bytes of a load whose peak no other may have."""
OPTIONAL = [each.id for each in LOADERS if set(each.needs) - {"torch", "safetensors"}]


@pytest.fixture
def plain() -> Iterator[LoaderProcess]:
    """The process of the loader that needs no library."""
    with LoaderProcess("plain", limit=1.0) as process:
        process.ready()
        yield process


def test_every_declared_loader_has_its_function() -> None:
    assert [each.id for each in LOADERS] == list(_PREPARE)


@pytest.mark.parametrize("id", [*ALWAYS, *OPTIONAL])
def test_a_loader_gives_every_byte_of_the_files(checkpoint: Path, id: str) -> None:
    [loader] = [each for each in LOADERS if each.id == id]
    files = find_files(checkpoint)
    if refusal := loader.refusal(files.formats, "cpu"):
        pytest.skip(refusal)
    seconds, tensors = timed_load(loader_function(id), list(files.of(loader.format)), "cpu")
    assert seconds > 0
    assert digest(tensors) == file_digest(list(files.safetensors))


def test_a_changed_byte_changes_the_digest(checkpoint: Path, tmp_path: Path) -> None:
    [first, *_] = find_files(checkpoint).safetensors
    data = bytearray(first.read_bytes())
    data[-1] ^= 1
    (tmp_path / "changed.safetensors").write_bytes(data)
    assert file_digest([tmp_path / "changed.safetensors"]) != file_digest([first])


def test_a_file_that_is_no_safetensors_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(HfbenchError, match=r"model\.safetensors: the file is empty"):
        file_digest([tmp_path / "model.safetensors"])


def test_each_load_has_a_peak_of_its_own(checkpoint: Path, tmp_path: Path) -> None:
    """A large load comes first; what a machine short of memory reads of torch anew is some 60 MiB, and far less."""
    files, big = find_files(checkpoint), tmp_path / "big.safetensors"
    header = b'{"x": {"dtype": "U8", "shape": [%d], "data_offsets": [0, %d]}}' % (BIG, BIG)
    big.write_bytes(len(header).to_bytes(8, "little") + header)
    os.truncate(big, 8 + len(header) + BIG)
    with LoaderProcess("safetensors-read", limit=60) as process:
        process.ready()
        large = process.load((big,), "cpu")
        told = [process.load(files.safetensors, "cpu", verify=first) for first in (True, False)]
    assert [bool(each["digest"]) for each in told] == [True, False]
    assert {each["tensors"] for each in told} == {13}
    grown = [each["rss_peak"] - each["rss_before"] for each in (large, *told)]
    held = sum(each.stat().st_size for each in files.safetensors)
    assert grown[0] >= BIG
    assert min(grown) >= held
    assert max(grown[1:]) < BIG, "a peak of one load was carried into the next"


def test_a_load_that_hangs_is_given_up(plain: LoaderProcess, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    began = time.monotonic()
    with pytest.raises(LoaderFailed, match=r"one load took longer than 1\.00 s"):
        plain.load([tmp_path / "pipe"], "cpu")
    assert time.monotonic() - began < 20


def test_a_load_that_is_killed_names_the_signal_and_the_next_one_works(plain: LoaderProcess, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"x")

    def kill() -> None:
        pid = plain._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children")
        while not (found := children.read_text().split()):
            time.sleep(0.01)
        os.kill(int(found[0]), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(LoaderFailed, match="it ended by SIGKILL, as the kernel does when memory runs out"):
        plain.load([tmp_path / "pipe"], "cpu")
    killer.join()
    assert plain.load([tmp_path / "file"], "cpu")["seconds"] > 0


def test_what_a_library_says_becomes_the_reason(tmp_path: Path) -> None:
    (tmp_path / "broken.safetensors").write_bytes(b"\xff" * 64)
    with LoaderProcess("safetensors-mmap", limit=60) as process:
        process.ready()
        with pytest.raises(LoaderFailed, match="SafetensorError"):
            process.load([tmp_path / "broken.safetensors"], "cpu")


def test_a_pickle_that_asks_for_code_is_refused_by_the_loader(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    class Evil:
        def __reduce__(self) -> object:
            return os.system, (f"touch {tmp_path / 'ran'}",)

    torch.save({"w": Evil()}, tmp_path / "pytorch_model.bin")
    with LoaderProcess("torch-load", limit=60) as process:
        process.ready()
        with pytest.raises(LoaderFailed, match=r"holds posix\.system, which is no tensor: refused, and not run$"):
            process.load([tmp_path / "pytorch_model.bin"], "cpu")
        (tmp_path / "pytorch_model.bin").write_bytes(b"version https://git-lfs")
        with pytest.raises(LoaderFailed, match=r"pytorch_model\.bin is no pickle of tensors$"):
            process.load([tmp_path / "pytorch_model.bin"], "cpu")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("id", "formats", "device", "reason"),
    [
        ("safetensors-mmap", ("pickle",), "cpu", "no .safetensors file here"),
        ("torch-load", ("safetensors",), "cpu", "no .bin, .pt or .pth file here"),
        ("plain", ("pickle",), "cpu", ""),
        ("safetensors-mmap", ("safetensors",), "cuda:0", ""),
    ],
)
def test_what_cannot_run_has_a_reason(id: str, formats: tuple[str, ...], device: str, reason: str) -> None:
    [loader] = [each for each in LOADERS if each.id == id]
    assert loader.refusal(formats, device) == reason


def test_plain_reading_always_comes_along() -> None:
    assert [each.id for each in find_loaders(["torch-load"])] == ["plain", "torch-load"]
    assert find_loaders([]) == LOADERS


def test_no_loader_takes_a_pickle_for_safe() -> None:
    assert {each.safe for each in LOADERS if each.format == "pickle"} == {False}
    assert all(each.safe != bool(each.why) for each in LOADERS)


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(HfbenchError, match=r"holds no safetensors, \.bin or \.pt file"):
        find_files(tmp_path)


def test_a_shard_that_is_missing_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    for file in checkpoint.iterdir():
        if "00002-of" not in file.name:
            shutil.copy(file, tmp_path)
    with pytest.raises(HfbenchError) as caught:
        find_files(tmp_path)
    assert "00002-of" in str(caught.value)
