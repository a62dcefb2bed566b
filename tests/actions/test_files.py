"""files: the listing and the hashes for people, for programs and for exit codes."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hfbench.actions.files import Files, FilesResult
from hfbench.actions.registry import find
from hfbench.actions.results import result_data
from hfbench.codec import decode
from hfbench.errors import UsageError
from hfbench.jobs.events import Event, Progress
from hfbench.jobs.run import Run


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "tiny"
    made.mkdir()
    (made / "config.json").write_bytes(b"{}")
    (made / "model.safetensors").write_bytes(b"w" * 2000)
    return made


@pytest.fixture
def cached(tmp_path: Path) -> Path:
    """A cache with org/tiny at main, whose weights are a blob named by their hash."""
    repository = tmp_path / "hub" / "models--org--tiny"
    snapshot = repository / "snapshots" / ("1" * 40)
    for each in (snapshot, repository / "blobs", repository / "refs"):
        each.mkdir(parents=True)
    (repository / "refs" / "main").write_text("1" * 40)
    (repository / "blobs" / sha256(b"w" * 2000)).write_bytes(b"w" * 2000)
    (snapshot / "model.safetensors").symlink_to(f"../../blobs/{sha256(b'w' * 2000)}")
    return tmp_path / "hub"


def files(folder: Path, **options: object) -> FilesResult:
    return Files(model=str(folder), **options).perform(Run())  # type: ignore[arg-type]


def test_the_declaration_is_inline_with_a_positional_model() -> None:
    spec = find("files")
    assert spec.inline
    assert [param.name for param in spec.params if param.positional] == ["model"]
    assert {param.name for param in spec.params} == {"model", "sha256", "only", "cache_dir"}


def test_the_result_has_the_fields_that_others_rely_on(cached: Path) -> None:
    result = Files(model="org/tiny", cache_dir=cached, sha256=True).perform(Run())
    told = json.loads(json.dumps(result_data(result)))
    assert {"model", "folder", "source", "repo", "revision", "commit", "files", "bytes", "own_bytes"} <= set(told)
    (file,) = told["files"]
    assert {"name", "bytes", "kind", "target", "blob", "shared", "lfs", "expected", "sha256", "verdict"} <= set(file)
    assert (file["sha256"], file["verdict"], told["failed"]) == (sha256(b"w" * 2000), "ok", False)
    assert told["cache"]["refs"] == {"main": "1" * 40}
    assert told["headline"] == "1 ok"
    assert decode(FilesResult, told) == result


def test_without_asking_nothing_is_hashed(folder: Path) -> None:
    assert [(each.sha256, each.verdict) for each in files(folder).files] == [(None, ""), (None, "")]
    assert files(folder).headline == "2 files, 1.96 KiB"


def test_only_hashes_what_a_pattern_names_and_lists_all(folder: Path) -> None:
    found = {each.name: each.sha256 for each in files(folder, sha256=True, only=("*.json",)).files}
    assert found == {"config.json": sha256(b"{}"), "model.safetensors": None}
    with pytest.raises(UsageError, match="Give --sha256 too"):
        files(folder, only=("*.json",))
    with pytest.raises(UsageError, match="no file matches"):
        files(folder, sha256=True, only=("*.gguf",))


def test_progress_counts_bytes_up_to_all(folder: Path) -> None:
    told: list[Event] = []
    Files(model=str(folder), sha256=True).perform(Run(told.append))
    steps = [each for each in told if isinstance(each, Progress)]
    assert {(each.phase, each.unit, each.total) for each in steps} == {("sha256", "B", 2002)}
    assert steps[-1].done == 2002


@pytest.mark.usefixtures("terminal")
def test_the_lines_fit_a_terminal_and_hold_no_control_character(folder: Path) -> None:
    (folder / ("n" * 120 + "\x1b[2J.json")).touch()
    (folder / "gone.bin").symlink_to("nowhere\x1b[2J" * 30)
    os.mkfifo(folder / "pipe.bin")
    lines = files(folder, sha256=True).lines()
    assert all(len(line) <= 80 and line.isprintable() for line in lines)
    text = "\n".join(lines)
    assert "x a FIFO, not a plain file" in text
    assert "1 file cannot be read, 3 hashed, nothing to compare with" in text


def test_the_cache_is_told_in_lines(cached: Path) -> None:
    lines = Files(model="org/tiny", cache_dir=cached).perform(Run()).lines()
    assert f"revision  main at {'1' * 40}" in lines
    assert "revisions 111111111111  1.95 KiB, 1.95 KiB its own; this one, main" in lines


def hfbench(*words: str | Path) -> subprocess.CompletedProcess[str]:
    told = [sys.executable, "-m", "hfbench", "files", *map(str, words)]
    return subprocess.run(told, capture_output=True, text=True, timeout=120, check=False)


def test_the_exit_code_is_one_when_a_hash_differs(cached: Path) -> None:
    asked = ("org/tiny", "--cache-dir", cached, "--sha256")
    assert hfbench(*asked).returncode == 0
    next((cached / "models--org--tiny" / "blobs").iterdir()).write_bytes(b"W" + b"w" * 1999)
    done = hfbench(*asked)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines()[-1] == "1 file differs"
    assert json.loads(hfbench(*asked, "--json").stdout)["files"][0]["verdict"] == "differs"
    assert hfbench("org/tiny", "--cache-dir", cached).returncode == 0


def test_a_pointer_in_place_of_weights_fails_the_hash(folder: Path) -> None:
    text = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 4976698672\n"
    (folder / "model.safetensors").write_text(text)
    done = hfbench(folder, "--sha256")
    assert done.returncode == 1
    assert "a git-lfs pointer to a file of 4.63 GiB" in done.stdout


@pytest.mark.parametrize(
    ("words", "code"), [(["--only", "*.json"], 2), (["--sha256", "--only", "*.gguf"], 2), (["--what"], 2)]
)
def test_a_request_that_cannot_be_read_is_refused(folder: Path, words: list[str], code: int) -> None:
    done = hfbench(folder, *words)
    assert (done.returncode, done.stdout) == (code, "")


def test_a_model_that_is_not_there_says_so(tmp_path: Path) -> None:
    done = hfbench(tmp_path / "gone")
    assert done.returncode == 2
    assert "there is no such folder" in done.stderr


def test_a_long_hash_can_be_interrupted(folder: Path) -> None:
    with (folder / "huge.bin").open("wb") as file:
        file.truncate(2**40)
    words = [sys.executable, "-m", "hfbench", "files", str(folder), "--sha256"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        end = time.monotonic() + 60
        while not any(str(folder / "huge.bin") in target for target in opened_by(process.pid)):
            assert time.monotonic() < end, "it never began"
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err


def opened_by(pid: int) -> list[str]:
    """What the file descriptors of a process lead to."""
    found = []
    for each in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.append(os.readlink(each))
        except OSError:
            continue  # closed meanwhile
    return found
