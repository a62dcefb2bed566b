"""Names that differ only in their numbers fold into one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hfbench.models.patterns import fold, fold_numbers

CASES = [
    ("model.layers.3.mlp.experts.12.w1.weight", "model.layers.*.mlp.experts.*.w1.weight"),
    ("0.auto_model.layer.1", "*.auto_model.layer.*"),
    ("7", "*"),
    ("1.2.3", "*.*.*"),
    ("w1", "w1"),
    ("3d.conv", "3d.conv"),
    ("layers.3x.w", "layers.3x.w"),
    ("layers.\u0663.w", "layers.\u0663.w"),
    ("h.4\n", "h.4\n"),
    ("x\n3.y", "x\n3.y"),
    ("", ""),
]


@pytest.mark.parametrize(("name", "pattern"), CASES)
def test_only_parts_that_are_numbers_are_folded(name: str, pattern: str) -> None:
    assert fold([name]) == [pattern]


def test_names_are_folded_together_as_they_are_alone() -> None:
    assert fold([name for name, _ in CASES]) == [pattern for _, pattern in CASES]
    assert fold([]) == []


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["layers.3.w", "layers.5.w"], "layers.{3,5}.w"),
        (["layers.10.w", "layers.9.w", "layers.8.w", "layers.1.w"], "layers.{1,8-10}.w"),
        (["l.0.e.7.w", "l.1.e.7.w"], "l.{0-1}.e.7.w"),
        (["l.0.e.7.w", "l.1.e.9.w"], "l.{0-1}.e.{7,9}.w"),
        (["a.1", "a." + "9" * 5000], "a.{1," + "9" * 5000 + "}"),
        (["a.1"], "a.1"),
    ],
)
def test_the_numbers_that_vary_are_told(names: list[str], told: str) -> None:
    assert fold_numbers(names) == told


@given(st.lists(st.from_regex(r"\A[a-c0-9.\n]{0,8}\Z")))
def test_a_part_becomes_a_star_exactly_when_it_is_a_number(names: list[str]) -> None:
    for name, folded in zip(names, fold(names), strict=True):
        parts = ["*" if re.fullmatch("[0-9]+", part) and "\n" not in part else part for part in name.split(".")]
        assert folded == ".".join(parts)
