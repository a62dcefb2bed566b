"""The steps around the model of a tokenizer.json, as tokenizers 0.23 reads them: their types and fields."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hfbench.models.problem import listed, quoted

DEEPEST = 50
"""Sequences within sequences that are followed."""

BEHAVIORS = ("Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous")
SCHEMES = ("first", "never", "always")

LONGEST_PATTERN = 2**16
"""Characters of a regular expression that is looked at."""

_SPACED = re.compile(r"\(\?[a-z]*x")
"""Turns on comments, in which brackets mean nothing."""

_BYTE_LEVEL = {"add_prefix_space": "flag", "trim_offsets": "flag", "use_regex": "flag?"}
_METASPACE = {"replacement": "character", "prepend_scheme": "scheme?", "split": "flag??", "add_prefix_space": "flag??"}
_REPLACE = {"pattern": "pattern", "content": "text"}

STEPS: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "normalizer": {
        "BertNormalizer": {
            "clean_text": "flag",
            "handle_chinese_chars": "flag",
            "strip_accents": "flag??",
            "lowercase": "flag",
        },
        "ByteLevel": {},
        "Lowercase": {},
        "NFC": {},
        "NFD": {},
        "NFKC": {},
        "NFKD": {},
        "Nmt": {},
        "Precompiled": {"precompiled_charsmap": "text"},
        "Prepend": {"prepend": "text"},
        "Replace": _REPLACE,
        "Sequence": {"normalizers": "steps"},
        "Strip": {"strip_left": "flag", "strip_right": "flag"},
        "StripAccents": {},
    },
    "pre_tokenizer": {
        "BertPreTokenizer": {},
        "ByteLevel": _BYTE_LEVEL,
        "CharDelimiterSplit": {"delimiter": "character"},
        "Digits": {"individual_digits": "flag"},
        "FixedLength": {"length": "count?"},
        "Metaspace": _METASPACE,
        "Punctuation": {"behavior": "behavior?"},
        "Sequence": {"pretokenizers": "steps"},
        "Split": {"pattern": "pattern", "behavior": "behavior", "invert": "flag"},
        "UnicodeScripts": {},
        "Whitespace": {},
        "WhitespaceSplit": {},
    },
    "post_processor": {
        "BertProcessing": {"sep": "token", "cls": "token"},
        "ByteLevel": _BYTE_LEVEL,
        "RobertaProcessing": {"sep": "token", "cls": "token"},
        "Sequence": {"processors": "steps"},
        "TemplateProcessing": {"single": "pieces", "pair": "pieces", "special_tokens": "tokens"},
    },
    "decoder": {
        "BPEDecoder": {"suffix": "text"},
        "ByteFallback": {},
        "ByteLevel": _BYTE_LEVEL,
        "CTC": {"pad_token": "text", "word_delimiter_token": "text", "cleanup": "flag"},
        "Fuse": {},
        "Metaspace": _METASPACE,
        "Replace": _REPLACE,
        "Sequence": {"decoders": "steps"},
        "Strip": {"content": "character", "start": "count", "stop": "count"},
        "WordPiece": {"prefix": "text", "cleanup": "flag"},
    },
}
"""Fields by type by step. A field may be missing where its kind ends in `?`, and be null where it ends in `??`."""


def step_faults(content: Mapping[str, Any]) -> Iterator[str]:
    """The first fault of each step of a tokenizer.json, whose steps may hold further ones."""
    for place in STEPS:
        step = content.get(place)
        if step is not None and (fault := _fault(place, step, DEEPEST)) is not None:
            yield fault


def inserted_ids(content: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """The tokens that the post-processor puts around a text, with their ids."""
    for step in _flat("post_processor", content.get("post_processor"), DEEPEST):
        pairs = [step.get(name) for name in ("sep", "cls")]
        yield from ((str(pair[0]), pair[1]) for pair in pairs if isinstance(pair, list) and _is_token(pair))
        named = step.get("special_tokens")
        used = _named(step.get("single")) | _named(step.get("pair"))
        for token, told in named.items() if isinstance(named, dict) else ():
            ids = told.get("ids") if isinstance(told, dict) and token in used else None
            yield from ((token, number) for number in (ids if isinstance(ids, list) else ()) if _is_count(number))


def odd_patterns(content: Mapping[str, Any]) -> list[str]:
    """Regular expressions of the steps that Python would not compile either, or cannot judge."""
    patterns = (step.get("pattern") for place in STEPS for step in _flat(place, content.get(place), DEEPEST))
    texts = (each.get("Regex") for each in patterns if isinstance(each, dict))
    return [each for each in texts if isinstance(each, str) and not _compiles(each)]


def _fault(place: str, step: object, levels: int) -> str | None:
    if not isinstance(step, dict) or not isinstance(step.get("type"), str):
        return f"the {place} is no object with a type"
    kind = step["type"]
    known = STEPS[place].get(kind)
    if known is None:
        return f"the {place} is of the type {quoted(kind)}; known are {listed(STEPS[place])}"
    for name, how in known.items():
        if name not in step and not how.endswith("?"):
            return f"the {place} {kind} has no {name}"
        value = step.get(name)
        if name not in step or (value is None and how.endswith("??")):
            continue
        if how == "steps" and isinstance(value, list) and levels:
            faults = (_fault(place, each, levels - 1) for each in value)
            if (fault := next(filter(None, faults), None)) is not None:
                return fault
        elif not _KINDS[how.rstrip("?")](value):
            return f"the {place} {kind} has the {name} {quoted(value)}"
        elif how == "pattern" and (open_ := _unclosed(str(step[name].get("Regex", "")))) is not None:
            return f"the {place} {kind} has the pattern {quoted(step[name]['Regex'])}, in which {open_}"
    return _own_fault(place, step)


def _own_fault(place: str, step: Mapping[str, Any]) -> str | None:
    """What a type asks of several fields together."""
    kind = step["type"]
    if kind == "Metaspace" and step.get("add_prefix_space") is False and step.get("prepend_scheme", "never") != "never":
        return f"the {place} Metaspace has add_prefix_space false and the prepend_scheme {step['prepend_scheme']}"
    if kind == "TemplateProcessing":
        lacking = (_named(step["single"]) | _named(step["pair"])) - set(step["special_tokens"])
        if lacking:
            return f"the {place} inserts {quoted(min(lacking))}, which is not among its special_tokens"
    return None


def _flat(place: str, step: object, levels: int) -> Iterator[Mapping[str, Any]]:
    """A step and all that it is a sequence of."""
    if not isinstance(step, dict):
        return
    yield step
    fields = STEPS[place].get("Sequence", {}) if step.get("type") == "Sequence" and levels else {}
    for name in fields:
        inner = step.get(name)
        for each in inner if isinstance(inner, list) else ():
            yield from _flat(place, each, levels - 1)


def _named(pieces: object) -> set[str]:
    """The special tokens that a template inserts."""
    found = (each.get("SpecialToken") for each in pieces if isinstance(each, dict)) if isinstance(pieces, list) else ()
    return {each["id"] for each in found if isinstance(each, dict) and isinstance(each.get("id"), str)}


def _unclosed(pattern: str) -> str | None:
    """What is left open in a regular expression; Oniguruma and Python agree on brackets, and on little else."""
    groups, at = 0, len(pattern) if _SPACED.search(pattern) else 0
    while at < len(pattern):
        sign = pattern[at]
        if sign == "\\":
            at += 1
            if at == len(pattern):
                return "the last backslash stands before nothing"
        elif sign == "[":
            at = _class_end(pattern, at)
            if at < 0:
                return "a [ is not closed"
        elif pattern.startswith("(?#", at):
            at = pattern.find(")", at)
            if at < 0:
                return "a comment is not closed"
        elif sign in "()":
            groups += 1 if sign == "(" else -1
            if groups < 0:
                return "a ) closes nothing"
        at += 1
    return "a ( is not closed" if groups else None


def _class_end(pattern: str, at: int) -> int:
    """Where a class of characters ends, those within it included; -1 when it does not."""
    depth, fresh = 0, False
    while at < len(pattern):
        sign = pattern[at]
        if sign == "\\":
            at += 1
            fresh = False
        elif sign == "[":
            depth, fresh = depth + 1, True
            at += pattern.startswith("^", at + 1)
        elif sign == "]" and not fresh:  # a first ] is a character
            depth -= 1
            if not depth:
                return at
        else:
            fresh = False
        if sign == "]" and fresh:
            fresh = False
        at += 1
    return -1


def _compiles(pattern: str) -> bool:
    """Whether Python compiles it once properties such as `\\p{L}`, which it does not know, are replaced."""
    if len(pattern) > LONGEST_PATTERN:
        return False
    try:
        with warnings.catch_warnings(action="ignore"):  # of classes in classes, which Oniguruma knows
            re.compile(re.sub(r"\\[pP]\{\^?\w+\}", r"\\w", pattern))
    except (re.error, RecursionError, OverflowError, ValueError):
        return False
    return True


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**32


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_token(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and _is_text(value[0]) and _is_count(value[1])


def _is_pattern(value: object) -> bool:
    return (
        isinstance(value, dict)
        and len(value) == 1
        and next(iter(value.items()))[0] in ("String", "Regex")
        and all(map(_is_text, value.values()))
    )


def _is_piece(value: object) -> bool:
    if not isinstance(value, dict) or len(value) != 1:
        return False
    [(kind, told)] = value.items()
    if not isinstance(told, dict) or not _is_count(told.get("type_id")):
        return False
    return told.get("id") in ("A", "B") if kind == "Sequence" else kind == "SpecialToken" and _is_text(told.get("id"))


def _is_special(value: object) -> bool:
    if not isinstance(value, dict) or not _is_text(value.get("id")):
        return False
    ids, tokens = value.get("ids"), value.get("tokens")
    numbered = isinstance(ids, list) and all(map(_is_count, ids))
    return numbered and isinstance(tokens, list) and all(map(_is_text, tokens))


_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "flag": lambda value: isinstance(value, bool),
    "text": _is_text,
    "character": lambda value: isinstance(value, str) and len(value) == 1,
    "count": _is_count,
    "scheme": lambda value: value in SCHEMES if isinstance(value, str) else False,
    "behavior": lambda value: value in BEHAVIORS if isinstance(value, str) else False,
    "pattern": _is_pattern,
    "token": _is_token,
    "steps": lambda value: isinstance(value, list),
    "pieces": lambda value: isinstance(value, list) and all(map(_is_piece, value)),
    "tokens": lambda value: isinstance(value, dict) and all(map(_is_special, value.values())),
}
