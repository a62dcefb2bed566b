"""What a pull left, as stock clients see it: a real hub, and huggingface_hub and hf in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from hub_lab import Lab, stock

from hfbench.hub.pull import pull
from hfbench.hub.pulling.places import CachePlace
from hfbench.jobs.run import Run

Hfbench = Callable[..., subprocess.CompletedProcess[str]]


def test_stock_clients_take_a_pulled_model_offline_and_verify_it(lab_settings: Lab, tmp_path: Path) -> None:
    lab = lab_settings
    cache = tmp_path / "hf" / "hub"
    done = pull("lab:team/small", Run(), cache=cache)
    assert {each.path for each in done.files} >= {"model-00001-of-00002.safetensors", "config.json", "README.md"}
    code = """
from huggingface_hub import snapshot_download, scan_cache_dir, try_to_load_from_cache
from transformers import AutoModelForCausalLM
print(snapshot_download("team/small", local_files_only=True))
print(sum(1 for repo in scan_cache_dir().repos for revision in repo.revisions for file in revision.files))
print(len(scan_cache_dir().warnings))
print(AutoModelForCausalLM.from_pretrained("team/small", local_files_only=True).num_parameters())
"""
    folder, files, warnings, parameters = stock("http://127.0.0.1:9", "", code).splitlines()[-4:]
    assert folder == done.folder
    assert (int(files), int(warnings)) == (len(done.files), 0)
    assert int(parameters) > 0
    hf = Path(sys.executable).with_name("hf")
    env = {**os.environ, "HF_ENDPOINT": lab.url, "HF_TOKEN": lab.hub.writer}
    said = subprocess.run([hf, "cache", "verify", "team/small"], env=env, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert "All checksums match" in said.stdout


def test_a_stock_download_after_a_pull_fetches_nothing_again(lab_settings: Lab, tmp_path: Path) -> None:
    lab = lab_settings
    cache = tmp_path / "hf" / "hub"
    pull("lab:team/small", Run(), cache=cache)
    blobs = CachePlace(cache, "team/small", lab.commit).blobs
    before = {each.name: each.stat().st_mtime_ns for each in blobs.iterdir()}
    stock(lab.url, lab.hub.writer, 'from huggingface_hub import snapshot_download; snapshot_download("team/small")')
    after = {each.name: each.stat().st_mtime_ns for each in blobs.iterdir()}
    assert before.items() <= after.items()


def test_a_pull_after_a_stock_download_fetches_nothing_again(lab_settings: Lab, tmp_path: Path) -> None:
    lab = lab_settings
    stock(lab.url, lab.hub.writer, 'from huggingface_hub import snapshot_download; snapshot_download("team/small")')
    assert pull("lab:team/small", Run(), cache=tmp_path / "hf" / "hub").fetched_bytes == 0


def test_the_lock_of_a_stock_client_is_respected(lab_settings: Lab, tmp_path: Path) -> None:
    """A stock client's lock library holds the lock of a blob while the pull waits."""
    cache = tmp_path / "cache"
    file = next(each for each in pull("lab:team/small", Run(), cache=cache, dry_run=True).files if "00001" in each.path)
    lock = cache / ".locks" / "models--team--small" / f"{file.etag}.lock"
    lock.parent.mkdir(parents=True)
    code = f"""
from huggingface_hub.utils import WeakFileLock
import time
with WeakFileLock({str(lock)!r}):
    print("held", flush=True)
    time.sleep(2)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        done = pull("lab:team/small", Run(), cache=cache)
        assert done.seconds > 0.5
        assert holder.wait(10) == 0
    assert (Path(done.folder) / file.path).stat().st_size == file.bytes


def test_the_command_tells_what_it_fetched_and_what_a_stranger_may_not_see(
    lab_settings: Lab, tmp_path: Path, hfbench: Hfbench
) -> None:
    done = hfbench("pull", "lab:team/small", "--cache-dir", tmp_path / "cache")
    assert done.returncode == 0, done.stderr
    assert "model-00001-of-00002.safetensors" in done.stdout
    assert "fetched in" in done.stdout
    env = {"LAB_TOKEN": lab_settings.hub.stranger}
    refused = hfbench("pull", "lab:team/small", "--cache-dir", tmp_path / "other", env=env)
    assert refused.returncode == 2
    assert "does not exist, or is private" in refused.stderr
    assert lab_settings.hub.writer not in "".join(
        path.read_text(errors="replace") for path in (tmp_path / "home" / "jobs").rglob("*") if path.is_file()
    )
