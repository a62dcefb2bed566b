"""Pulling 1 GiB from a hub of this machine, beside a stock download that is hashed afterwards."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from claims import Claim, Measure, Record, cpu, finish, run

import hfbench

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "registry"))

GIB = 1 << 30
REPO = "team/large"

CLAIM = Claim(
    name="pull",
    sentence="pulling 1 GiB, verified, costs at most 1.1 times the CPU of a stock download and one sha256 of it",
    bound=1.1,
    unit="s CPU",
)


def write_weights(path: Path) -> None:
    """1 GiB that is not the same block again and again."""
    block = random.Random(0).randbytes(64 << 20)
    with path.open("wb") as file:
        for turn in range(GIB // len(block)):
            file.write(block[turn:] + block[:turn])


def put_on_hub(url: str, token: str, path: Path) -> None:
    """By the stock client, in a process of its own."""
    code = f"""
from huggingface_hub import HfApi
api = HfApi(endpoint={url!r}, token={token!r})
api.create_repo({REPO!r})
api.upload_file(repo_id={REPO!r}, path_or_fileobj={str(path)!r}, path_in_repo="model.bin")
"""
    env = {**os.environ, "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_XET": "1"}
    subprocess.run([sys.executable, "-c", code], env=env, check=True)


def main() -> None:
    """Serve, measure in turns, keep the record."""
    from hub_process import make_hub

    with tempfile.TemporaryDirectory() as scratch:
        top = Path(scratch)
        os.environ |= {"HFBENCH_HOME": str(top / "home"), "HF_HOME": str(top / "hf"), "HF_HUB_DISABLE_XET": "1"}
        os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
        write_weights(top / "model.bin")
        hub = make_hub(top)
        hub.start()
        try:
            put_on_hub(hub.url, hub.writer, top / "model.bin")
            (top / "model.bin").unlink()
            os.environ |= {"HF_ENDPOINT": hub.url, "HF_TOKEN": hub.writer}
            finish(measured(top / "cache"))
        finally:
            hub.stop()


def measured(cache: Path) -> Record:
    """Both clients in this process, each into an empty cache."""
    from huggingface_hub import snapshot_download

    from hfbench.hub.pull import pull
    from hfbench.jobs.run import Run

    def ours() -> None:
        pull(REPO, Run(), cache=cache)

    def stock() -> None:
        folder = snapshot_download(REPO, cache_dir=cache)
        with open(Path(folder) / "model.bin", "rb") as file:
            hashlib.file_digest(file, "sha256")

    def emptied(call: Callable[[], None]) -> Measure:
        measure = cpu(call)

        def fresh() -> float:
            shutil.rmtree(cache, ignore_errors=True)
            return measure()

        return fresh

    versions = {"hfbench": hfbench.__version__, "huggingface_hub": version("huggingface_hub")}
    return run(CLAIM, subject=emptied(ours), peer=emptied(stock), rounds=5, versions=versions, notes={"bytes": GIB})


if __name__ == "__main__":
    main()
