"""The tokenizer and its chat templates."""

from __future__ import annotations

import json
from typing import Any

from rule_case import Case, error, info, passes, warning
from small_model import TEMPLATE, Edit, added, all_of, config, gone, put, same, tokenizer, tokens


def template(text: Any) -> Edit:
    return tokens(chat_template=text)


def vocabulary(*extra: dict[str, Any], size: int = 16, **more: int) -> Edit:
    return put("tokenizer.json", tokenizer(size, list(extra), **more))


def unigram(unknown: int) -> dict[str, Any]:
    pieces = [[token, 0.0] for token in ("<unk>", "<s>", "</s>", *(f"w{number}" for number in range(3, 16)))]
    return {**tokenizer(), "model": {"type": "Unigram", "vocab": pieces, "unk_id": unknown}}


def step(place: str, **fields: Any) -> Edit:
    """One step around the model of the small tokenizer."""
    return put("tokenizer.json", {**tokenizer(), place: fields})


def split(pattern: object) -> Edit:
    return step("pre_tokenizer", type="Split", pattern=pattern, behavior="Isolated", invert=False)


def byte_pair(merges: list[Any], **fields: Any) -> Edit:
    """A BPE of a, b and ab."""
    vocab = {token: number for number, token in enumerate(("<unk>", "<s>", "</s>", "a", "b", "ab"))}
    return put("tokenizer.json", {**tokenizer(), "model": {"type": "BPE", "vocab": vocab, "merges": merges, **fields}})


def framed(token: str, number: int) -> Edit:
    """A post-processor that begins each text with `token`, and knows `<s>` by that number."""
    begin, text = {"SpecialToken": {"id": token, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}
    known = {"<s>": {"id": "<s>", "ids": [number], "tokens": ["<s>"]}}
    return step("post_processor", type="TemplateProcessing", single=[begin, text], pair=[text], special_tokens=known)


def without_fast(kind: str, **files: str) -> Edit:
    """No tokenizer.json, a class, and the files that are there in its place."""
    beside = [put(name.replace("_", "."), text) for name, text in files.items()]
    return all_of(gone("tokenizer.json"), tokens(tokenizer_class=kind), *beside)


UNTYPED = {"type": "Sequence", "pretokenizers": [{"type": "Whitespace"}, {"type": "Nope"}]}

RAISES_ON_SYSTEM = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}" + TEMPLATE

