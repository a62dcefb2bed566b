"""Expressions of configuration classes are worked out without running code, and steps keep their order."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hfbench.models.explain.expressions import MOST_ITEMS, Unworkable, worked_out
from hfbench.models.explain.steps import LOCAL, SUPER, UNKNOWN, Step, steps_of

KNOWN = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 3, "head_dim": None, "kinds": ["a", "b"]}
GIVEN = {"freq": 2}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("hidden_size // num_attention_heads if head_dim is None else head_dim", 16),
        ("head_dim or hidden_size", 64),
        ("head_dim is not None and head_dim.missing", False),
        ("not head_dim", True),
        ("-hidden_size + 2 ** 3", -56),
        ("1 < num_hidden_layers <= 3", True),
        ("'a' in kinds and 'c' not in kinds", True),
        (
            "['full' if (i + 1) % 3 == 0 else 'sliding' for i in range(num_hidden_layers)]",
            ["sliding", "sliding", "full"],
        ),
        ("['full'] * num_hidden_layers", ["full"] * 3),
        ("given('freq', 1) + given('other', 5)", 7),
        ("given('nothing')", None),
        ("has('freq')", True),
        ("{'a': {'b': hidden_size}}['a']['b']", 64),
        ("ceil(hidden_size / 3)", 22),
        ("max(kinds)", "b"),
    ],
)
def test_what_classes_are_made_of_is_worked_out(text: str, value: object) -> None:
    assert worked_out(text, KNOWN, GIVEN) == value


@pytest.mark.parametrize(
    "text",
    [
        "unknown_name",
        "hidden_size.real",
        "__import__('os')",
        "open('/etc/passwd')",
        "(lambda: 1)()",
        "[x for x in kinds if x]",
        "hidden_size // 0",
        "kinds[7]",
        "'a' * 10 ** 9",
        "9 ** 9 ** 9",
        "hidden_size * 2 ** 8 * 10 ** 8 * 10 ** 8 * 10 ** 8",
        "range(10 ** 8)",
        "num_hidden_layers * ['x'] * 2000",
        "kinds + 1",
        "f'{hidden_size}'",
        UNKNOWN,
        "1 +" + " 1 +" * 2000 + " 1",
    ],
)
def test_all_else_is_told_as_unworkable(text: str) -> None:
    with pytest.raises(Unworkable):
        worked_out(text, KNOWN, GIVEN)


ATOMS = ["hidden_size", "head_dim", "kinds", "nobody", "given('freq')", "None", "True", "'x'", "7", "0"]
SIGNS = ["+", "*", "//", "%", "**", "and", "or", "<", "is", "in"]


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions made of smaller ones."""
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(SIGNS), inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("[{} for i in range({})]".format, inner, inner),
        st.builds("list({})".format, inner),
    )


@settings(max_examples=300, deadline=None)
@given(st.recursive(st.sampled_from(ATOMS), larger, max_leaves=12))
def test_any_expression_has_a_bounded_value_or_is_unworkable(text: str) -> None:
    try:
        value = worked_out(text, KNOWN, GIVEN)
    except Unworkable:
        return
    assert not isinstance(value, (list, str)) or len(value) <= MOST_ITEMS


def steps(source: str) -> list[Step]:
    function = ast.parse(f"def __post_init__(self, **kwargs):\n{source}").body[0]
    assert isinstance(function, ast.FunctionDef)
    return steps_of(function)


def after(source: str, fields: dict[str, Any], handed: dict[str, Any]) -> dict[str, Any]:
    """The fields once all steps are done; those that cannot be told are left out."""
    known = dict(fields)
    for name, text, _ in steps(source):
        if name == SUPER:
            continue
        try:
            known[name] = worked_out(text, known, handed)
        except Unworkable:
            known.pop(name, None)
    return {key: value for key, value in known.items() if not key.startswith(LOCAL)}


@pytest.mark.parametrize(
    ("source", "fields", "handed", "result"),
    [
        (" if self.a is None:\n  self.a = self.b // 2", {"a": None, "b": 8}, {}, {"a": 4, "b": 8}),
        (" if self.a is None:\n  self.a = self.b // 2", {"a": 3, "b": 8}, {}, {"a": 3, "b": 8}),
        (" if self.a:\n  self.b = 1\n else:\n  self.b = 2", {"a": 0, "b": 9}, {}, {"a": 0, "b": 2}),
        (" if self.a:\n  if self.b:\n   self.b = 1", {"a": 1, "b": 0}, {}, {"a": 1, "b": 0}),
        (" if self.a:\n  self.a = 0\n  self.b = 1", {"a": 1, "b": 0}, {}, {"a": 0, "b": 1}),
        (" n = kwargs.pop('old', None)\n self.a = self.a if n is None else n", {"a": 1}, {"old": 5}, {"a": 5}),
        (" if (n := kwargs.get('old')) is not None:\n  self.a = n", {"a": 1}, {"old": 5}, {"a": 5}),
        (" if 'old' in kwargs:\n  self.a = kwargs['old']", {"a": 1}, {}, {"a": 1}),
        (" if 'old' in kwargs:\n  self.a = kwargs['old']", {"a": 1}, {"old": 2}, {}),
        (" self.a = helper(self.b)", {"a": 1, "b": 2}, {}, {"b": 2}),
        (" if helper():\n  self.a = 2", {"a": 1, "b": 2}, {}, {"b": 2}),
        (" for x in self.b:\n  self.a = x", {"a": 1, "b": []}, {}, {"b": []}),
        (" for f in ('a', 'c'):\n  setattr(self, f, 0)", {"a": 1, "b": 2, "c": 3}, {}, {"b": 2}),
        (" self.a.append(1)", {"a": [], "b": 2}, {}, {"b": 2}),
        (" self.a[0] = 1", {"a": [0], "b": 2}, {}, {"b": 2}),
        (" self.a += 1", {"a": 1, "b": 2}, {}, {"b": 2}),
        (" self.a, self.b = 1, 2", {"a": 0, "b": 0, "c": 3}, {}, {"c": 3}),
        (" if self.a < 0:\n  raise ValueError(self.a)", {"a": -1}, {}, {"a": -1}),
        (" self.part.size = self.a\n self.a = tuple(self.b)", {"a": 1, "b": [1]}, {}, {"a": [1], "b": [1]}),
        (" kwargs['per_layer_config'] = {0: {'a': 1}}", {"a": 1, "b": 2}, {}, {"b": 2}),
    ],
)
def test_a_post_init_is_followed_as_far_as_it_can_be(
    source: str, fields: dict[str, Any], handed: dict[str, Any], result: dict[str, Any]
) -> None:
    assert after(source, fields, handed) == result


def test_the_place_of_the_class_below_is_kept() -> None:
    assert [step[0] for step in steps(" self.a = 1\n super().__post_init__(**kwargs)\n self.b = 2")] == [
        "a",
        SUPER,
        "b",
    ]
    assert [step[0] for step in steps(" return super().__post_init__(**kwargs)")] == [SUPER]


def test_the_source_a_person_reads_has_no_self() -> None:
    assert steps(" self.a = self.b // 2") == [["a", "b // 2", "b // 2"]]
