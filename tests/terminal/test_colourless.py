"""NO_COLOR: not one code of a colour reaches the terminal, and what is under the cursor can still be told."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from line import Line
from test_manners import HFBENCH, line, variables  # noqa: F401 - the same terminals

SGR = re.compile(rb"\x1b\[([0-9;:]*)m")
OWN_COLOURS = {b"39", b"49"}
"""Those that give the terminal's own back."""


def coloured(output: bytes) -> set[bytes]:
    """Parameters that select a colour."""
    given = {each for parameters in SGR.findall(output) for each in re.split(rb"[;:]", parameters)}
    return {each for each in given if re.fullmatch(rb"(3|4|9|10)\d", each)} - OWN_COLOURS


@pytest.mark.parametrize("theme", ["hfbench-dark", "hfbench-ansi"])
def test_the_workbench_paints_no_colour_and_its_cursor_is_seen(
    line: Callable[..., Line],  # noqa: F811
    variables: dict[str, str],  # noqa: F811
    theme: str,
) -> None:
    variables |= {"NO_COLOR": "1", "COLORTERM": "truecolor"}
    one = line([*HFBENCH, "--theme", theme])
    one.wait("no models")
    one.press("6")
    one.wait("Verdict")
    for key, holds in (("?", "Keys here"), (":", "Search for")):
        one.press(key)
        one.wait(holds)
        one.press("\x1b")
        one.wait(lambda shown, holds=holds: holds not in shown)
    assert any(cell.reverse for row in one.screen.buffer.values() for cell in row.values())
    one.press("q")
    assert one.wait_for_end() == 0
    assert b"\x1b[1" in one.output, "attributes are there"
    assert coloured(bytes(one.output)) == set()


def test_an_empty_no_color_is_no_wish_and_a_theme_that_is_not_there_is_refused_with_the_nearest(
    line: Callable[..., Line],  # noqa: F811
    variables: dict[str, str],  # noqa: F811
) -> None:
    variables |= {"NO_COLOR": "", "COLORTERM": "truecolor"}
    one = line([*HFBENCH, "--theme", "hfbench-lite"])
    assert one.wait_for_end() == 2
    assert "there is no theme 'hfbench-lite'. Did you mean 'hfbench-light'?" in " ".join(one.output.decode().split())
    two = line([*HFBENCH, "--theme", "hfbench-light"])
    two.wait("no models")
    two.press("q")
    assert two.wait_for_end() == 0
    assert coloured(bytes(two.output))
