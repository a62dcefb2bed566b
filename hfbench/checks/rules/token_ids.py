"""The ids of tokens: against one another, against the embedding, and against the configuration."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.checks.base import Found, passed_on, rule
from hfbench.checks.subject import Subject
from hfbench.checks.tensor_names import EXTRA_ROWS
from hfbench.checks.token_ids import added_entries, added_ids, ids_beside, tokens_without_id
from hfbench.checks.tokenizer_steps import inserted_ids
from hfbench.models.problem import Severity, counted, listed, quoted

MOST_SHOWN = 5

MET = ("bos_token", "eos_token", "unk_token", "pad_token")
"""Roles whose tokens every text meets."""


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
    last = added_ids(subject)
    for token, number in [each for each in added_entries(subject) if last[each[0]] != each[1]][:MOST_SHOWN]:
        message = f"the added token {quoted(token)} has the ids {number:,} and {last[token]:,}"
        yield Found(message=message, file="tokenizer.json", evidence={"token": token}, severity="warning")


@rule("HB504", "ids-beyond-the-embedding")
def ids_beyond_the_embedding(subject: Subject) -> Iterator[Found]:
    """The tokenizer has ids for which the embedding has no row.

    Why: such a token makes the model read outside its table: an assertion on the GPU, or garbage.
    Remedy: add rows to the embedding, or remove the tokens.
    """
    rows = _rows(subject)
    if not rows:
        return
    highest = {name: number for _, number, name in sorted(ids_beside(subject), key=lambda each: each[1])}
    if subject.tokenizer.highest_id is not None:
        highest[_vocabulary_file(subject)] = subject.tokenizer.highest_id
    beyond = {name: number for name, number in highest.items() if number >= rows}
    if beyond:
        name = max(beyond, key=lambda each: (beyond[each], each == _vocabulary_file(subject)))
        special = [f"{each.content}" for each in subject.tokenizer.special_tokens.values() if (each.id or 0) >= rows]
        yield Found(
            message=f"ids go up to {beyond[name]:,}, {_table(subject)} has {rows:,} rows",
            file=name,
            evidence={"highest_id": beyond[name], "rows": rows, "special_tokens": special},
            severity=None if name == _vocabulary_file(subject) else "warning",  # of a list that need not be used
        )
    for token, number in dict.fromkeys(inserted_ids(subject.tokenizer_json)):
        if number >= rows:
            message = (
                f"the post_processor inserts {quoted(token)} as id {number:,}, {_table(subject)} has {rows:,} rows"
            )
            yield Found(message=message, file="tokenizer.json", evidence={"token": token, "id": number})


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
    table = subject.places.embedding if subject.raw else None
    rows = table.shape[0] if table is not None else subject.config.vocab
    for name, values in (("config.json", subject.text.values), ("generation_config.json", subject.generation_config)):
        for key in ("bos_token_id", "eos_token_id", "pad_token_id"):
            if name != "config.json" and not is_ids(values.get(key)):
                yield Found(message=f"{key} is {quoted(values[key])}, a token id is needed", file=name)
            beyond = [number for number in ids_of(values.get(key)) if rows and number >= rows]
            if beyond:
                more = f", and {counted(len(beyond) - 1, 'further id')} of it" if len(beyond) > 1 else ""
                message = f"{key} is {beyond[0]:,}{more}, the vocabulary has {rows:,} tokens"
                yield Found(message=message, file=name, evidence={"key": key, "ids": beyond[:20], "rows": rows})
            for number in ids_of(values.get(key))[:MOST_SHOWN]:
                if number < 0 and not (key == "pad_token_id" and number == -1):
                    yield Found(message=f"{key} is {number}", file=name, severity="warning")


@rule("HB507", "end-tokens-differ", severity="warning")
def end_tokens_differ(subject: Subject) -> Iterator[Found]:
    """The configuration, generation_config.json and the tokenizer do not name the same end of text.

    Why: engines read different ones; a model that ends its turn with a token nobody waits for talks on.
    Remedy: name every end token in generation_config.json, and the one of the chat template in the tokenizer.
    """
    if not subject.writes_text:
        return
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


@rule("HB510", "added-tokens-differ", severity="warning")
def added_tokens_differ(subject: Subject) -> Iterator[Found]:
    """An added token has one id in tokenizer.json and another in tokenizer_config.json or added_tokens.json.

    Why: the fast and the slow tokenizer then give different ids for the same text.
    Remedy: write the same id in all files.
    """
    fast = added_ids(subject)
    others = [((token, number), name) for token, number, name in ids_beside(subject)]
    differing = [(token, name) for (token, number), name in others if token in fast and fast[token] != number]
    for name in dict.fromkeys(name for _, name in differing):
        tokens = [token for token, file in differing if file == name]
        yield Found(message=f"other ids than in tokenizer.json for {listed(tokens)}", file=name)


@rule("HB513", "special-token-without-id", severity="warning")
def special_token_without_id(subject: Subject) -> Iterator[Found]:
    """A special token is in no vocabulary.

    Why: transformers gives it the next free id, for which the embedding has no trained row, or none at all.
    Remedy: name a token that the vocabulary holds.
    """
    rows, size = _rows(subject), subject.tokenizer.vocab_size
    for place, (role, token) in enumerate(tokens_without_id(subject)):
        number = (size or 0) + place
        beyond = bool(rows) and number >= (rows or 0)
        ending = f", and the embedding has {rows:,} rows" if beyond else ""
        yield Found(
            message=f"{role} {quoted(token)} is in no vocabulary; it would become id {number:,}{ending}",
            file="tokenizer_config.json",
            evidence={"role": role, "token": token, "id": number},
            severity="error" if beyond and subject.places.embedding and role in MET else None,
        )


@rule("HB514", "special-tokens-differ", severity="warning")
def special_tokens_differ(subject: Subject) -> Iterator[Found]:
    """The configuration and the tokenizer do not name the same beginning of text, or the same padding.

    Why: the tokenizer puts its own token first, and engines that begin a text themselves put the other one.
    Remedy: write the id of the tokenizer's token into the configuration.
    """
    for role in ("bos_token", "pad_token") if subject.writes_text else ():
        token, key = subject.tokenizer.special_tokens.get(role), f"{role}_id"
        said = ids_of(subject.raw.get(key)) or ids_of(subject.text.values.get(key))
        if token is not None and token.id is not None and said and token.id not in said:
            message = f"{key} is {said[0]:,}, the tokenizer's {quoted(token.content)} has the id {token.id:,}"
            severity: Severity | None = "info" if role == "pad_token" else None
            yield Found(message=message, file="config.json", evidence={"role": role}, severity=severity)


def is_ids(value: object) -> bool:
    """True for null, an id, or a list of ids."""
    given = value if isinstance(value, list) else [value]
    return value is None or all(type(each) is int for each in given)


def ids_of(value: object) -> list[int]:
    """The ids that a field of one id or a list of them names."""
    given = value if isinstance(value, list) else [value]
    return [each for each in given if type(each) is int]


def _shared_ids(subject: Subject) -> Iterator[tuple[int, str, str, Severity]]:
    """Ids that two tokens of the vocabulary have, or a token of it and an added one, which is then numbered anew."""
    model = subject.tokenizer_json.get("model")
    vocab = model.get("vocab") if isinstance(model, dict) else None
    added, shared = added_entries(subject), list[tuple[int, str, str, Severity]]()
    if not isinstance(vocab, dict):
        return iter(())
    numbers = [number for number in vocab.values() if type(number) is int]
    whole = len(set(numbers)) == len(vocab)
    watched = {number for _, number in added} if whole else None  # then only the ids of added tokens can be shared
    owner: dict[int, str] = {}
    for token, number in vocab.items():
        looked_at = type(number) is int and (watched is None or number in watched)
        if looked_at and owner.setdefault(number, token) != token:
            shared.append((number, owner[number], token, "error"))
    for token, number in added:
        if owner.get(number, token) != token:
            shared.append((number, owner[number], token, "warning"))
    return iter(shared[:MOST_SHOWN])


def _rows(subject: Subject) -> int | None:
    """Rows of the embedding; what the configuration says of it where there are no weights."""
    table, config = subject.places.embedding, subject.config
    if table is not None:
        return table.shape[0]
    if subject.checkpoint.columns.names or config.vocab is None:
        return None
    return config.vocab + EXTRA_ROWS.get(config.model_type or "", 0)


def _table(subject: Subject) -> str:
    return "the embedding" if subject.places.embedding else "an embedding of this configuration"


def _vocabulary_file(subject: Subject) -> str:
    beside = ("tokenizer_config.json", "special_tokens_map.json")
    return next((name for name in subject.tokenizer.files if name not in beside), "tokenizer.json")


def _ids(ids: set[int]) -> str:
    return ", ".join(f"{each:,}" for each in sorted(ids)[:6])
