"""`{{ name }}`: names only, types kept, braces escaped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.scripts.errors import Code
from hfbench.scripts.templates import TemplateProblem, escape, fill, names_in


@pytest.mark.parametrize("value", [7, 1.5, True, None, "x", [1, 2]])
def test_a_text_that_is_one_variable_keeps_its_type(value: object) -> None:
    assert fill("{{ x }}", {"x": value}) == value  # type: ignore[dict-item]
    assert type(fill("{{x}}", {"x": value})) is type(value)  # type: ignore[dict-item]


def test_variables_inside_a_text_are_written_as_yaml_would() -> None:
    assert fill("{{a}}-{{ b }}-{{ c }}", {"a": 8, "b": True, "c": 0.5}) == "8-true-0.5"


def test_what_a_variable_holds_is_not_filled_in_again() -> None:
    assert fill("<{{ a }}>", {"a": "{{ b }}"}) == "<{{ b }}>"


@pytest.mark.parametrize("inside", ["", " ", "1+1", "a.b", "a b", "a|upper", "__import__('os')", "{ a }", "a }", "ä"])
def test_anything_but_a_name_is_refused(inside: str) -> None:
    with pytest.raises(TemplateProblem, match="a variable's name is expected") as caught:
        names_in(f"x {{{{ {inside} }}}} y")
    assert caught.value.code is Code.BAD_SUBSTITUTION


@pytest.mark.parametrize("value", [[1], None])
def test_lists_and_nothing_cannot_stand_inside_a_text(value: object) -> None:
    with pytest.raises(TemplateProblem, match="cannot stand inside a text"):
        fill("x{{ a }}", {"a": value})  # type: ignore[dict-item]


def test_a_text_may_not_grow_without_bound() -> None:
    with pytest.raises(TemplateProblem, match="grows beyond"):
        fill("{{ a }}" * 10, {"a": "x" * 10_000})


@given(st.text(alphabet="ab{} \\\n"))
def test_an_escaped_text_is_filled_in_to_itself(text: str) -> None:
    assert names_in(escape(text)) == []
    assert fill(escape(text), {}) == text
