"""Pulls that are killed in the moments between one file operation and the next: a real SIGKILL, timed by a patch."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from stand_in_hub import COMMIT, StandIn, stand_in

from hfbench.hub.pull import pull
from hfbench.jobs.run import Run

WEIGHTS = bytes(range(256)) * 8192
FILES = {"config.json": b"{}", "model.safetensors": WEIGHTS}
AT = f"/org/model/resolve/{COMMIT}/"
CODE = """
import os, signal, sys
from pathlib import Path
from hfbench.hub.pulling import partial, places
from hfbench.hub.pull import pull
from hfbench.jobs.run import Run

url, cache, place, name, moment = sys.argv[1:]
kind = getattr({"places": places, "partial": partial}[place], {"places": "CachePlace", "partial": "Partial"}[place])
real = getattr(kind, name)

def dying(self, *given):
    if moment == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    real(self, *given)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(kind, name, dying)
pull("org/model", Run(), endpoint=url, cache=Path(cache))
"""
POINTS = [
    ("partial", "open", "after"),
    ("partial", "note", "after"),
    ("places", "publish", "before"),
    ("places", "publish", "after"),
    ("partial", "remove", "after"),
    ("places", "put", "after"),
    ("places", "finish", "before"),
]


def etag(content: bytes) -> str:
    return hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()


@pytest.mark.parametrize(("place", "name", "moment"), POINTS)
def test_a_kill_at_any_moment_leaves_only_right_blobs_and_a_pull_that_goes_on(
    tmp_path: Path, place: str, name: str, moment: str
) -> None:
    cache = tmp_path / "cache"
    top = cache / "models--org--model"
    with stand_in(files=dict(FILES)) as hub:
        words = [sys.executable, "-c", CODE, hub.url, str(cache), place, name, moment]
        assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
        for blob in (top / "blobs").iterdir():
            assert "." in blob.name or blob.name == etag(blob.read_bytes())
        assert not (top / "refs" / "main").exists()
        published = {each.name for each in (top / "blobs").iterdir() if "." not in each.name}
        assert_finished(hub, cache, top, published)


def assert_finished(hub: StandIn, cache: Path, top: Path, published: set[str]) -> None:
    """A second pull brings the rest, asks for nothing that was published, and leaves nothing behind."""
    hub.asked.clear()
    done = pull("org/model", Run(), endpoint=hub.url, cache=cache)
    assert {file: (Path(done.folder) / file).read_bytes() for file in FILES} == FILES
    fetched = {path.removeprefix(AT) for path in hub.paths() if path.startswith(AT)}
    assert not fetched & {file for file, content in FILES.items() if etag(content) in published}
    assert (top / "refs" / "main").read_text() == COMMIT
    assert not list(cache.rglob("*incomplete"))
