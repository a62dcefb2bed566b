"""The front as lines: each point in its place, signs for those that no other beats."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hfbench.widgets.cells import spans_width
from hfbench.widgets.front_lines import Front, Point, front_lines
from hfbench.widgets.glyphs import ASCII, UNICODE


def front(*points: tuple[float, float, bool]) -> Front:
    return Front(
        latency="tpot.p50",
        throughput="throughput",
        latency_unit="s",
        throughput_unit="tok/s",
        points=tuple(Point(number, *point) for number, point in enumerate(points, 1)),
    )


def text(drawn: Front, here: int | None = None, width: int = 80, height: int = 14) -> list[str]:
    return ["".join(part for part, _ in line) for line in front_lines(drawn, here, width, height, UNICODE)]


def test_low_latency_is_left_and_high_throughput_is_up() -> None:
    lines = text(front((0.010, 100, True), (0.020, 400, True), (0.020, 90, False)))
    assert lines[1].rstrip().endswith("*")
    assert lines[1].startswith("400")
    assert lines[-2].rstrip().endswith("o")
    assert lines[-2].startswith(" 90")
    assert "10" in lines[-1]
    assert "tpot.p50 ms" in lines[-1]
    assert lines[0].startswith("throughput tok/s")


def test_the_point_under_the_cursor_covers_the_others() -> None:
    lines = text(front((0.010, 100, True), (0.010, 100, True)), here=2)
    body = "".join(line[4:] for line in lines[1:-1])
    assert "@" in body
    assert "*" not in body


def test_signs_are_explained_in_words() -> None:
    assert "* on the front   o beaten   @ this one" in text(front((1.0, 1.0, True)))[0]


def test_a_point_of_the_front_that_is_in_doubt_has_a_sign_of_its_own() -> None:
    drawn = replace(front((0.010, 100, True), (0.020, 400, True)), points=())
    points = (Point(1, 0.010, 100, True, doubt=True), Point(2, 0.020, 400, True))
    lines = text(replace(drawn, points=points))
    assert "* on the front   ? there, in doubt   o beaten   @ this one" in lines[0]
    body = "".join(line[4:] for line in lines[1:-1])
    assert (body.count("?"), body.count("*")) == (1, 1)


def test_too_little_room_says_how_much_a_drawing_takes() -> None:
    assert text(front((1.0, 1.0, True)), height=4) == ["no room to draw, which takes 5 lines: the table tells it"]
    assert text(front((1.0, 1.0, True)), height=5)[1].strip().startswith("1")
    assert text(front(), height=40) == []


@given(
    points=st.lists(st.tuples(st.floats(0, 1e12), st.floats(0, 1e12), st.booleans()), min_size=1, max_size=30),
    width=st.integers(60, 140),
    height=st.integers(5, 40),
)
def test_every_drawing_fits_its_room(points: list[tuple[float, float, bool]], width: int, height: int) -> None:
    lines = front_lines(front(*points), 1, width, height, ASCII)
    assert "@ this one" in "".join(part for part, _ in lines[0])
    assert len(lines) == height
    assert all(spans_width(line) <= width for line in lines)
    assert all(part.isascii() for line in lines for part, _ in line)
    assert any("@" in part for line in lines[1:-1] for part, _ in line)
