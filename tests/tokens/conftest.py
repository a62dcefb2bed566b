"""Tokenizers that are ended after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from small_tokenizers import write

from hfbench.tokens.chat import Chat
from hfbench.tokens.tokenizer import Tokenizer

Opened = Callable[[dict[str, Any] | bytes], Tokenizer]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    """The tokenizer of a folder with this tokenizer.json."""
    pytest.importorskip("tokenizers")
    made: list[Tokenizer] = []

    def make(tokenizer: dict[str, Any] | bytes) -> Tokenizer:
        made.append(Tokenizer(write(tmp_path / f"tokenizer-{len(made)}", tokenizer)))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def chat() -> Iterator[Chat]:
    """What renders templates."""
    pytest.importorskip("jinja2")
    made = Chat()
    yield made
    made.close()
