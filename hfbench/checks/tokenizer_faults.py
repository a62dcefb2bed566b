"""What the tokenizer libraries refuse in the files of a tokenizer: kinds of models, types of fields, unknown sides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from hfbench.checks.tokenizer_steps import STEPS, step_faults
from hfbench.models.problem import quoted

NEEDED: Mapping[str, tuple[str, ...]] = {
    "BPE": ("vocab", "merges"),
    "WordLevel": ("vocab", "unk_token"),
    "WordPiece": ("vocab", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word"),
    "Unigram": ("vocab",),
}
"""Models of tokenizers 0.23 and the fields they need."""

TYPES: Mapping[str, Mapping[str, str]] = {
    "BPE": {
        "unk_token": "text",
        "continuing_subword_prefix": "text",
        "end_of_word_suffix": "text",
        "fuse_unk": "flag",
        "byte_fallback": "flag",
        "ignore_merges": "flag",
    },
    "WordLevel": {"unk_token": "text"},
    "WordPiece": {"unk_token": "text", "continuing_subword_prefix": "text", "max_input_chars_per_word": "count"},
    "Unigram": {"byte_fallback": "flag"},
}
"""What the fields of these models must be, where they are not null."""

PARTS = frozenset({"version", "truncation", "padding", "added_tokens", "model", *STEPS})
VERSION = "1.0"

FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")

ROLES = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token")

U32 = 2**32


def fast_faults(content: Mapping[str, Any]) -> Iterator[str]:
    """What keeps an object from being a tokenizer.json, the first fault of each part."""
    odd = sorted(key for key in content if key not in PARTS)
    if odd:
        yield f"there is a key {quoted(odd[0])}, which tokenizers does not know"
    if content.get("version", VERSION) != VERSION:
        yield f"the version is {quoted(content['version'])}, tokenizers reads {VERSION}"
    yield from step_faults(content)
    if "added_tokens" not in content:
        yield "there are no added_tokens"
    elif (fault := _added_fault(content["added_tokens"])) is not None:
        yield fault
    if "model" not in content:
        yield "there is no model"
    elif (fault := _model_fault(content["model"])) is not None:
        yield fault


def config_faults(content: Mapping[str, Any]) -> Iterator[str]:
    """What keeps an object from being a tokenizer_config.json or a special_tokens_map.json."""
    for role in ROLES:
        value = content.get(role)
        if value is not None and not isinstance(value, str) and not _is_token(value):
            yield f"{role} is no text"
    several = content.get("additional_special_tokens", content.get("extra_special_tokens"))
    listed = isinstance(several, list) and all(isinstance(each, str) or _is_token(each) for each in several)
    if several is not None and not isinstance(several, dict) and not listed:
        yield "additional_special_tokens is no list of texts"
    decoder = content.get("added_tokens_decoder")
    if decoder is not None and not _is_decoder(decoder):
        yield "added_tokens_decoder is no object of tokens by their ids"
    for side in ("padding_side", "truncation_side"):
        if content.get(side) not in (None, "left", "right"):
            yield f"{side} is {quoted(content[side])}, not 'left' or 'right'"
    length = content.get("model_max_length")
    if length is not None and not isinstance(length, (int, float)):
        yield f"model_max_length is {quoted(length)}, a number is needed"
    if isinstance(content.get("auto_map"), (str, int, float)):
        yield "auto_map is no object of classes by their roles"
    if content.get("tokenizer_class") is not None and not isinstance(content["tokenizer_class"], str):
        yield "tokenizer_class is no text"


def _added_fault(entries: object) -> str | None:
    if not isinstance(entries, list):
        return "added_tokens is no list"
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("content"), str):
            return "an added token has no content"
        if not _is_id(entry.get("id")):
            return f"the added token {quoted(entry['content'])} has the id {quoted(entry.get('id'))}"
        lacking = [flag for flag in FLAGS if not isinstance(entry.get(flag), bool)]
        if lacking:
            return f"the added token {quoted(entry['content'])} does not say whether it is {lacking[0]}"
    return None


def _model_fault(model: object) -> str | None:
    if not isinstance(model, dict):
        return "the model is no object"
    kind, vocab = model.get("type"), model.get("vocab")
    if "type" in model and (not isinstance(kind, str) or kind not in NEEDED):
        return f"the type of the model is {quoted(kind)}; known are {', '.join(NEEDED)}"
    if kind is not None:
        lacking = [key for key in NEEDED[kind] if model.get(key) is None]
        if lacking:
            return f"the model has no {lacking[0]}"
        if (wrong := _wrong_field(model, kind)) is not None:
            return f"the {wrong} of the model is {quoted(model[wrong])}"
    if isinstance(vocab, dict) and kind != "Unigram":
        token = next((token for token, number in vocab.items() if not _is_id(number)), None)
        return f"the token {quoted(token)} has the id {quoted(vocab[token])}" if token is not None else _unknown(model)
    if isinstance(vocab, list) and kind in (None, "Unigram"):
        if not all(isinstance(each, list) and len(each) == 2 and isinstance(each[0], str) for each in vocab):
            return "the vocab is no list of tokens and their scores"
        odd = next((each for each in vocab if not _is_score(each[1])), None)
        if odd is not None:
            return f"the score of {quoted(odd[0])} is {quoted(odd[1])}"
        unknown = model.get("unk_id")
        beyond = unknown is not None and not (_is_id(unknown) and unknown < len(vocab))
        return f"unk_id is {quoted(unknown)}, the vocab has {len(vocab):,} tokens" if beyond else None
    return "the vocab is of another type than the model needs"


def _unknown(model: Mapping[str, Any]) -> str | None:
    token = model.get("unk_token")
    if model.get("type") in ("WordLevel", "WordPiece") and token not in model["vocab"]:
        return f"unk_token {quoted(token)} is not in the vocab"
    return None


def _wrong_field(model: Mapping[str, Any], kind: str) -> str | None:
    for name, how in TYPES[kind].items():
        value = model.get(name)
        fits = {"text": isinstance(value, str), "flag": isinstance(value, bool), "count": _is_id(value)}
        if value is not None and not fits[how]:
            return name
    dropout = model.get("dropout") if kind == "BPE" else None
    return "dropout" if dropout is not None and not (_is_score(dropout) and 0 <= dropout <= 1) else None


def _is_score(value: object) -> bool:
    """A number as JSON has them: tokenizers refuses NaN, and what is too large for a float."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return isfinite(value) if isinstance(value, float) else abs(value) < 10**300


def _is_decoder(value: object) -> bool:
    return isinstance(value, dict) and all(
        key.lstrip("-").isdecimal() and isinstance(each, dict) for key, each in value.items()
    )


def _is_token(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("content"), str)


def _is_id(value: object) -> bool:
    return type(value) is int and 0 <= value < U32
