"""Chat templates: which one counts, what it renders, and what stops a hostile one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_tokenizers import CHATML, byte_level, write

from hfbench.errors import HfbenchError, MissingError, UsageError
from hfbench.tokens.chat import Chat, named_tokens
from hfbench.tokens.conversation import SAMPLE_MESSAGES, SAMPLE_TOOLS
from hfbench.tokens.render import render
from hfbench.tokens.templates_text import LONGEST, Template, chosen, templates_of

HELLO = [{"role": "user", "content": "hello"}]


def template(text: str) -> Template:
    return Template("default", "chat_template.jinja", text)


def rendered(chat: Chat, text: str, messages: object = HELLO, **options: object) -> str:
    return chat.render(template(text), messages, tokens={"bos_token": "<s>"}, **options).text  # type: ignore[arg-type]


def test_messages_prompt_and_tools_are_rendered(chat: Chat) -> None:
    assert rendered(chat, CHATML) == "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"
    assert rendered(chat, CHATML, prompt=False) == "<|im_start|>user\nhello<|im_end|>\n"
    assert "1 tools" in rendered(chat, CHATML, tools=SAMPLE_TOOLS)
    assert "noon" in rendered(chat, CHATML, SAMPLE_MESSAGES)
    assert rendered(chat, "{{ bos_token }}{{ nothing }}") == "<s>"


def test_a_template_that_wants_parts_gets_them_and_says_so(chat: Chat) -> None:
    for text in ("{% for m in messages %}{{ m.content[0].text }}{% endfor %}", "{{ messages[0].content[0]['text'] }}"):
        found = chat.render(template(text), HELLO, tokens={})
        assert (found.text, found.content) == ("hello", "parts")
    assert chat.render(template("a constant"), HELLO, tokens={}).content == "text"


HOSTILE: dict[str, tuple[str, str]] = {
    "loops": (
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "rendering the template 'default' takes more than 1 s of CPU time",
    ),
    "a power of powers": ("{{ 9 ** (9 ** 9) }}", "takes more than 1 s of CPU time"),
    "ten gigabytes": ("{{ 'x' * 10000000000 }}", "takes more memory than allowed"),
    "text without an end": ("{% for a in range(99999) %}{{ 'x' * 999 }}{% endfor %}", "more than 4,194,304 characters"),
    "a list that doubles": (
        "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
        "takes more memory than allowed",
    ),
    "classes": ("{{ ''.__class__.__mro__ }}", "is not safe and was not rendered: reaches for __"),
    "by attr": ("{{ cycler | attr('__init__') }}", "is not safe"),
    "an import": ("{% import 'os' as os %}{{ os }}", "fails on this conversation: TypeError: no loader"),
    "a file": ("{% include '/etc/passwd' %}", "fails on this conversation: TypeError: no loader"),
    "open": ("{{ open('/etc/passwd').read() }}", "fails on this conversation: UndefinedError: 'open' is undefined"),
    "its own error": ("{{ raise_exception('no \x1b[2J system') }}", r"refuses this conversation: no \\x1b\[2J system"),
    "no end": ("{% for m in messages %}", "does not compile: line 1"),
    "a method of nothing": ("{{ nothing.at.all }}", "UndefinedError: 'nothing' is undefined"),
    "itself": ("{% macro r() %}{{ r() }}{% endmacro %}{{ r() }}", "RecursionError"),
    "half a character": ("{{ '\\ud800' }}", "what it renders is not Unicode at character 0"),
    "a message changed": ("{{ messages.append(1) }}", "append would change a list"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_template_is_one_sentence_and_the_next_one_renders(
    chat: Chat, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hfbench.tokens.chat.WALL_SECONDS", 60.0)  # CPU time decides, however busy the machine is
    text, sentence = HOSTILE[case]
    with pytest.raises(HfbenchError, match=sentence) as caught:
        rendered(chat, text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
    assert rendered(chat, "{{ messages[0].content }}") == "hello"


def test_without_jinja2_the_sentence_names_the_extra(
    tmp_path: Path, chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jinja2.py").write_text("raise ImportError(\"No module named 'jinja2'\")")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(MissingError, match=r"jinja2.*pip install 'hfbench\[tokens\]'"):
        rendered(chat, CHATML)


# -- which template ----------------------------------------------------------------------------


def folder_with(tmp_path: Path, config: object, **files: str) -> Path:
    folder = write(tmp_path / "model", byte_level(), {"chat_template": config} if config is not None else {})
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_jinja", ".jinja")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return folder


def test_a_file_of_its_own_comes_before_tokenizer_config(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "old", chat_template_jinja="new")
    found = chosen(templates_of(folder), None, tools=False)
    assert (found.source, found.text) == ("chat_template.jinja", "new")
    (folder / "chat_template.jinja").unlink()
    assert chosen(templates_of(folder), None, tools=False).source == "tokenizer_config.json"


def test_named_templates_are_found_wherever_they_stand(tmp_path: Path) -> None:
    named = [{"name": "default", "template": "d"}, {"name": "rag", "template": "r"}]
    folder = folder_with(tmp_path, named, additional_chat_templates__tool_use_jinja="t")
    templates = templates_of(folder)
    assert chosen(templates, None, tools=False).text == "d"
    assert chosen(templates, None, tools=True).source == "additional_chat_templates/tool_use.jinja"
    assert chosen(templates, "rag", tools=True).text == "r"
    with pytest.raises(UsageError, match=r"there is no template 'rga'\. Did you mean 'rag'"):
        chosen(templates, "rga", tools=False)


def test_a_model_without_a_template_or_without_a_default_says_so(tmp_path: Path) -> None:
    with pytest.raises(HfbenchError, match="there is no chat template") as caught:
        chosen(templates_of(folder_with(tmp_path, None)), None, tools=False)
    assert caught.value.exit == 1
    with pytest.raises(UsageError, match=r"no template is named default\. Name one: there are 'a'"):
        chosen((Template("a", "x", ""),), None, tools=False)


def test_special_tokens_of_every_role_are_handed_to_the_template(tmp_path: Path) -> None:
    folder = write(tmp_path / "model", byte_level())
    told = {"bos_token": {"content": "<s>"}, "eos_token": "</s>", "image_token": "<img>", "other": "x"}
    (folder / "tokenizer_config.json").write_text(json.dumps(told))
    assert named_tokens(folder) == {"bos_token": "<s>", "eos_token": "</s>", "image_token": "<img>"}
    (folder / "tokenizer_config.json").write_text("{oops")
    assert named_tokens(folder) == {}


def test_a_template_that_is_too_long_is_not_cut(tmp_path: Path, chat: Chat) -> None:
    text = "{# " + "x" * LONGEST + " #}hello"
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": text}))
    (tmp_path / "chat_template.jinja").write_text(text)
    found = templates_of(tmp_path)
    assert [(each.source, each.too_long) for each in found] == [
        ("chat_template.jinja", True),
        ("tokenizer_config.json", True),
    ]
    assert {each.outcome for each in render(found, {})} == {"too long"}
    with pytest.raises(HfbenchError, match="more than 1,048,576 characters and is not tried"):
        chat.render(found[0], HELLO, tokens={})


def test_the_clock_ends_a_rendering_that_gets_little_cpu_time(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hfbench.tokens.chat.SECONDS", 30.0)
    monkeypatch.setattr("hfbench.tokens.chat.WALL_SECONDS", 1.0)
    with pytest.raises(HfbenchError, match="was not done after 1 s"):
        rendered(chat, HOSTILE["loops"][0])


def test_templates_are_told_apart_from_a_machine_without_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hfbench.tokens.render.WALL_SECONDS", 0.0)
    assert "not tried" not in {each.outcome for each in render([template("x"), template("y")], {})}, "time came late"
    monkeypatch.setattr("hfbench.tokens.render.PATIENCE", 0.0)
    assert [each.outcome for each in render([template("x"), template("y")], {})] == ["not tried"] * 2
