"""Fields of an action: what is read, what is refused, and that text reads back to the same value."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.actions.params import RESERVED, Param, Problem, command_line, param, param_of

NO_NUL = st.text(st.characters(exclude_characters="\0"), max_size=30)
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def field(hint: Any, name: str = "field", **told: Any) -> Param:
    """The field of a class that was declared with this annotation."""
    made = dataclasses.make_dataclass("Made", [(name, hint, param(told.pop("help", "A field"), **told))], kw_only=True)
    return param_of(dataclasses.fields(made)[0], hint)


INTEGER = field(int, default=3, ge=1, le=1_000_000)
SHARE = field(float, ge=0.25, le=1)
TEXT = field(str)
FLAG = field(bool, default=False)
PATH = field(Path | None, default=None)
CHOICE = field(Literal["bf16", "fp32", "none"])
MANY = field(tuple[str, ...], default=())
NUMBERS = field(tuple[int, ...], ge=0)
BUDGET = field(float, kind="duration", ge=0.001)


@pytest.mark.parametrize(
    ("declared", "text", "value"),
    [
        (INTEGER, "8", 8),
        (INTEGER, " 1000000 ", 1_000_000),
        (SHARE, "0.5", 0.5),
        (SHARE, "1", 1.0),
        (TEXT, " as it is ", " as it is "),
        (FLAG, "Yes", True),
        (FLAG, "off", False),
        (PATH, "", None),
        (PATH, "none", Path("none")),
        (PATH, "a/b", Path("a/b")),
        (CHOICE, "none", "none"),
        (MANY, "", ()),
        (MANY, "a, b ,c", ("a", "b", "c")),
        (MANY, '"a, b","say ""hi""", ""', ("a, b", 'say "hi"', "")),
        (NUMBERS, "1,2, 3", (1, 2, 3)),
        (BUDGET, "1h30m", 5400.0),
        (BUDGET, "2.5", 2.5),
        (field(int | None, default=4), "none", None),
        (field(int | None, default=4), "", None),
        (field(Literal["a", "b"] | None, default=None), "none", None),
    ],
)
def test_what_a_person_types_becomes_a_value(declared: Param, text: str, value: object) -> None:
    assert declared.parse(text) == value
    assert type(declared.parse(text)) is type(value)


@pytest.mark.parametrize(
    ("declared", "text", "told"),
    [
        (INTEGER, "0", "0 is below the least value 1"),
        (INTEGER, "1000001", "1000001 is above the greatest value 1000000"),
        (INTEGER, "9" * 400, "is above the greatest value 1000000"),
        (INTEGER, "9" * 5000, "is not an integer"),
        (INTEGER, "2.0", "'2.0' is not an integer"),
        (INTEGER, "", "'' is not an integer"),
        (INTEGER, "1\x1b[31m", r"'1\x1b[31m' is not an integer"),
        (SHARE, "0.1", "0.1 is below the least value 0.25"),
        (SHARE, "nan", "nan is not a finite number"),
        (SHARE, "-inf", "-inf is not a finite number"),
        (SHARE, "half", "'half' is not a number"),
        (TEXT, "a\0b", "holds a NUL character"),
        (PATH, "a\0b", "holds a NUL character"),
        (FLAG, "maybe\u202e", r"'maybe\u202e' is not true or false"),
        (CHOICE, "bf61", "'bf61' is not one of bf16, fp32, none; did you mean 'bf16'?"),
        (MANY, '"a', "has a quotation mark in the wrong place"),
        (MANY, 'a"b"', "has a quotation mark in the wrong place"),
        (NUMBERS, "1,two", "'two' is not an integer"),
        (NUMBERS, "1,,2", "'' is not an integer"),
        (NUMBERS, "-1", "-1 is below the least value 0"),
        (BUDGET, "soon", "'soon' is not a duration"),
        (BUDGET, "0s", "'0s' is not a duration"),
    ],
)
def test_what_is_wrong_is_named_with_its_bound(declared: Param, text: str, told: str) -> None:
    with pytest.raises(Problem) as caught:
        declared.parse(text)
    assert told in str(caught.value)
    assert str(caught.value).startswith("field: ")


