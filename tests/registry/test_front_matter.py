"""Cards are read as data: what stands for more than it says is refused before it is made."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from hfbench.registry.front_matter import FrontMatterError, front_matter, read_front_matter

NAMES = "abcdefghi"
BOMB = f"a: &a [{','.join('x' * 9)}]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in pairwise(NAMES)
)


def card(data: str) -> str:
    return f"---\n{data}\n---\n# A model\n"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (BOMB, "aliases"),
        ("a: &a [*a]", "aliases"),
        ("a: &x 1", "aliases"),
        ("".join(f"{' ' * depth}a:\n" for depth in range(40)), "nested too deeply"),
        (f"a: {'[' * 25}{']' * 25}", "nested too deeply"),
        (f"a: {'[' * 30_000}", "nest"),
        (f"a: [{'1,' * 30_000}]", "more than 20,000 values"),
        (f"a: {'9' * 60_000}", "digits"),
        (f"a: 0x{'f' * 5000}", "digits"),
        (f"a: {'1:' * 20_000}1", "digits"),
        (f'a: !!float "{"1:" * 20_000}1"', "digits"),
        ("a: !!python/object:os.system 1", "no YAML"),
        (f"a: {'word ' * 20_000}", "longer than"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
def test_a_card_that_stands_for_more_than_it_says_is_refused_at_once(data: str, why: str) -> None:
    began = time.process_time()
    with pytest.raises(FrontMatterError, match=why):
        read_front_matter(card(data))
    assert time.process_time() - began < 1
    assert front_matter(card(data)) == {}


def test_a_card_is_read_as_plain_json() -> None:
    data = 'license: mit\ntags: [a, 1, 2.5, .inf, true]\nsince: 2026-01-02\nodd: "x\\0y"\nlong: ' + "word " * 300
    told = read_front_matter(card(data))
    assert told["license"] == "mit"
    assert told["tags"] == ["a", 1, 2.5, "inf", True]
    assert told["since"] == "2026-01-02"
    assert told["odd"] == "xy"
    assert len(told["long"]) == 1499
