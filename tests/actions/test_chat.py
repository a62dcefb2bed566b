"""chat: conversations rendered by the command, where the template came from, and what can be wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from small_tokenizers import CHATML, byte_level, write

from hfbench.actions.chat import Chat, ChatResult
from hfbench.actions.registry import find
from hfbench.codec import decode, encode
from hfbench.errors import HfbenchError, UsageError
from hfbench.jobs.run import Run
from hfbench.line_width import lines_of

BOTH_LIMITS = r"takes more than 1 s of CPU time|was not done after 3\.5 s"
"""A busy machine may not give it the second of CPU time that it wants."""

Hfbench = Callable[..., CompletedProcess[str]]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    pytest.importorskip("jinja2")
    return write(tmp_path / "model", byte_level(), {"chat_template": CHATML})


def chat(model: str | Path, **options: object) -> ChatResult:
    return Chat(model=str(model), **options).perform(Run())  # type: ignore[arg-type]


def test_the_declaration_is_inline_and_names_what_it_needs() -> None:
    spec = find("chat")
    assert (spec.inline, spec.needs, spec.extra) == (True, ("jinja2",), "tokens")
    assert [param.name for param in spec.params if param.positional] == ["model"]


def test_the_command_gives_text_tokens_and_where_the_template_came_from(model: Path, hfbench: Hfbench) -> None:
    pytest.importorskip("tokenizers")
    done = hfbench("chat", model, "--system", "Be brief", "--user", "hello", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert told["text"] == (
        "<|im_start|>system\nBe brief<|im_end|>\n<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"
    )
    assert told["template"] == {"name": "default", "source": "tokenizer_config.json"}
    assert (told["messages"], told["content"], told["note"]) == (2, "text", "")
    count = json.loads(hfbench("tokenize", model, "--text", told["text"], "--no-special", "--json").stdout)["count"]
    assert told["tokens"] == count
    without = hfbench("chat", model, "--user", "hello", "--no-generation-prompt", "--json")
    assert json.loads(without.stdout)["text"] == "<|im_start|>user\nhello<|im_end|>\n"


def test_messages_and_tools_come_from_files(model: Path, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(json.dumps({"messages": [{"role": "user", "content": "hello"}]}))
    (tmp_path / "t.json").write_text(json.dumps([{"type": "function"}, {"type": "function"}]))
    result = chat(model, messages=tmp_path / "m.json", tools=tmp_path / "t.json")
    assert "user\nhello<|im_end|>\n2 tools" in result.text
    assert "1 tools" in chat(model, sample_tools=True).text
    assert "noon" in chat(model).text
    with pytest.raises(UsageError, match="messages and a text were given"):
        chat(model, messages=tmp_path / "m.json", user="x")


def test_a_template_of_a_name_is_taken(model: Path) -> None:
    named = [{"name": "default", "template": "d"}, {"name": "rag", "template": "r{{ eos_token }}"}]
    write(model, byte_level(), {"chat_template": named, "eos_token": "<|im_end|>"})
    assert chat(model, template="rag").text == "r<|im_end|>"
    assert chat(model).text == "d"
    with pytest.raises(UsageError, match="there is no template 'rug'"):
        chat(model, template="rug")


def test_a_text_without_a_tokenizer_is_given_and_the_reason_noted(model: Path) -> None:
    write(model, b"{oops")
    result = chat(model, user="hello")
    assert result.tokens is None
    assert "hello" in result.text
    assert result.note.startswith("tokens not counted: tokenizer.json: the tokenizers library cannot read it")
    assert any(line.startswith("! tokens not counted") for line in result.lines())


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{{ raise_exception('only user') }}", "refuses this conversation: only user"),
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", BOTH_LIMITS),
        ("{{ ''.__class__ }}", "is not safe and was not rendered"),
    ],
    ids=["refuses", "loops", "unsafe"],
)
def test_what_a_template_does_wrong_is_one_line_and_exit_1(
    model: Path, hfbench: Hfbench, text: str, sentence: str
) -> None:
    (model / "chat_template.jinja").write_text(text)
    done = hfbench("chat", model, "--user", "hello")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "chat_template.jinja: " in done.stderr
    assert re.search(sentence, done.stderr)


def test_a_model_without_a_template_says_so(model: Path) -> None:
    write(model, byte_level(), {})
    with pytest.raises(HfbenchError, match="there is no chat template"):
        chat(model)


def test_tools_that_a_template_ignores_are_told(model: Path) -> None:
    ignoring, using = "{{ messages[0].content }}", "{{ messages[0].content }}{{ tools }}"
    needing = "{{ tools[0].function.name }}"
    for text, used in ((needing, True), (using, True), (ignoring, False)):
        write(model, byte_level(), {"chat_template": text})
        result = chat(model, user="hi", sample_tools=True)
        assert result.tools_used is used
        assert any("ignores the tools" in line for line in result.lines()) is not used
    assert chat(model, user="hi").tools_used is None


def test_a_text_can_be_read_back_from_its_lines(model: Path) -> None:
    write(model, byte_level(), {"chat_template": "{{ messages[0].content }}"})
    text = "one " * 50 + "\n\n" + "x" * 200 + "\nlast"
    result = chat(model, user=text)
    assert [line[2:] for line in result.lines() if line.startswith("| ")] == text.split("\n")
    with lines_of(80):
        lines = result.lines()
    assert all(len(line) <= 80 for line in lines)
    joined = "".join(("\n" if line[0] == "|" else "") + line[2:] for line in lines if line[:2] in ("| ", ": "))
    assert joined == "\n" + text
    assert next(line for line in lines if line.startswith("| ")).endswith("one ")


@pytest.mark.usefixtures("terminal")
def test_the_result_survives_its_own_json_and_its_lines_are_safe(model: Path) -> None:
    result = chat(model, user="\x1b[2J" + "long " * 60)
    told = json.loads(json.dumps(encode(result)))
    assert encode(decode(ChatResult, told)) == told
    assert max(map(len, result.lines())) <= 80
    assert all(line.isprintable() for line in result.lines())
