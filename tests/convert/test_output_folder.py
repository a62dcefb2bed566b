"""A folder is there when it is complete, or not at all."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hfbench.convert.output_folder import MANIFEST, is_complete, make_folder
from hfbench.errors import HfbenchError, UsageError

ORIGIN = {"from": "a test"}


class Builder:
    """Writes one file and counts how often it was asked."""

    def __init__(self, content: str = "content") -> None:
        self.content, self.calls = content, 0

    def __call__(self, folder: Path) -> None:
        self.calls += 1
        (folder / "file").write_text(self.content)


def test_the_second_time_nothing_is_built(tmp_path: Path) -> None:
    build, target = Builder(), tmp_path / "deep" / "model"
    assert make_folder(target, ORIGIN, build) is False
    assert make_folder(target, ORIGIN, build) is True
    assert build.calls == 1
    assert sorted(each.name for each in target.iterdir()) == ["file", MANIFEST]
    assert [each.name for each in target.parent.iterdir()] == ["model"]


@pytest.mark.parametrize("damage", ["changed", "missing", "manifest"])
def test_a_damaged_folder_is_made_again(tmp_path: Path, damage: str) -> None:
    build, target = Builder(), tmp_path / "model"
    make_folder(target, ORIGIN, build)
    if damage == "changed":
        (target / "file").write_text("CONTENT")  # same length
    elif damage == "missing":
        (target / "file").unlink()
    else:
        (target / MANIFEST).write_text('{"origin": {"from": "a test"}}')
    assert not is_complete(target, ORIGIN)
    assert make_folder(target, ORIGIN, build) is False
    assert (target / "file").read_text() == "content"


def test_another_origin_is_made_again(tmp_path: Path) -> None:
    make_folder(tmp_path / "model", ORIGIN, Builder("old"))
    make_folder(tmp_path / "model", {"from": "elsewhere"}, Builder("new"))
    assert (tmp_path / "model" / "file").read_text() == "new"


@pytest.mark.parametrize("error", [HfbenchError("broken"), KeyboardInterrupt()])
def test_an_interruption_leaves_nothing(tmp_path: Path, error: BaseException) -> None:
    def build(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise error

    with pytest.raises(type(error)):
        make_folder(tmp_path / "model", ORIGIN, build)
    assert list(tmp_path.iterdir()) == []


def test_a_killed_process_leaves_nothing_under_the_name_and_the_next_one_cleans_up(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from hfbench.convert.output_folder import make_folder\n"
        "def build(folder):\n"
        "    (folder / 'half').write_text('half'); os.kill(os.getpid(), signal.SIGKILL)\n"
        f"make_folder(Path(sys.argv[1]), {ORIGIN!r}, build)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "model")]).returncode == -9
    assert not (tmp_path / "model").exists()
    assert make_folder(tmp_path / "model", ORIGIN, Builder()) is False
    assert sorted(each.name for each in tmp_path.iterdir()) == ["model"]


def test_two_at_once_build_once(tmp_path: Path) -> None:
    class Slow(Builder):
        def __call__(self, folder: Path) -> None:
            super().__call__(folder)
            time.sleep(0.3)

    build, found = Slow(), []
    threads = [
        threading.Thread(target=lambda: found.append(make_folder(tmp_path / "model", ORIGIN, build))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert build.calls == 1
    assert sorted(found) == [False, True, True]


def test_files_of_others_are_never_removed(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "thesis.tex").write_text("years")
    with pytest.raises(UsageError, match="holds other files and is left alone"):
        make_folder(tmp_path / "model", ORIGIN, Builder())
    assert (tmp_path / "model" / "thesis.tex").read_text() == "years"


@pytest.mark.parametrize("kind", ["file", "link"])
def test_a_name_that_is_no_folder_is_refused(tmp_path: Path, kind: str) -> None:
    target, real = tmp_path / "model", tmp_path / "real"
    real.mkdir()
    target.write_text("") if kind == "file" else target.symlink_to(real)
    with pytest.raises(UsageError, match="is not a folder"):
        make_folder(target, ORIGIN, Builder())


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HfbenchError, match="cannot be written"):
        make_folder(tmp_path / "file" / "model", ORIGIN, Builder())
