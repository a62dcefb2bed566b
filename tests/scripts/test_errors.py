"""Every code of a script error has an example, and its message is what a person should read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hfbench.scripts.command import run_script
from hfbench.scripts.errors import Code, Problems, Span

GOLDEN = Path(__file__).parent / "golden"


def test_every_code_has_one_golden_script_and_no_other_exists() -> None:
    assert sorted(path.name.removesuffix(".hfb.yaml") for path in GOLDEN.glob("*.hfb.yaml")) == sorted(Code)
    assert sorted(path.stem for path in GOLDEN.glob("*.stderr")) == sorted(Code)


@pytest.mark.usefixtures("samples")
@pytest.mark.parametrize("code", sorted(Code))
def test_the_errors_of_a_script_read_as_they_should(
    code: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(GOLDEN)
    script = Path(f"{code}.hfb.yaml")
    assert run_script(script, check=True, dry_run=False, results=None, skip_missing=False) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err == (GOLDEN / f"{code}.stderr").read_text()


@pytest.mark.parametrize("code", sorted(Code))
def test_the_golden_script_of_a_code_has_that_error(code: str, checked: Callable[[bytes], object]) -> None:
    found = checked((GOLDEN / f"{code}.hfb.yaml").read_bytes())
    assert code in {error.code for error in found.errors}


def test_an_error_is_kept_once_with_the_note_of_its_first_appearance() -> None:
    problems = Problems()
    for cell in ("batch=1", "batch=8"):
        problems.add(Code.BAD_VALUE, Span(3, 4), "no good", note=f" (cell {cell})")
    assert [error.sentence("s") for error in problems.listed()] == ["s:3:4: no good (cell batch=1)"]
