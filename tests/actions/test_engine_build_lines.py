"""What a person reads after a build: the commands that come next can be copied as they stand."""

from __future__ import annotations

import shlex

import pytest

from hfbench.actions.engine_build import EngineBuildResult
from hfbench.engines.manifest import ShapeProfile
from hfbench.line_width import lines_of


def result(builder: str = "aoti", folder: str = "/srv/my engines/it's") -> EngineBuildResult:
    shapes = ShapeProfile(batch=2, min_prompt=1, max_prompt=16, context=32)
    told = {"files": 3, "bytes": 9, "seconds": 1.0, "verdict": "proven", "proof": None, "signed_by": "", "licence": ""}
    place = {"folder": folder, "id": "0" * 12, "builder": builder, "model": "demo", "device": "cpu", "dtype": "fp32"}
    return EngineBuildResult(**place, **told, shapes=shapes)  # type: ignore[arg-type]


def commands(lines: list[str]) -> list[list[str]]:
    """The commands as a shell would read them."""
    text = "\n".join(line[9:] for line in lines[[line[:4] for line in lines].index("next") :])
    return [shlex.split(each) for each in text.replace("\\\n", "").split("\n")]


@pytest.mark.parametrize("width", [20, 60, 80, 1_000_000])
def test_they_are_whole_at_any_width_and_name_shapes_that_fit(width: int) -> None:
    with lines_of(width):
        lines = result().lines()
    assert commands(lines) == [
        ["hfbench", "engine", "check", "/srv/my engines/it's", "--load"],
        [
            *("hfbench", "bench", "modes", "demo", "--modes", "static-cache,engine:/srv/my engines/it's"),
            *("--device", "cpu", "--batch", "2", "--prompt", "16", "--new-tokens", "16"),
        ],
    ]


def test_plans_are_checked_and_not_driven_from_here() -> None:
    assert len(commands(result("trtllm").lines())) == 1