@pytest.mark.parametrize(
    ("declared", "value", "told"),
    [
        (INTEGER, True, "True is not an integer"),
        (INTEGER, 1.0, "1.0 is not an integer"),
        (INTEGER, None, "needs an integer, not nothing"),
        (INTEGER, [1], "[1] is not an integer"),
        (INTEGER, 10**400, "is above the greatest value"),
        pytest.param(INTEGER, 10**5000, "is above the greatest value", id="5001 digits"),
        (SHARE, True, "True is not a number"),
        (SHARE, 10**400, "is too large"),
        (SHARE, "0.5", "'0.5' is not a number"),
        (TEXT, 5, "5 is not text"),
        (FLAG, 1, "1 is not true or false"),
        (BUDGET, True, "True is not a number"),
        (BUDGET, math.inf, "is not a duration"),
        (NUMBERS, {"a": 1}, "is not an integer"),
        (TEXT, {"long": "x" * 200}, "..."),
    ],
)
def test_plain_values_are_checked_as_strictly(declared: Param, value: object, told: str) -> None:
    with pytest.raises(Problem) as caught:
        declared.validate(value)
    assert told in str(caught.value)
    assert len(str(caught.value)) < 160


@given(st.integers(1, 1_000_000))
def test_integers_read_back(value: int) -> None:
    assert INTEGER.parse(INTEGER.text(value)) == value


@given(FINITE)
def test_numbers_read_back(value: float) -> None:
    declared = field(float)
    assert declared.parse(declared.text(value)) == value


@given(st.floats(0.001, 1e300))
def test_durations_read_back(value: float) -> None:
    assert BUDGET.parse(BUDGET.text(value)) == value


@given(NO_NUL)
def test_texts_read_back(value: str) -> None:
    assert TEXT.parse(TEXT.text(value)) == value


@given(st.lists(NO_NUL, max_size=4))
def test_lists_of_texts_read_back(value: list[str]) -> None:
    assert MANY.parse(MANY.text(tuple(value))) == tuple(value)


@given(st.lists(st.integers(0), max_size=4))
def test_lists_of_numbers_read_back(value: list[int]) -> None:
    assert NUMBERS.parse(NUMBERS.text(tuple(value))) == tuple(value)


@given(st.none() | NO_NUL)
def test_optional_texts_read_back_and_nothing_is_nothing(value: str | None) -> None:
    declared = field(str | None, default=None)
    checked = declared.validate(value)
    assert declared.parse(declared.text(checked)) == checked
    assert checked == (value if value and value.strip() else None)


@given(NO_NUL.map(Path) | st.none())
def test_optional_paths_read_back(value: Path | None) -> None:
    checked = PATH.validate(value)
    if checked is None or str(checked).strip():
        assert PATH.parse(PATH.text(checked)) == checked


@given(st.lists(NO_NUL, max_size=3), NO_NUL, FINITE, st.booleans(), NO_NUL)
def test_the_command_line_that_is_shown_does_what_it_says(
    many: list[str], text: str, number: float, flag: bool, named: str
) -> None:
    """Also for files that are called like options, and for texts with quotation marks in them."""
    import shlex

    from hfbench.actions.base import action
    from hfbench.commands.perform import parser_for, values_of

    @action("made.up", result=str)
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Made:
        """Made up."""

        named: str = param("Named", positional=True)
        many: tuple[str, ...] = param("Many", default=())
        text: str = param("Text", default="t")
        number: float = param("Number", default=1.0)
        flag: bool = param("Flag", default=True)

        def perform(self, run: object) -> str:
            return ""

    spec = Made.spec  # type: ignore[attr-defined]
    values = {"many": tuple(many), "text": text, "number": number, "flag": flag, "named": named}
    words = shlex.split(command_line(["hfbench", "made", "up"], spec.params, values))[3:]
    read = spec.build(values_of(spec, parser_for(spec).parse_args(words)))
    assert read == Made(**values)


@pytest.mark.parametrize("name", sorted(RESERVED - {"help", "in"}))  # no field can be called `in`
def test_a_field_may_not_take_a_word_of_the_command_line(name: str) -> None:
    with pytest.raises(TypeError, match="every action has an option of that name already"):
        field(str, name=name)


@pytest.mark.parametrize(
    ("hint", "told", "words"),
    [
        (list, {}, "is not one of int"),
        (dict[str, int], {}, "is not one of int"),
        (int | str, {}, "is not one of int"),
        (int, {"help": ""}, r"declare it with param\(help"),
        (int, {"default": 0, "ge": 1}, "the default of field: 0 is below the least value 1"),
        (int, {"default": "x"}, "the default of field: 'x' is not an integer"),
        (Literal["a"], {"default": "b"}, "the default of field: 'b' is not one of a"),
    ],
)
def test_a_wrong_declaration_is_refused_before_anything_runs(hint: Any, told: dict[str, Any], words: str) -> None:
    with pytest.raises(TypeError, match=words):
        field(hint, **told)
