"""screenshot: a picture by a child process, and its troubles as sentences."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from sweep_folders import make_sweep

from hfbench.actions.base import spec_of
from hfbench.actions.screenshot import Screenshot
from hfbench.errors import HfbenchError, UsageError
from hfbench.jobs.run import Run


def picture(**fields: Any) -> Screenshot:
    """A request with these fields."""
    return Screenshot(**{"screen": "jobs", "path": Path("a.svg"), **fields})


@pytest.mark.parametrize(
    "size", ["", "120", "120x", "x40", "120X40", "19x24", "80x9", "501x24", "80x201", "-80x24", "8e1x24"]
)
def test_sizes_that_no_terminal_has_are_refused(size: str) -> None:
    with pytest.raises(UsageError, match="size"):
        picture(size=size)


@pytest.mark.parametrize("name", ["a.png", "a", "a.SVG", "svg"])
def test_a_picture_is_named_svg(name: str) -> None:
    with pytest.raises(UsageError, match=r"not named \.svg"):
        picture(path=Path(name))


def test_a_picture_is_drawn_without_textual_in_this_process(tmp_path: Path) -> None:
    path = tmp_path / "shots" / "jobs.svg"
    code = (
        "import sys; from pathlib import Path; from hfbench.actions.screenshot import Screenshot as S;"
        "from hfbench.jobs.run import Run;"
        f"made = S(screen='jobs', path=Path({str(path)!r}), size='80x24').perform(Run());"
        "print(made.bytes, 'textual' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=90)
    assert done.stdout.split() == [str(path.stat().st_size), "False"], done.stderr
    assert path.read_text().startswith("<svg")


def test_trouble_in_the_child_is_one_sentence_of_the_same_kind(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the picture could not be drawn: .*no-such-theme") as caught:
        picture(path=tmp_path / "a.svg", theme="no-such-theme").perform(Run())
    assert "Traceback" not in str(caught.value)
    assert not (tmp_path / "a.svg").exists()


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HfbenchError, match=r"the folder cannot be made: (Not a directory|File exists)"):
        picture(path=tmp_path / "file" / "a.svg").perform(Run())


def test_it_needs_no_job() -> None:
    assert spec_of(picture()).inline


def test_the_page_of_a_sweep_is_drawn_and_one_that_is_gone_is_a_sentence(home: Path, tmp_path: Path) -> None:
    made = make_sweep(home / "sweeps", "made", {"batch": [1, 2]}, at=time.time())
    made.step(1, "2026-12-01T00-00-00-bench.generate-000001", at=1)
    made.ended(1, "done", at=2)
    picture(screen="sweep", of=("made",), path=tmp_path / "a.svg", size="80x24").perform(Run())
    assert "batch" in (tmp_path / "a.svg").read_text()
    with pytest.raises(HfbenchError, match="the sweep is gone: other"):
        picture(screen="sweep", of=("other",), path=tmp_path / "b.svg").perform(Run())
    with pytest.raises(UsageError, match="the diff screen shows two models, and 1 were named"):
        picture(screen="diff", of=("a",), path=tmp_path / "b.svg").perform(Run())
