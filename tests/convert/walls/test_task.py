"""Tokens, perplexity, generated text and answers: the same for a right checkpoint, told apart for a wrong one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from faulty import write_megatron
from tiny_models import Tiny

from hfbench.convert.walls.asking import Judging
from hfbench.convert.walls.sides import sides_of
from hfbench.convert.walls.task import Asked, task_wall

TEXT = "The quick brown fox jumps over the lazy dog. " * 4


def write_tokenizer(folder: Path, special: str = "<|user|>") -> None:
    """Byte-level tokens without merges: 246 of its ids are bytes, four are special."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())[:246]
    tokenizer = Tokenizer(models.BPE({letter: number for number, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(each, special=True) for each in ("<s>", "</s>", special, "<pad>")])
    tokenizer.save(str(folder / "tokenizer.json"))
    told = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(told))


@pytest.fixture(scope="session")
def talking(tiny: Tiny, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model with a tokenizer."""
    folder = shutil.copytree(tiny("qwen2"), tmp_path_factory.mktemp("talking") / "qwen2")
    write_tokenizer(folder)
    return folder


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    (tmp_path / "text.txt").write_text(TEXT)
    lines = [
        {"question": f"{n} and {n} is", "choices": ["one", "two", "six", "ten"], "answer": n % 3} for n in range(9)
    ]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return Asked(text=tmp_path / "text.txt", questions=tmp_path / "q.jsonl", new_tokens=12)


def test_right_checkpoint(talking: Path, asked: Asked, judging: Judging, tmp_path: Path) -> None:
    made = write_megatron(talking, tmp_path / "mg", tp=2)
    (made / "hf").mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(talking / name, made / "hf" / name)
    found = task_wall(judging, sides_of(talking, made), asked)
    assert found.verdict == "proven"
    assert found.tokenisation
    assert (found.tokenisation.verdict, found.tokenisation.special) == (
        "proven",
        5,
    )  # transformers gives Qwen2 one of its own
    assert found.perplexity
    assert found.perplexity.tokens == len(TEXT) - 1
    assert found.perplexity.relative < 1e-5
    assert found.greedy
    assert (found.greedy.tokens, found.greedy.first_difference) == (12, "")
    assert found.choices
    assert found.choices.questions == 9
    assert found.choices.reference == found.choices.converted


def test_wrong_checkpoint(talking: Path, asked: Asked, judging: Judging, tmp_path: Path) -> None:
    made = write_megatron(talking, tmp_path / "mg", tp=2, fault="gate_up_swapped")
    found = task_wall(judging, sides_of(talking, made), asked)
    assert found.verdict == "differs"
    assert found.tokenisation
    assert found.tokenisation.reason == "the converted folder carries no tokenizer"
    assert found.perplexity
    assert found.perplexity.relative > 0.005
    assert found.greedy
    assert "which the reference prefers by" in found.greedy.first_difference
    assert found.choices
    assert found.choices.other_answers > 0


def test_other_tokenizer_is_told(talking: Path, asked: Asked, judging: Judging, tmp_path: Path) -> None:
    made = write_megatron(talking, tmp_path / "mg")
    write_tokenizer(made, special="<|model|>")
    found = task_wall(judging, sides_of(talking, made), Asked(text=asked.text, new_tokens=1))
    assert found.tokenisation
    assert found.tokenisation.verdict == "differs"
    assert found.tokenisation.reason.startswith("token ")


def test_without_a_tokenizer_tokens_are_random(tiny: Tiny, judging: Judging, tmp_path: Path) -> None:
    made = write_megatron(tiny("qwen2"), tmp_path / "mg")
    found = task_wall(judging, sides_of(tiny("qwen2"), made), Asked(new_tokens=3))
    assert found.verdict == "proven"
    assert found.perplexity
    assert found.perplexity.text.startswith("random tokens")