TOKENIZER: list[Case] = [
    error("HB501", "no JSON", put("tokenizer.json", "{oops")),
    error("HB501", "a list", put("tokenizer.json", [])),
    error("HB501", "neither sentencepiece nor tiktoken", all_of(gone("tokenizer.json"), put("tokenizer.model", "x"))),
    warning("HB501", "a page beside", put("tokenizer.model", "<!DOCTYPE html>")),
    warning("HB501", "nothing beside", put("merges.txt", "")),
    passes("HB501", "words beside", put("vocab.txt", "a\nb\n")),
    passes("HB501", "the small model", same),
    info("HB502", "none", all_of(gone("tokenizer.json"), gone("tokenizer_config.json"))),
    passes("HB502", "there", same),
    error("HB503", "two added tokens", vocabulary(added(16, "<x>"), added(16, "<y>"))),
    error("HB503", "two words", vocabulary(again=3)),
    warning("HB503", "one token with two ids", vocabulary(added(14, "<x>"), added(15, "<x>"), size=14)),
    warning("HB503", "an added token over a word", vocabulary(added(9, "<x>"))),
    passes("HB503", "the word itself added", vocabulary(added(9, "w9"))),
    error("HB504", "four more", vocabulary(size=20)),
    warning("HB504", "one that only a list beside has", put("added_tokens.json", {"<pad>": 16})),
    error("HB504", "a frame with an id past the table", framed("<s>", 99)),
    passes("HB504", "a frame", framed("<s>", 1)),
    error("HB504", "one padding token", vocabulary(added(16, "<pad>"))),
    passes("HB504", "fewer", vocabulary(size=12)),
    warning("HB505", "three missing", vocabulary(added(15, "<x>"), size=12)),
    passes("HB505", "none missing", same),
    error("HB506", "an end past the table", config(eos_token_id=16)),
    error("HB506", "padding past the table", put("generation_config.json", {"pad_token_id": 99})),
    error("HB506", "an end in quotes", put("generation_config.json", {"eos_token_id": "2"})),
    passes("HB506", "padding of -1", config(pad_token_id=-1)),
    warning("HB507", "another end", put("generation_config.json", {"eos_token_id": 5})),
    warning("HB507", "an end that only one file lists", put("generation_config.json", {"eos_token_id": [2, 9]})),
    warning("HB507", "no end in the tokenizer", tokens(drop="eos_token")),
    warning("HB507", "another token in the tokenizer", tokens(eos_token="<s>")),
    passes("HB507", "the same end", put("generation_config.json", {"eos_token_id": [2]})),
    passes(
        "HB507", "padding as a second end", put("generation_config.json", {"eos_token_id": [2, 0], "pad_token_id": 0})
    ),
    passes("HB507", "no text is written", all_of(config(architectures=["LlamaModel"], eos_token_id=5))),
    warning("HB514", "another beginning", config(bos_token_id=5)),
    info("HB514", "another padding", all_of(config(pad_token_id=5), tokens(pad_token="<unk>"))),
    passes("HB514", "the same", same),
    passes("HB514", "none in the tokenizer", all_of(config(bos_token_id=5), tokens(drop="bos_token"))),
    passes("HB514", "no text is written", config(architectures=["LlamaModel"], bos_token_id=5)),
    warning("HB508", "eight", tokens(model_max_length=8)),
    warning("HB508", "less than none", tokens(model_max_length=-1)),
    passes("HB508", "two padding positions", tokens(model_max_length=30)),
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
    error("HB512", "an empty object", put("tokenizer.json", {})),
    error("HB512", "no model", put("tokenizer.json", {"added_tokens": []})),
    error("HB512", "a model nobody has", put("tokenizer.json", {**tokenizer(), "model": {"type": "Own", "vocab": {}}})),
    error("HB512", "a negative id", vocabulary(again=-1)),
    error("HB512", "an id in quotes", vocabulary({**added(15, "<x>"), "id": "15"}, size=15)),
    error("HB512", "an added token that does not say what it is", vocabulary({"id": 15, "content": "<x>"}, size=15)),
    error("HB512", "an unknown key", put("tokenizer.json", {**tokenizer(), "extra": 1})),
    error("HB512", "a text as a step", put("tokenizer.json", {**tokenizer(), "normalizer": "NFC"})),
    error("HB512", "unk_id past the vocabulary", put("tokenizer.json", unigram(99))),
    error("HB512", "a normalizer nobody has", step("normalizer", type="Nope")),
    error("HB512", "a decoder nobody has", step("decoder", type="Nope")),
    error("HB512", "a post-processor nobody has", step("post_processor", type="Nope")),
    error("HB512", "a step in a sequence nobody has", step("pre_tokenizer", **UNTYPED)),
    error("HB512", "a step without a field", step("normalizer", type="Prepend")),
    error("HB512", "a step with a text for a flag", step("pre_tokenizer", type="Digits", individual_digits="no")),
    error("HB512", "a class that is not closed", split({"Regex": "(["})),
    error("HB512", "a group that is not closed", split({"Regex": "(a|b"})),
    error("HB512", "a pattern of no kind", split("a")),
    passes("HB512", "brackets that stand for themselves", split({"Regex": r"[^\]\s(\p{L}]+|[]a]|\(|[[a-z]&&[^x]]"})),
    passes("HB512", "two patterns", split({"Regex": "(?i:'s|'t)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}++"})),
    error("HB512", "a merge of an unknown token", byte_pair([["a", "zz"]])),
    error("HB512", "a merge to an unknown token", byte_pair(["b a"])),
    error("HB512", "a merge of three parts", byte_pair(["a b ab"])),
    error("HB512", "merges of two styles", byte_pair(["a b", ["a", "b"]])),
    error("HB512", "dropout of two", byte_pair(["a b"], dropout=2.0)),
    error("HB512", "a flag of the model that is a text", byte_pair(["a b"], byte_fallback="yes")),
    passes("HB512", "a merge", byte_pair([["a", "b"]], dropout=None)),
    passes("HB512", "a merge in a text", byte_pair(["#version: 0.2", "a b"])),
    error("HB512", "NaN as a score", put("tokenizer.json", json.dumps(unigram(0)).replace("0.0", "NaN", 1))),
    error("HB512", "a frame of an unknown token", framed("<zz>", 1)),
    passes("HB512", "a frame", framed("<s>", 1)),
    error("HB512", "a text as auto_map", tokens(auto_map="x")),
    passes("HB512", "a Unigram", put("tokenizer.json", unigram(0))),
    error("HB512", "a number as eos_token", tokens(eos_token=2)),
    error("HB512", "a length in quotes", tokens(model_max_length="32")),
    error("HB512", "a number as tokenizer_class", tokens(tokenizer_class=3)),
    error("HB512", "a text as id", put("added_tokens.json", {"<x>": "16"})),
    error("HB512", "a list of ids", tokens(added_tokens_decoder=[1])),
    passes("HB512", "a token as an object", tokens(eos_token={"__type": "AddedToken", "content": "</s>"})),
    passes("HB512", "the small model", same),
    error("HB513", "padding past the embedding", tokens(pad_token="<pad>")),
    warning(
        "HB513",
        "padding in an untrained row",
        all_of(vocabulary(size=12), config(eos_token_id=2), tokens(pad_token="<p>")),
    ),
    passes("HB513", "listed beside", all_of(tokens(pad_token="<pad>"), put("added_tokens.json", {"<pad>": 15}))),
    passes("HB513", "in the vocabulary", tokens(pad_token="w3")),
    error("HB515", "words without merges", without_fast("Qwen2Tokenizer", vocab_json="{}")),
    error("HB515", "merges without words", without_fast("GPT2TokenizerFast", merges_txt="a b")),
    error("HB515", "words for a class that reads none", without_fast("PreTrainedTokenizerFast", vocab_txt="a")),
    passes("HB515", "both", without_fast("Qwen2Tokenizer", vocab_json="{}", merges_txt="a b")),
    passes("HB515", "a class of words alone", without_fast("BertTokenizer", vocab_txt="a")),
    passes("HB515", "tokenizer.json", same),
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
    warning("HB600", "an empty list", template([])),
    warning("HB600", "none called default", template([{"name": "rag", "template": TEMPLATE}])),
    info("HB600", "a family from before", all_of(tokens(drop="chat_template"), config(model_type="gpt2"))),
    passes("HB600", "a translator", all_of(tokens(drop="chat_template"), config(is_encoder_decoder=True))),
    passes("HB600", "a family that answers", all_of(tokens(drop="chat_template"), config(model_type="whisper"))),
    passes("HB600", "in a file", all_of(tokens(drop="chat_template"), put("chat_template.jinja", TEMPLATE))),
    passes("HB600", "no tokenizer", all_of(gone("tokenizer.json"), gone("tokenizer_config.json"))),
    error("HB601", "an unknown filter", template("{{ messages | nosuchfilter }}")),
    error("HB601", "a tag that is not closed", template("{% for m in messages %}")),
    error("HB601", "a number", template(7)),
    error("HB601", "a list of numbers", template([1])),
    error("HB601", "an entry without a name", template([{"template": TEMPLATE}])),
    error("HB601", "an object of numbers", template({"default": 3})),
    error("HB601", "a page", put("chat_template.jinja", "<!DOCTYPE html>")),
    error("HB601", "UTF-16", put("chat_template.jinja", TEMPLATE.encode("utf-16"))),
    error("HB601", "Latin-1", put("chat_template.jinja", TEMPLATE.encode() + b"\xe9")),
    warning("HB601", "two megabytes in a field", template("{# " + "x" * 2**21 + " #}" + TEMPLATE)),
    warning("HB601", "two megabytes", put("chat_template.jinja", "x" * 2**21)),
    passes("HB601", "an object of templates", template({"default": TEMPLATE})),
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
    error("HB604", "by attr, in two pieces", template("{{ ''|attr('__cl' ~ 'ass__') }}" + TEMPLATE)),
    error("HB604", "by key, in two pieces", template("{{ ''['__cl' ~ 'ass__'] }}" + TEMPLATE)),
    error("HB604", "by format, in two pieces", template("{{ ('{0.__cl' ~ 'ass__}').format(1) }}" + TEMPLATE)),
    error("HB604", "by map, in two pieces", template("{{ ['']|map('attr', '__cl' ~ 'ass__')|list }}" + TEMPLATE)),
    error("HB604", "the context", template("{{ self._TemplateReference__context }}" + TEMPLATE)),
    passes("HB604", "a change of the messages", template("{{ messages.append(1) }}" + TEMPLATE)),
    passes("HB604", "underscores in a word", template(TEMPLATE + "{{ my__name }}")),
    error("HB605", "a method of nothing", template("{{ nothing.at.all }}")),
    error("HB605", "a change of the messages", template("{{ messages.append(1) }}" + TEMPLATE)),
    error("HB605", "another file", template("{% include '/etc/passwd' %}" + TEMPLATE)),
    error("HB605", "itself again", template("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}")),
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
