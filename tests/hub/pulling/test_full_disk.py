"""A pull onto a disk that fills up: a file system of a few megabytes, where the tests may mount one."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from stand_in_hub import stand_in

from hfbench.errors import HfbenchError
from hfbench.hub.pull import pull
from hfbench.hub.pulling.content import Wish
from hfbench.jobs.run import Run

MIB = 1 << 20
WEIGHTS = bytes(range(256)) * (12 * MIB // 256)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("no right to mount a file system here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def test_a_full_disk_is_a_sentence_and_the_pull_goes_on_once_there_is_room(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(8 * MIB))
    with stand_in(files={"model.safetensors": WEIGHTS, "config.json": b"{}"}) as hub:

        def pulled() -> Path:
            wish = Wish(patience=1.0)
            return Path(pull("org/model", Run(), endpoint=hub.url, cache=small_disk / "cache", wish=wish).folder)

        with pytest.raises(HfbenchError, match=r"12\.0 MiB are missing, and the disk has .* free.*hfbench cache"):
            pulled()
        with monkeypatch.context() as patch:  # as if it filled up later
            patch.setattr("hfbench.hub.pull.free_bytes", lambda folder: 1 << 40)
            with pytest.raises(HfbenchError, match=r"model\.safetensors: the disk is full"):
                pulled()
        assert not list((small_disk / "cache").rglob("snapshots/*/model.safetensors"))
        ballast.unlink()
        hub.asked.clear()
        assert (pulled() / "model.safetensors").read_bytes() == WEIGHTS
        ranges = [each.headers.get("range", "") for each in hub.asked if "model.safetensors" in each.path]
        assert ranges[0].startswith("bytes="), "what was written before is not asked for again"
