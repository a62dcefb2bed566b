"""tokenize: the command for people and for programs, and every way a request can be wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from small_tokenizers import byte_level, wordpiece, write

from hfbench.actions.registry import find
from hfbench.actions.tokenize import SHOWN, Tokenize, TokenizeResult
from hfbench.codec import decode, encode
from hfbench.errors import HfbenchError, UsageError
from hfbench.jobs.run import Run

Hfbench = Callable[..., CompletedProcess[str]]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    pytest.importorskip("tokenizers")
    return write(tmp_path / "model", byte_level(bos=True))


def tokenize(model: str | Path, **options: object) -> TokenizeResult:
    return Tokenize(model=str(model), **options).perform(Run())  # type: ignore[arg-type]


def test_the_declaration_is_inline_and_names_what_it_needs() -> None:
    spec = find("tokenize")
    assert (spec.inline, spec.needs, spec.extra) == (True, ("tokenizers",), "tokens")
    assert [param.name for param in spec.params if param.positional] == ["model"]
    assert {param.name for param in spec.params} == {
        "model",
        "text",
        "file",
        "compare",
        "special",
        "cache_dir",
    }


def test_the_command_gives_every_token_with_its_bytes(model: Path, hfbench: Hfbench) -> None:
    done = hfbench("tokenize", model, "--text", "hello 👩", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert (told["model"], told["count"], told["bytes"], told["characters"]) == (str(model), 7, 10, 7)
    start = byte_level()["added_tokens"][0]["id"]
    assert told["tokens"][0] == {
        "id": start,
        "piece": "<|im_start|>",
        "text": "",
        "begin": 0,
        "end": 0,
        "special": True,
        "added": True,
    }
    assert [(t["text"], t["begin"], t["end"]) for t in told["tokens"][1:4]] == [
        ("hello", 0, 5),
        (" ", 5, 6),
        ("\\xf0", 6, 7),
    ]
    assert told["compare"] is None
    without = json.loads(hfbench("tokenize", model, "--text", "hello", "--no-special", "--json").stdout)
    assert [token["piece"] for token in without["tokens"]] == ["hello"]


def test_a_second_tokenizer_is_compared(model: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other", wordpiece())
    result = tokenize(model, text="hello world", compare=str(other), special=False)
    assert result.compare
    assert (result.compare.count, result.compare.ratio, result.compare.same) == (2, 1.0, False)
    found = result.compare.first_difference
    assert found
    assert (found.kind, found.byte, found.a and found.a.text, found.b and found.b.text) == ("cut", 5, " world", "world")
    assert tokenize(model, text="hello", compare=str(model)).compare.same is True  # type: ignore[union-attr]


def test_the_result_survives_its_own_json(model: Path) -> None:
    result = tokenize(model, text="hello é", compare=str(model))
    told = json.loads(json.dumps(encode(result)))
    assert encode(decode(TokenizeResult, told)) == told


@pytest.mark.usefixtures("terminal")
def test_lines_fit_a_terminal_and_hold_no_control_character(model: Path) -> None:
    result = tokenize(model, text="hello \x1b[2J\u202e\n" * 40, compare=str(model))
    lines = result.lines()
    assert max(map(len, lines)) <= 80
    assert all(line.isprintable() for line in lines)
    assert f"and {result.count - SHOWN:,} more (--json lists all)" in lines
    assert lines[-1] == "the same tokens"


def test_a_file_is_a_text_too(model: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("hello\nworld")
    assert tokenize(model, file=tmp_path / "text.txt", special=False).bytes == 11


@pytest.mark.parametrize("case", ["neither", "both", "no UTF-8", "gone", "not Unicode"])
def test_a_wrong_text_is_a_usage_error(model: Path, tmp_path: Path, case: str) -> None:
    (tmp_path / "latin").write_bytes(b"caf\xe9")
    options, sentence = {
        "neither": ({}, "there is no text"),
        "both": ({"text": "x", "file": tmp_path / "latin"}, "a text and a file were given"),
        "no UTF-8": ({"file": tmp_path / "latin"}, "byte 0xe9 at 3 is not UTF-8"),
        "gone": ({"file": tmp_path / "gone"}, "cannot be read"),
        "not Unicode": ({"text": "a\udce9"}, "byte 0xe9 at character 1"),
    }[case]
    with pytest.raises(UsageError, match=sentence):
        tokenize(model, **options)  # type: ignore[arg-type]


def test_a_broken_tokenizer_is_one_line_and_exit_1(tmp_path: Path, model: Path, hfbench: Hfbench) -> None:
    write(model, b"{oops")
    done = hfbench("tokenize", model, "--text", "x")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert f"{model}/tokenizer.json: the tokenizers library cannot read it" in done.stderr


def test_without_the_library_the_extra_is_named_and_the_exit_is_4(
    tmp_path: Path, model: Path, hfbench: Hfbench
) -> None:
    (tmp_path / "tokenizers.py").write_text("raise ImportError(\"No module named 'tokenizers'\")")
    done = hfbench("tokenize", model, "--text", "x", env={"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 4
    assert "pip install 'hfbench[tokens]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_model_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(HfbenchError, match="there is no such folder"):
        tokenize(tmp_path / "gone", text="x")


def test_a_script_expects_a_number_of_tokens(model: Path, tmp_path: Path, hfbench: Hfbench) -> None:
    (tmp_path / "count.hfb.yaml").write_text(
        "hfbench: 1\nname: count\nsteps:\n"
        f'  - tokenize: {{model: "{model}", text: "hello world", special: false, save_as: cut}}\n'
        "    expect:\n      - cut.count == 2\n"
    )
    done = hfbench("--script", tmp_path / "count.hfb.yaml")
    assert done.returncode == 0, done.stderr
