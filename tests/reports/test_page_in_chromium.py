"""The page in a real browser: it opens without a complaint, in light and dark, and asks the network for nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from measured_runs import make_job, result, times

from hfbench.actions.report import Report
from hfbench.jobs.run import Run

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SECONDS = 60


image = pytest.importorskip("PIL.Image")  # comes with matplotlib


@pytest.fixture(scope="module")
def browser() -> str:
    """A Chromium."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed: apt-get install chromium")
    return CHROMIUM


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A report with every kind of block of one run."""
    a, b = make_job(result(times(0.05, seed=1)), number=1), make_job(result(times(0.06, seed=2)), number=2)
    out = tmp_path / "report.html"
    Report(subject=a, against=(b,), fail_if=("tpot.p50 > 1.05x",), out=out).perform(Run())
    return out


def opened(browser: str, page: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """The page in a browser without a window; what its console says is on stderr."""
    words = [browser, "--headless", "--disable-gpu", "--enable-logging=stderr", "--v=0", "--hide-scrollbars"]
    words += ["--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={page.parent / 'profile'}"]
    words += ["--no-sandbox"] if os.geteuid() == 0 else []
    return subprocess.run(
        [*words, *options, page.as_uri()], capture_output=True, text=True, timeout=SECONDS, cwd=page.parent, check=True
    )


def test_the_page_opens_without_errors_of_its_console(browser: str, page: Path) -> None:
    done = opened(browser, page, "--dump-dom")
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    assert console == []
    assert done.stdout.count("<svg") == 2
    assert "SLOWER" in done.stdout


def test_an_error_of_the_console_would_be_seen(browser: str, page: Path) -> None:
    page.write_text(page.read_text().replace("</main>", '<img src="https://example.invalid/x.png"></main>'))
    done = opened(browser, page, "--dump-dom")
    assert any("CONSOLE" in line for line in done.stderr.splitlines())


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_has_a_picture_in_light_and_dark(browser: str, page: Path, dark: bool) -> None:
    shot = page.parent / "shot.png"
    options = ["--blink-settings=preferredColorScheme=0"] if dark else ["--blink-settings=preferredColorScheme=1"]
    opened(browser, page, *options, "--window-size=1100,1400", f"--screenshot={shot}")
    with image.open(shot) as picture:
        assert picture.width == 1100
        corner = picture.convert("L").getpixel((0, 0))
        drawn = len(picture.convert("L").getcolors(256))
    assert corner < 60 if dark else corner > 200
    assert drawn > 50  # text and plots, not an empty page
