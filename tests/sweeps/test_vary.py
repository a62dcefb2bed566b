"""Lists and ranges of a sweep: read as each field reads one value, and refused with the reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.actions.params import Param, Problem
from hfbench.errors import UsageError
from hfbench.sweeps.vary import is_list, joined, separates, spelled, values_of


def field(of: type = int, **more: object) -> Param:
    told: dict[str, object] = {
        "name": "batch",
        "type": of,
        "help": "What",
        "default": of(),
        "optional": False,
        "many": False,
        "choices": (),
        "ge": None,
        "le": None,
        "unit": "",
        "kind": "",
        "positional": False,
        "secret": False,
    }
    return Param(**(told | more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "text", "values"),
    [
        (int, "1,8,32", (1, 8, 32)),
        (int, " 1 , 8", (1, 8)),
        (int, "16..128*2", (16, 32, 64, 128)),
        (int, "1..100*3", (1, 3, 9, 27, 81)),
        (int, "1..4", (1, 2, 3, 4)),
        (int, "0..30+10", (0, 10, 20, 30)),
        (int, "-2..1", (-2, -1, 0, 1)),
        (int, "1,4..6,9", (1, 4, 5, 6, 9)),
        (float, "0.1..0.3+0.1", (0.1, 0.2, 0.3)),
        (float, "1..2+0.5", (1.0, 1.5, 2.0)),
        (float, "1e-3..0.1*10", (0.001, 0.01, 0.1)),
        (str, 'a,"b, c"', ("a", "b, c")),
        (str, "1..4", ("1..4",)),
        (bool, "true,false", (True, False)),
        (int, "7", (7,)),
        (int, "3..3", (3,)),
        (float, ".5..1.5+.5", (0.5, 1.0, 1.5)),
        (int, "1 .. 8 * 2", (1, 2, 4, 8)),
    ],
)
def test_a_text_stands_for_these_values(kind: type, text: str, values: tuple[object, ...]) -> None:
    assert values_of(field(kind), text) == values


@pytest.mark.parametrize(
    ("kind", "text", "told"),
    [
        (int, "", "has no value"),
        (int, "1,,2", "nothing between two commas"),
        (int, "1,8,1", "1 stands there twice"),
        (int, "2,1..4", "2 stands there twice"),
        (int, "8..1", "holds no value"),
        (int, "1..9*1", "never ends"),
        (int, "0..9*2", "never ends"),
        (int, "1..9+0", "never ends"),
        (int, "1..1000000000000", "more than 10,000 values"),
        (float, "1..1e300*1.01", "more than 10,000 values"),
        (str, '"a" b,c', "quotation mark in the wrong place"),
    ],
)
def test_what_is_wrong_is_told(kind: type, text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told.replace("*", r"\*")):
        values_of(field(kind), text)


def test_a_value_that_the_field_refuses_is_refused_in_its_words() -> None:
    with pytest.raises(Problem, match="0 is below the least value 1"):
        values_of(field(ge=1), "0..3")
    with pytest.raises(Problem, match="'fp31' is not one of fp32, bf16"):
        values_of(field(str, choices=("fp32", "bf16")), "fp31,bf16")


def test_a_comma_in_a_field_that_takes_a_list_is_its_own() -> None:
    assert not is_list(field(many=True, default=()), "1,2")
    assert values_of(field(many=True, default=()), "1,2") == ((1,), (2,))


def test_secrets_are_not_varied() -> None:
    assert not is_list(field(str, secret=True, kind="model"), "a,b")
    with pytest.raises(UsageError, match="secrets are not written into scripts"):
        values_of(field(str, secret=True), "a,b")


def test_a_comma_in_free_text_separates_only_what_stands_in_quotation_marks() -> None:
    free, choice, model = field(str), field(str, choices=("a", "b")), field(str, kind="model")
    assert not separates(free)
    assert not is_list(free, "Hello, world")
    assert is_list(free, '"Hello, world","Good bye"')
    assert is_list(choice, "a,b")
    assert is_list(model, "demo,./other")
    assert not is_list(model, '"./a,b"')
    assert is_list(field(), "1..4")
    assert not is_list(field(), "14")


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs", "Cc"])).filter(lambda t: t.strip()), min_size=1, unique=True
    )
)
def test_texts_that_are_joined_read_back(texts: list[str]) -> None:
    assert values_of(field(str), joined(tuple(texts))) == tuple(texts)


@given(st.text(max_size=30))
def test_any_text_is_values_or_a_sentence(text: str) -> None:
    for kind in (int, float, str):
        assert outcome(kind, text)


def outcome(kind: type, text: str) -> object:
    """The values, or the sentence why there are none."""
    try:
        return values_of(field(kind), text)
    except (UsageError, Problem) as error:
        return str(error)


@pytest.mark.parametrize(
    ("kind", "texts", "text"),
    [
        (int, ["16", "32", "64", "128"], "16..128*2"),
        (int, ["1", "2", "3", "4"], "1..4"),
        (int, ["0", "10", "20", "30"], "0..30+10"),
        (int, ["1", "2", "4"], "1,2,4"),
        (int, ["4", "3", "2", "1"], "4,3,2,1"),
        (int, ["1", "2", "3", "1000000000000"], "1,2,3,1000000000000"),
        (bool, ["true", "false"], "true,false"),
        (str, ["a", 'b, "c"'], '"a","b, ""c"""'),
    ],
)
def test_values_are_spelled_as_somebody_would_type_them(kind: type, texts: list[str], text: str) -> None:
    assert spelled(field(kind), texts) == text


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=8, unique=True))
def test_spelled_values_are_read_back(values: list[int]) -> None:
    text = spelled(field(), [str(value) for value in values])
    assert is_list(field(), text)
    assert values_of(field(), text) == tuple(values)


def test_values_that_no_text_stands_for_are_refused() -> None:
    with pytest.raises(UsageError, match="no text of a form stands for"):
        spelled(field(str, many=True), ["a", "b"])
