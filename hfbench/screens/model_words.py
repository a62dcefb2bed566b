"""Words for what a configuration says, shared by the list of models and a model's own page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hfbench.models.problem import counted

if TYPE_CHECKING:
    from hfbench.models.config import ModelConfig


def heads_text(config: ModelConfig) -> str:
    """`9/3 heads`: query heads and key-value heads; one number when they are alike."""
    if config.heads is None:
        return ""
    grouped = config.kv_heads is not None and config.kv_heads != config.heads
    return f"{config.heads}/{config.kv_heads} heads" if grouped else counted(config.heads, "head")
