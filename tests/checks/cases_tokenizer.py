"""The tokenizer and its chat templates."""

from __future__ import annotations

from typing import Any

from rule_case import Case, error, info, passes, warning
from small_model import TEMPLATE, Edit, added, all_of, config, gone, put, same, tokenizer, tokens


def template(text: Any) -> Edit:
    return tokens(chat_template=text)


def vocabulary(*extra: dict[str, Any], size: int = 16, **more: int) -> Edit:
    return put("tokenizer.json", tokenizer(size, list(extra), **more))


RAISES_ON_SYSTEM = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}" + TEMPLATE

TOKENIZER: list[Case] = [
    error("HB501", "no JSON", put("tokenizer.json", "{oops")),
    error("HB501", "a list", put("tokenizer.json", [])),
    error("HB501", "neither sentencepiece nor tiktoken", all_of(gone("tokenizer.json"), put("tokenizer.model", "x"))),
    passes("HB501", "the small model", same),
    info("HB502", "none", all_of(gone("tokenizer.json"), gone("tokenizer_config.json"))),
    passes("HB502", "there", same),
    error("HB503", "two added tokens", vocabulary(added(16, "<x>"), added(16, "<y>"))),
    error("HB503", "two words", vocabulary(again=3)),
    warning("HB503", "an added token over a word", vocabulary(added(9, "<x>"))),
    passes("HB503", "the word itself added", vocabulary(added(9, "w9"))),
    error("HB504", "four more", vocabulary(size=20)),
    error("HB504", "one padding token", vocabulary(added(16, "<pad>"))),
    passes("HB504", "fewer", vocabulary(size=12)),
    warning("HB505", "three missing", vocabulary(added(15, "<x>"), size=12)),
    passes("HB505", "none missing", same),
    error("HB506", "an end past the table", config(eos_token_id=16)),
    error("HB506", "padding past the table", put("generation_config.json", {"pad_token_id": 99})),
    passes("HB506", "padding of -1", config(pad_token_id=-1)),
    warning("HB507", "another end", put("generation_config.json", {"eos_token_id": 5})),
    warning("HB507", "an end that only one file lists", put("generation_config.json", {"eos_token_id": [2, 9]})),
    warning("HB507", "no end in the tokenizer", tokens(drop="eos_token")),
    warning("HB507", "another token in the tokenizer", tokens(eos_token="<s>")),
    passes("HB507", "the same end", put("generation_config.json", {"eos_token_id": [2]})),
    passes(
        "HB507", "padding as a second end", put("generation_config.json", {"eos_token_id": [2, 0], "pad_token_id": 0})
    ),
    warning("HB508", "eight", tokens(model_max_length=8)),
    passes("HB508", "no limit", tokens(model_max_length=1e30)),
    info("HB509", "Gemma", config(model_type="gemma2")),
    passes("HB509", "with its file", all_of(config(model_type="gemma2"), put("tokenizer.model", "x"))),
    passes("HB509", "Llama", same),
    warning(
        "HB510", "another id", all_of(vocabulary(added(15, "<x>"), size=15), put("added_tokens.json", {"<x>": 14}))
    ),
    passes(
        "HB510", "the same id", all_of(vocabulary(added(15, "<x>"), size=15), put("added_tokens.json", {"<x>": 15}))
    ),
    warning("HB511", "nobody's", tokens(tokenizer_class="NopeTokenizer")),
    error(
        "HB511",
        "nobody's, without tokenizer.json",
        all_of(tokens(tokenizer_class="NopeTokenizer"), gone("tokenizer.json")),
    ),
    passes("HB511", "Llama's", tokens(tokenizer_class="LlamaTokenizerFast")),
]

TEMPLATES: list[Case] = [
    warning("HB600", "none", tokens(drop="chat_template")),
    passes("HB600", "in a file", all_of(tokens(drop="chat_template"), put("chat_template.jinja", TEMPLATE))),
    passes("HB600", "no tokenizer", all_of(gone("tokenizer.json"), gone("tokenizer_config.json"))),
    error("HB601", "an unknown filter", template("{{ messages | nosuchfilter }}")),
    error("HB601", "a tag that is not closed", template("{% for m in messages %}")),
    error("HB601", "a number", template(7)),
    passes("HB601", "a list of named ones", template([{"name": "default", "template": TEMPLATE}])),
    passes("HB601", "the generation tag", template("{% generation %}" + TEMPLATE + "{% endgeneration %}")),
    passes("HB601", "break in a loop", template(TEMPLATE + "{% for m in messages %}{% break %}{% endfor %}")),
    error(
        "HB602",
        "three loops",
        template("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"),
    ),
    error("HB602", "a power of powers", template("{{ 9 ** (9 ** 9) }}")),
    passes("HB602", "an end", same),
    error("HB603", "ten gigabytes", template("{{ 'x' * 10000000000 }}")),
    error("HB603", "text without an end", template("{% for a in range(99999) %}{{ 'x' * 999 }}{% endfor %}")),
    passes("HB603", "a line", same),
    error("HB604", "subclasses", template("{{ ''.__class__.__mro__[1].__subclasses__() }}")),
    error("HB604", "by attr", template("{{ cycler | attr('__init__') }}")),
    error("HB604", "by format", template("{{ '{0.__class__}'.format(1) }}" + TEMPLATE)),
    error("HB604", "by key", template("{{ messages['__class__'] }}")),
    passes("HB604", "underscores in a word", template(TEMPLATE + "{{ my__name }}")),
    error("HB605", "a method of nothing", template("{{ nothing.at.all }}")),
    passes("HB605", "parts of content", template("{% for m in messages %}{{ m.content[0].text }}{% endfor %}")),
    warning("HB606", "system messages", template(RAISES_ON_SYSTEM)),
    error("HB606", "everything", template("{{ raise_exception('no') }}")),
    passes("HB606", "nothing", same),
    warning("HB607", "a constant", template("x")),
    passes("HB607", "the words", same),
    warning("HB608", "two", put("chat_template.jinja", "other")),
    passes("HB608", "the same twice", put("chat_template.jinja", TEMPLATE)),
    info(
        "HB609", "after two that hang", template([{"name": name, "template": "{{ 9 ** (9 ** 9) }}"} for name in "abc"])
    ),
    passes("HB609", "all tried", same),
]

CASES = [*TOKENIZER, *TEMPLATES]
