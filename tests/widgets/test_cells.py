"""Text fitted to cells: never wider than asked, whatever the letters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from hfbench.text import printable
from hfbench.widgets.cells import clip, clip_middle, clip_name, fit

TEXTS = st.text(
    alphabet=st.one_of(st.characters(codec="utf-8"), st.sampled_from("模型a.0e\u0301\u0300가👩")), max_size=60
)
WIDTHS = st.integers(0, 50)


@given(TEXTS, WIDTHS, st.sampled_from(["…", "..."]))
def test_clipped_text_is_never_wider(text: str, width: int, ellipsis: str) -> None:
    safe = printable(text)
    assert cell_len(clip(safe, width, ellipsis=ellipsis)) <= width
    assert cell_len(clip_middle(safe, width, ellipsis=ellipsis)) <= width


@given(TEXTS, WIDTHS, st.booleans(), st.booleans())
def test_fitted_text_is_exactly_as_wide(text: str, width: int, right: bool, middle: bool) -> None:
    assert cell_len(fit(printable(text), width, right=right, middle=middle)) == width


@given(TEXTS)
def test_text_that_fits_is_not_touched(text: str) -> None:
    safe = printable(text)
    assert clip(safe, cell_len(safe)) == safe
    assert clip_middle(safe, cell_len(safe)) == safe


@given(TEXTS, WIDTHS, st.sampled_from(["…", "..."]))
def test_a_clipped_name_is_never_wider(text: str, width: int, ellipsis: str) -> None:
    safe = printable(text)
    assert cell_len(clip_name(safe, width, ellipsis=ellipsis)) <= width
    assert clip_name(safe, cell_len(safe)) == safe


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("model.layers.3.self_attn.q_proj.weight", 24, "….3.….q_proj.weight"),
        ("model.layers.5.self_attn.q_proj.weight", 24, "….5.….q_proj.weight"),
        ("model.layers.3.self_attn.q_proj.weight", 30, "model.layers.3.….q_proj.weight"),
        ("  model.layers.3.self_attn.q_proj.weight", 24, "  ….3.….q_proj.weight"),
        ("+ model.layers.*.self_attn.q_proj.weight", 24, "+ ….*.….q_proj.weight"),
        ("model.layers.3.mlp.experts.17.up_proj.weight", 30, "….3.….17.up_proj.weight"),
        ("model.layers.0.mlp.down_proj.weight", 34, "model.layers.0.ml…down_proj.weight"),
        ("a_very_long_name_without_a_number", 11, "a_ver…umber"),
    ],
)
def test_a_name_keeps_its_numbers(text: str, width: int, expected: str) -> None:
    assert clip_name(text, width) == expected


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("model.layers.0.mlp", 10, "model….mlp"),
        ("model.layers.0.mlp", 2, "m…"),
        ("model.layers.0.mlp", 1, "…"),
        ("model.layers.0.mlp", 0, ""),
        ("模型模型模型", 7, "模型…型"),
    ],
)
def test_the_middle_is_cut_and_both_ends_stay(text: str, width: int, expected: str) -> None:
    assert clip_middle(text, width) == expected
