"""The tokenizer's files, its ids against the embedding, and its special tokens against the configuration."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.checks.base import Found, passed_on, rule
from hfbench.checks.known import known_tokenizer, transformers
from hfbench.checks.subject import Subject
from hfbench.checks.tensor_names import embedding
from hfbench.models.problem import Severity, counted, listed, quoted

MOST_SHOWN = 5

NEEDS_SENTENCEPIECE = ("gemma", "gemma2", "gemma3", "gemma3_text", "gemma3n", "gemma3n_text", "internlm2", "phi3")
"""Families for which the converter of llama.cpp reads tokenizer.model."""


@rule("HB501", "broken-tokenizer-file", codes=("tokenizer_json", "tokenizer_model"))
def broken_tokenizer_file(subject: Subject) -> Iterator[Found]:
    """A file of the tokenizer cannot be read as what it is called.

    Why: the tokenizer fails to load, or another, slower or different one is taken in its place.
    Remedy: fetch the file again.
    """
    yield from passed_on(subject, "tokenizer_json", "tokenizer_model")


@rule("HB502", "no-tokenizer", severity="info")
def no_tokenizer(subject: Subject) -> Iterator[Found]:
    """The folder holds no vocabulary.

    Why: the weights can be loaded, but no text can be turned into ids.
    Remedy: fetch the tokenizer's files, or name another tokenizer when you load the model.
    """
    if subject.raw and not subject.has_tokenizer:
        yield Found(message="there is no tokenizer.json, tokenizer.model, vocab.json or vocab.txt")


@rule("HB503", "duplicate-token-id", codes=("tokenizer_duplicate_id",))
def duplicate_token_id(subject: Subject) -> Iterator[Found]:
    """Two tokens have one id.

    Why: the model cannot tell them apart, and decoding gives one of the two by chance.
    Remedy: give the second token an id of its own, with a row in the embedding.
    """
    yield from passed_on(subject, "tokenizer_duplicate_id")
    for number, first, second, severity in _shared_ids(subject):
        message = f"{quoted(first)} and {quoted(second)} both have the id {number:,}"
        evidence = {"id": number, "tokens": [first, second]}
        yield Found(message=message, file="tokenizer.json", evidence=evidence, severity=severity)


@rule("HB504", "ids-beyond-the-embedding")
def ids_beyond_the_embedding(subject: Subject) -> Iterator[Found]:
    """The tokenizer has ids for which the embedding has no row.

    Why: such a token makes the model read outside its table: an assertion on the GPU, or garbage.
    Remedy: add rows to the embedding, or remove the tokens.
    """
    highest, table = subject.tokenizer.highest_id, embedding(subject)
    rows = table.shape[0] if table is not None else None
    if rows is None and not subject.checkpoint.columns.names:
        rows = subject.config.vocab
    if highest is not None and rows and highest >= rows:
        beyond = [f"{each.content}" for each in subject.tokenizer.special_tokens.values() if (each.id or 0) >= rows]
        yield Found(
            message=f"ids go up to {highest:,}, the embedding has {rows:,} rows",
            file=_vocabulary_file(subject),
            evidence={"highest_id": highest, "rows": rows, "special_tokens": beyond},
        )


@rule("HB505", "gap-in-token-ids", severity="warning")
def gap_in_token_ids(subject: Subject) -> Iterator[Found]:
    """Some ids below the highest belong to no token.

    Why: a model that produces such an id yields nothing, and tools that add tokens may number them into the gap.
    Remedy: number the added tokens without a gap.
    """
    facts = subject.tokenizer
    if facts.highest_id is not None and facts.vocab_size is not None and subject.has("tokenizer.json"):
        gap = facts.highest_id + 1 - facts.vocab_size
        if gap > 0:
            message = f"{counted(gap, 'id')} below {facts.highest_id:,} belong to no token"
            yield Found(message=message, file="tokenizer.json", evidence={"missing": gap})


@rule("HB506", "special-id-beyond-vocabulary")
def special_id_beyond_vocabulary(subject: Subject) -> Iterator[Found]:
    """A special id of the configuration lies past the vocabulary.

    Why: generation never meets it, or padding with it reads outside the embedding.
    Remedy: write the id that the tokenizer gives the token.
    """
    table = embedding(subject) if subject.raw else None
    rows = table.shape[0] if table is not None else subject.config.vocab
    for name, values in (("config.json", subject.text.values), ("generation_config.json", subject.generation_config)):
        for key in ("bos_token_id", "eos_token_id", "pad_token_id"):
            for number in ids_of(values.get(key)):
                if rows and number >= rows:
                    message = f"{key} is {number:,}, the vocabulary has {rows:,} tokens"
                    yield Found(message=message, file=name, evidence={"key": key, "id": number, "rows": rows})
                elif number < 0 and not (key == "pad_token_id" and number == -1):
                    yield Found(message=f"{key} is {number}", file=name, severity="warning")


@rule("HB507", "end-tokens-differ", severity="warning")
def end_tokens_differ(subject: Subject) -> Iterator[Found]:
    """The configuration, generation_config.json and the tokenizer do not name the same end of text.

    Why: engines read different ones; a model that ends its turn with a token nobody waits for talks on.
    Remedy: name every end token in generation_config.json, and the one of the chat template in the tokenizer.
    """
    config = set(ids_of(subject.raw.get("eos_token_id")) or ids_of(subject.text.values.get("eos_token_id")))
    generation = set(ids_of(subject.generation_config.get("eos_token_id")))
    token = subject.tokenizer.special_tokens.get("eos_token")
    harmless = {each.id for role, each in subject.tokenizer.special_tokens.items() if role == "pad_token"}
    harmless |= set(ids_of(subject.generation_config.get("pad_token_id")))
    if config and generation and config != generation and (config ^ generation) - harmless:
        message = f"config.json ends at {_ids(config)}, generation_config.json at {_ids(generation)}"
        yield Found(message=message, file="generation_config.json")
    named = config | generation
    if token is not None and token.id is not None and named and token.id not in named:
        message = f"the tokenizer's {quoted(token.content)} has the id {token.id:,}, the configuration ends at "
        yield Found(message=message + _ids(named), file="tokenizer_config.json")
    elif token is None and named and subject.has_tokenizer and subject.has("tokenizer_config.json"):
        message = f"the tokenizer names no eos_token, the configuration ends at {_ids(named)}"
        yield Found(message=message, file="tokenizer_config.json")


@rule("HB508", "tokenizer-length-smaller", severity="warning")
def tokenizer_length_smaller(subject: Subject) -> Iterator[Found]:
    """The tokenizer's model_max_length is smaller than the context of the model.

    Why: some engines and the truncation of transformers take the smaller one.
    Remedy: write the context as model_max_length.
    """
    length, context = subject.tokenizer.model_max_length, subject.config.context
    if length is not None and context is not None and length < context:
        message = f"model_max_length is {length:,}, the context is {context:,}"
        yield Found(message=message, file="tokenizer_config.json", evidence={"length": length, "context": context})


@rule("HB509", "no-sentencepiece-for-gguf", severity="info")
def no_sentencepiece_for_gguf(subject: Subject) -> Iterator[Found]:
    """There is tokenizer.json but no tokenizer.model.

    Why: the converter to GGUF reads tokenizer.model for this family and stops without it.
    Remedy: copy tokenizer.model from the base model before you convert.
    """
    family = subject.config.model_type
    if family in NEEDS_SENTENCEPIECE and subject.has("tokenizer.json") and not subject.has("tokenizer.model"):
        message = f"there is no tokenizer.model, which the converter to GGUF wants for {family}"
        yield Found(message=message, file="tokenizer.json")


@rule("HB510", "added-tokens-differ", severity="warning")
def added_tokens_differ(subject: Subject) -> Iterator[Found]:
    """An added token has one id in tokenizer.json and another in tokenizer_config.json or added_tokens.json.

    Why: the fast and the slow tokenizer then give different ids for the same text.
    Remedy: write the same id in all files.
    """
    fast = _added(subject)
    others = [(each, "added_tokens.json") for each in subject.json("added_tokens.json").items()]
    decoder = subject.tokenizer_config.get("added_tokens_decoder")
    for number, entry in decoder.items() if isinstance(decoder, dict) else ():
        if isinstance(entry, dict) and number.isascii() and number.isdigit() and len(number) < 10:
            others.append(((str(entry.get("content")), int(number)), "tokenizer_config.json"))
    differing = [(token, name) for (token, number), name in others if token in fast and fast[token] != number]
    for name in dict.fromkeys(name for _, name in differing):
        tokens = [token for token, file in differing if file == name]
        yield Found(message=f"other ids than in tokenizer.json for {listed(tokens)}", file=name)


@rule("HB511", "unknown-tokenizer-class", severity="warning")
def unknown_tokenizer_class(subject: Subject) -> Iterator[Found]:
    """No release of transformers has the tokenizer_class, and the repository brings no code for it.

    Why: transformers falls back to what tokenizer.json says, or refuses where there is none.
    Remedy: write PreTrainedTokenizerFast, or the class of the family.
    """
    name = subject.tokenizer.tokenizer_class
    if name is None or known_tokenizer(name) or subject.remote_code.get("AutoTokenizer") or subject.has("tekken.json"):
        return
    severity: Severity | None = None if subject.has("tokenizer.json") else "error"
    message = f"tokenizer_class is {quoted(name)}, which {transformers().title} does not have"
    yield Found(message=message, file="tokenizer_config.json", severity=severity)


def ids_of(value: object) -> list[int]:
    """The ids that a field of one id or a list of them names."""
    given = value if isinstance(value, list) else [value]
    return [each for each in given if type(each) is int]


def _shared_ids(subject: Subject) -> Iterator[tuple[int, str, str, Severity]]:
    """Ids that two tokens of the vocabulary have, or a token of it and an added one, which is then numbered anew."""
    model = subject.tokenizer_json.get("model")
    vocab = model.get("vocab") if isinstance(model, dict) else None
    owner: dict[int, str] = {}
    shared: list[tuple[int, str, str, Severity]] = []
    for token, number in vocab.items() if isinstance(vocab, dict) else ():
        if type(number) is int and owner.setdefault(number, token) != token:
            shared.append((number, owner[number], token, "error"))
    for token, number in _added(subject).items():
        if owner.get(number, token) != token:
            shared.append((number, owner[number], token, "warning"))
    return iter(shared[:MOST_SHOWN])


def _added(subject: Subject) -> dict[str, int]:
    entries = subject.tokenizer_json.get("added_tokens")
    return {
        entry["content"]: entry["id"]
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, dict) and isinstance(entry.get("content"), str) and type(entry.get("id")) is int
    }


def _vocabulary_file(subject: Subject) -> str:
    beside = ("tokenizer_config.json", "special_tokens_map.json")
    return next((name for name in subject.tokenizer.files if name not in beside), "tokenizer.json")


def _ids(ids: set[int]) -> str:
    return ", ".join(f"{each:,}" for each in sorted(ids)[:6])
