"""One of something is told in the singular, and thousands have a comma, in the list and on the page of a model."""

from __future__ import annotations

from hfbench.models.config import ModelConfig
from hfbench.screens.model_tabs.overview import dimensions
from hfbench.screens.model_words import heads_text
from hfbench.widgets.glyphs import ASCII


def config(layers: int, hidden: int, heads: int, experts: int) -> ModelConfig:
    return ModelConfig(
        source="config.json", raw={"a": 1}, problems=(), layers=layers, hidden=hidden, heads=heads, experts=experts
    )


def test_one_is_told_in_the_singular() -> None:
    assert dimensions(config(1, 64, 1, 1), ASCII) == "1 layer | 64 hidden | 1 head | 1 expert"
    assert heads_text(config(1, 64, 1, 1)) == "1 head"


def test_thousands_have_a_comma() -> None:
    assert dimensions(config(32, 4096, 32, 8), ASCII) == "32 layers | 4,096 hidden | 32 heads | 8 experts"
