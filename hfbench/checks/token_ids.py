"""The ids that the several files of a tokenizer give its tokens, beside those of the vocabulary itself."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.checks.subject import Subject


def ids_beside(subject: Subject) -> Iterator[tuple[str, int, str]]:
    """Token, id and file of every token that added_tokens.json and tokenizer_config.json list."""
    for token, number in subject.json("added_tokens.json").items():
        if type(number) is int:
            yield token, number, "added_tokens.json"
    decoder = subject.tokenizer_config.get("added_tokens_decoder")
    for key, entry in decoder.items() if isinstance(decoder, dict) else ():
        content = entry.get("content") if isinstance(entry, dict) else None
        if isinstance(content, str) and key.isascii() and key.isdigit() and len(key) < 10:
            yield content, int(key), "tokenizer_config.json"


def added_entries(subject: Subject) -> list[tuple[str, int]]:
    """Every added token of tokenizer.json and its id, in the order of the file."""
    entries = subject.tokenizer_json.get("added_tokens")
    return [
        (entry["content"], entry["id"])
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, dict) and isinstance(entry.get("content"), str) and type(entry.get("id")) is int
    ]


def added_ids(subject: Subject) -> dict[str, int]:
    """Id of every added token of tokenizer.json."""
    return dict(added_entries(subject))


def tokens_without_id(subject: Subject) -> list[tuple[str, str]]:
    """Role and text of the special tokens that no file of a fast tokenizer gives an id."""
    model = subject.tokenizer_json.get("model")
    vocab = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(vocab, (dict, list)) or not vocab:
        return []
    listed = {each[0] for each in vocab if isinstance(each, list) and each} if isinstance(vocab, list) else vocab
    known = {*added_ids(subject), *(token for token, _, _ in ids_beside(subject))}
    named = [(role, token.content) for role, token in subject.tokenizer.special_tokens.items()]
    several = subject.tokenizer_config.get("additional_special_tokens")
    for each in several if isinstance(several, list) else ():
        content = each.get("content") if isinstance(each, dict) else each
        if isinstance(content, str):
            named.append(("additional_special_tokens", content))
    return [(role, token) for role, token in named if token and token not in known and token not in listed]
