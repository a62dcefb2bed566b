"""The table of steps against the tokenizers library itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from small_model import tokenizer

from hfbench.checks.tokenizer_faults import fast_faults
from hfbench.checks.tokenizer_steps import STEPS, odd_patterns
from hfbench.tokens.tokenizer import refusal_of_pattern

tokenizers = pytest.importorskip("tokenizers")

RIGHT: dict[str, Any] = {
    "flag": True,
    "text": "a",
    "character": "a",
    "count": 1,
    "scheme": "always",
    "behavior": "Isolated",
    "pattern": {"String": "a"},
    "token": ["a", 1],
    "steps": [],
    "pieces": [{"Sequence": {"id": "A", "type_id": 0}}],
    "tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}},
}
WRONG: dict[str, Any] = {**{how: {"q": [1]} for how in RIGHT}, "token": "a", "steps": {}, "scheme": "All", "pieces": {}}

EVERY = [(place, kind) for place, kinds in STEPS.items() for kind in kinds if kind != "Precompiled"]


def taken(content: dict[str, Any]) -> bool:
    try:
        tokenizers.Tokenizer.from_str(json.dumps(content))
    except BaseException:  # a panic of the library is no Exception
        return False
    return True


def agrees(place: str, step: object) -> bool:
    """Whether the table and the library say the same of one step; which of the two it is, is told by its return."""
    content = {**tokenizer(), place: step}
    said = not [fault for fault in fast_faults(content) if place in fault]
    assert said == taken(content), step
    return said


@pytest.mark.parametrize(("place", "kind"), EVERY)
def test_the_table_asks_for_what_the_library_asks_for(place: str, kind: str) -> None:
    fields = STEPS[place][kind]
    whole = {"type": kind, **{name: RIGHT[how.rstrip("?")] for name, how in fields.items()}}
    assert agrees(place, whole)
    for name, how in fields.items():
        lacking = {key: value for key, value in whole.items() if key != name}
        assert agrees(place, lacking) == how.endswith("?")
        assert agrees(place, {**whole, name: None}) == how.endswith("??")
        assert not agrees(place, {**whole, name: WRONG[how.rstrip("?")]})


@pytest.mark.parametrize("place", STEPS)
def test_no_step_stands_in_the_place_of_another(place: str) -> None:
    for kind in {kind for kinds in STEPS.values() for kind in kinds} - set(STEPS[place]):
        assert not agrees(place, {"type": kind})


@pytest.mark.parametrize(
    "pattern",
    [
        r" ?[^(\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+",
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}||\s*[\r\n]+|\s+(?!\S)|\s+",
        r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+",
        r"<\|startoftext\|>|<\|endoftext\|>|'s|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t)?",
        "(?x) a # a ( and a [\n b",
        "[]a]",
        "[[:alpha:]]+",
        "([",
        "a)",
        "a\\",
    ],
)
@pytest.mark.filterwarnings("error::FutureWarning")
def test_a_pattern_is_refused_where_the_library_refuses_it(pattern: str) -> None:
    step = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    content = {**tokenizer(), "pre_tokenizer": step}
    said = [*fast_faults(content), *filter(None, map(refusal_of_pattern, odd_patterns(content)))]
    assert bool(said) != taken(content)


def test_patterns_that_python_cannot_judge_are_put_to_the_library() -> None:
    assert refusal_of_pattern("(?<=a*b)[z-a]")
    assert refusal_of_pattern(r"\h+(?~x)") is None
