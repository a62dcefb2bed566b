"""Reading: YAML 1.2 scalars, places, and no file that hangs, fills the memory or ends in a traceback."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hfbench.actions.base import Spec
from hfbench.scripts.check import Checked, check
from hfbench.scripts.command import run_script
from hfbench.scripts.errors import Code, Problems, Span
from hfbench.scripts.read import MAX_BYTES, read_tree
from hfbench.scripts.scalars import OutOfRange, plain_value
from hfbench.scripts.tree import Listing, Scalar, Table

CheckText = Callable[[str | bytes], Checked]

STEP = "  - sample.measure: {model: demo}\n"


def values(text: str) -> list[object]:
    """The scalars of a list written in brackets."""
    problems = Problems()
    root = read_tree(text.encode(), problems)
    assert not problems
    assert isinstance(root, Listing)
    return [item.value for item in root.items if isinstance(item, Scalar)]


def test_plain_scalars_are_those_of_yaml_1_2() -> None:
    assert values("[true, False, null, ~, 7, -3, 0x1F, 0o17, 1.5, .5, 1e3, -2.5E-3]") == [
        *(True, False, None, None),
        *(7, -3, 31, 15),
        *(1.5, 0.5, 1000.0, -0.0025),
    ]


def test_what_yaml_1_1_made_of_plain_words_stays_text() -> None:
    words = [
        "yes",
        "no",
        "on",
        "off",
        "Y",
        "12:30",
        "2024-01-01",
        "0777x",
        "1_000",
        ".inf",
        ".nan",
        "=",
        "120x40",
        "1.2.3",
    ]
    assert values(f"[{', '.join(words)}]") == words


def test_a_leading_zero_does_not_make_a_number_octal() -> None:
    assert values("[010, 08]") == [10, 8]


def test_quotes_make_text() -> None:
    assert values("""["7", 'true', "null", "~"]""") == ["7", "true", "null", "~"]


@pytest.mark.parametrize("text", ["9" * 30, "-" + "9" * 5000, "1e999", "0x" + "f" * 200, "9" * 200_000])
def test_numbers_beyond_64_bits_are_refused_at_once(text: str) -> None:
    with pytest.raises(OutOfRange):
        plain_value(text)


def test_every_node_knows_its_line_and_column() -> None:
    root = read_tree(b"a: 1\nb:\n  - x\n  - {c: 'y'}\n", Problems())
    assert isinstance(root, Table)
    inner = root.entries[1].value
    assert isinstance(inner, Listing)
    assert [entry.key.span for entry in root.entries] == [Span(1, 1), Span(2, 1)]
    assert [item.span for item in inner.items] == [Span(3, 5), Span(4, 5)]


def test_a_byte_order_mark_and_windows_line_ends_change_nothing(checked: CheckText) -> None:
    text = "hfbench: 1\nsteps:\n" + STEP
    plain, windows = checked(text), checked(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert plain.plan is not None
    assert windows.plan is not None
    assert [step.line for _, step in plain.plan] == [step.line for _, step in windows.plan]


@pytest.mark.parametrize(
    "source",
    [
        b"",
        b"\n\n",
        b"---\n",
        b"...\n",
        b"\0",
        b"\xff\xfe\0h",
        b"%YAML 9.9\n---\n",
        b"*a",
        b"? ? ?",
        b"!!map",
        b"- - -",
        b"]",
        b"\t",
    ],
)
def test_odd_files_have_an_error_and_no_traceback(source: bytes, checked: CheckText) -> None:
    assert checked(source).errors


@pytest.mark.usefixtures("samples")
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=400))
def test_any_bytes_are_a_plan_or_errors(samples: Mapping[str, Spec], source: bytes) -> None:
    checked = check(source, Path("s"), samples)
    assert (checked.plan is None) == bool(checked.errors)


PIECES = st.sampled_from(
    [
        *(
            "hfbench: 1\n",
            "name: x\n",
            "vars:\n",
            "  a: 1\n",
            '  b: "{{ a }}"\n',
            "matrix:\n",
            "  a: [1, 2]\n",
            "  exclude: ",
        ),
        *(
            "[{a: 1}]\n",
            "steps:\n",
            "  - ",
            "sample.measure: ",
            "{model: x, ",
            "batch: ",
            '"{{ a }}"',
            "}\n",
            "    expect:\n",
        ),
        *(
            "      - tpot.p99 < 5 ms\n",
            "on_fail: stop\n",
            "timeout: 1s",
            "save_as: s",
            "\n",
            " ",
            "{",
            "}",
            "[",
            "]",
            "&a ",
            "*a",
        ),
        *(
            "<<: ",
            "? ",
            "| \n",
            "> \n",
            "'",
            '"',
            "- ",
            ": ",
            ", ",
            "# x\n",
            "!t ",
            "~",
            "-1",
            "1e400",
            "{{",
            "}}",
            "\\",
            "…",
            "\t",
        ),
    ]
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PIECES, max_size=40))
def test_any_mixture_of_script_pieces_is_a_plan_or_errors(samples: Mapping[str, Spec], pieces: list[str]) -> None:
    checked = check("".join(pieces).encode(), Path("s"), samples)
    assert (checked.plan is None) == bool(checked.errors)
    lines = "".join(pieces).count("\n") + 2
    assert all(1 <= error.line <= lines and error.column >= 1 for error in checked.errors)


BOMBS = {
    "brackets": "[" * 100_000,
    "braces": "{" * 100_000,
    "brackets in a value": "hfbench: 1\nvars: {a: " + "[" * 100_000,
    "dashes": "- " * 100_000,
    "questions": "? " * 100_000,
    "aliases": "a: &a [x]\n" + "\n".join(f"b{n}: &b{n} [{', '.join([f'*b{n - 1}'] * 9)}]" for n in range(1, 9)),
    "keys": "{" + ", ".join(f"k{n}: 1" for n in range(20_000)) + "}",
    "unknown actions": "hfbench: 1\nsteps:\n" + "".join(f"  - actoin{n}: {{}}\n" for n in range(10_000)),
    "unknown names": "hfbench: 1\nsteps:\n"
    + "".join(f'  - sample.measure: {{model: "{{{{ v{n} }}}}"}}\n' for n in range(5_000)),
    "saved names": "hfbench: 1\nsteps:\n" + "".join(f"  - gpus: {{save_as: a{n}}}\n" for n in range(9_000)),
    "a chain of variables": "hfbench: 1\nvars:\n"
    + "".join(f'  v{n}: "{{{{ v{n + 1} }}}}"\n' for n in range(9_000))
    + '  v9000: x\nsteps:\n  - sample.measure: {model: "{{ v0 }}"}\n',
    "growing variables": "hfbench: 1\nvars:\n  v0: xxxxxxxxxx\n"
    + "".join(f'  v{n + 1}: "{{{{ v{n} }}}}{{{{ v{n} }}}}"\n' for n in range(60))
    + 'steps:\n  - sample.measure: {model: "{{ v60 }}"}\n',
    "a wide matrix": "hfbench: 1\nmatrix:\n" + "".join(f"  a{n}: [0, 1]\n" for n in range(5_000)) + "steps:\n" + STEP,
    "backslashes": "hfbench: 1\nsteps:\n  - sample.measure: {model: '" + "\\" * 200_000 + "'}\n",
    "one long word": "hfbench: 1\nsteps:\n  - " + "x" * 250_000 + ": {}\n",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_hostile_script_is_answered_in_seconds(name: str, checked: CheckText) -> None:
    began = time.process_time()
    found = checked(BOMBS[name][:MAX_BYTES])
    assert (found.plan is None) == bool(found.errors)
    assert time.process_time() - began < 30, "no script may keep the machine busy"


def test_nesting_is_bounded_before_the_file_is_read_whole(checked: CheckText) -> None:
    [error] = checked("[" * 100_000).errors
    assert (error.code, error.line, error.column) == (Code.TOO_DEEP, 1, 21)


def test_a_file_larger_than_the_limit_is_refused_unread(
    tmp_path: Path, hfbench: Callable[..., object], capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "garbage.hfb.yaml"
    script.write_bytes(bytes(range(256)) * 4096)
    done = hfbench("--script", script)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"hfbench: {script}: the script is larger than 256 KiB. Use variables and a matrix\n"


def test_errors_beyond_a_hundred_are_counted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "s.hfb.yaml"
    script.write_text("hfbench: 1\nsteps:\n" + "".join(f"  - nothing{n}: {{}}\n" for n in range(150)))
    assert run_script(script, check=True, dry_run=False, results=None, skip_missing=False) == 2
    lines = capfd.readouterr().err.splitlines()
    assert (len(lines), lines[-1]) == (101, f"{script}: 50 more errors")
