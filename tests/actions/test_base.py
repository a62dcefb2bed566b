"""Declarations: what is refused at import, and requests that are built from plain values."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.actions.base import InvalidParams, action, spec_of
from hfbench.actions.params import param
from hfbench.errors import MissingError
from hfbench.exits import Exit
from hfbench.text import printable


@dataclass(frozen=True)
class Answer:
    """A result."""

    value: int = 42


@action("made.thing", result=Answer, needs=("json", "no_such_module", "nor.this"), extra="torch")
@dataclass(frozen=True, kw_only=True)
class Thing:
    """Make a thing.

    With more to say.
    """

    model: str = param("What of", positional=True)
    batch: int = param("How many", default=1, ge=1, le=8)
    dtype: Literal["bf16", "fp32"] = param("As what", default="bf16")
    out: Path | None = param("Where to", default=None)
    sizes: tuple[int, ...] = param("How large", default=(1, 2))

    def perform(self, run: object) -> Answer:
        return Answer()


SPEC = Thing.spec  # type: ignore[attr-defined]


def test_a_declaration_tells_what_front_ends_need() -> None:
    assert (SPEC.name, SPEC.summary, SPEC.result) == ("made.thing", "Make a thing", Answer)
    assert [each.name for each in SPEC.params if each.required] == ["model"]
    assert SPEC.param("batch").bounds == "at least 1, at most 8"
    assert SPEC.file == Path(__file__)


def test_every_wrong_field_is_listed_at_once() -> None:
    with pytest.raises(InvalidParams) as caught:
        SPEC.build({"batch": 9, "dtpye": "bf16", "dtype": "fp16", "sizes": ["a"]})
    assert [problem.field for problem in caught.value.problems] == ["batch", "dtpye", "dtype", "sizes", "model"]
    assert "did you mean 'dtype'?" in str(caught.value)
    assert "model: is required" in str(caught.value)
    assert caught.value.exit is Exit.USAGE
    assert "\n" not in str(caught.value)


@given(
    st.fixed_dictionaries(
        {"model": st.text(st.characters(exclude_characters="\0"))},
        optional={
            "batch": st.integers(1, 8),
            "dtype": st.sampled_from(["bf16", "fp32"]),
            "out": st.none() | st.just("a/b"),
            "sizes": st.lists(st.integers(), max_size=3),
        },
    )
)
def test_the_values_of_a_request_build_it_again(values: dict[str, Any]) -> None:
    request = SPEC.build(values)
    assert SPEC.build(SPEC.values(request)) == request
    assert spec_of(request) is SPEC


@given(st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()))
def test_no_plain_value_gets_past_a_sentence(values: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams) as caught:
        SPEC.build({**values, "batch": 0})
    assert printable(str(caught.value)) == str(caught.value)


def test_missing_modules_are_named_with_the_extra_that_brings_them() -> None:
    with pytest.raises(MissingError, match=r"needs no_such_module, nor.this.*hfbench\[torch\]"):
        SPEC.require()


def test_a_result_may_be_named_and_is_imported_when_it_is_asked_for() -> None:
    code = """
import sys
from dataclasses import dataclass
from hfbench.actions.base import action
@action("late.result", result="fractions:Fraction")
@dataclass(frozen=True, kw_only=True)
class Late:
    "Late."
    def perform(self, run): ...
assert "fractions" not in sys.modules
print(Late.spec.result.__name__, "fractions" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "Fraction True\n"


def perform(self: object, run: object) -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: type("A", (), {"__doc__": "A.", "perform": perform}), "frozen=True, kw_only=True"),
        (lambda: dataclass(type("A", (), {"__doc__": "A.", "perform": perform})), "frozen=True, kw_only=True"),
        (
            lambda: dataclass(frozen=True)(
                type("A", (), {"__doc__": "A.", "perform": perform, "__annotations__": {"n": int}, "n": param("N")})
            ),
            "frozen=True, kw_only=True",
        ),
        (lambda: dataclass(frozen=True, kw_only=True)(type("A", (), {"__doc__": "A."})), "perform"),
        (lambda: dataclass(frozen=True, kw_only=True)(type("A", (), {"__doc__": "", "perform": perform})), "summary"),
    ],
    ids=["no dataclass", "not frozen", "not keyword-only", "no perform", "no docstring"],
)
def test_another_kind_of_class_is_refused(make: Any, told: str) -> None:
    with pytest.raises(TypeError, match=told):
        action("made.up", result=Answer)(make())


@pytest.mark.parametrize("name", ["Bench", "a.b.c", "a b", "", "a-b", "../x", "1.a", "a."])
def test_a_name_that_is_no_command_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=r"is not of the form group\.verb"):
        action(name, result=Answer)(Thing)


def test_a_lease_names_a_field() -> None:
    with pytest.raises(TypeError, match="lease names the field 'device'"):
        action("made.up", result=Answer, lease="device")(Thing)
