"""The tokenizer's files, its ids against the embedding, and its special tokens against the configuration."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.checks.base import Found, passed_on, rule
from hfbench.checks.known import known_tokenizer, transformers
from hfbench.checks.subject import Subject
from hfbench.checks.tokenizer_faults import config_faults, fast_faults
from hfbench.models.files import open_regular
from hfbench.models.json_text import MOST_BYTES
from hfbench.models.magic import LOOK, recognise
from hfbench.models.problem import ModelError, Severity, quoted

BESIDE = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "vocab.txt", "merges.txt")
"""Files that a runtime may take in place of the one that is read here."""

PADDING_ROWS = 2
"""Positions of RoBERTa and its kin that no text reaches: they count from the padding id on."""

NEEDS_SENTENCEPIECE = ("gemma", "gemma2", "gemma3", "gemma3_text", "gemma3n", "gemma3n_text", "internlm2", "phi3")
"""Families for which the converter of llama.cpp reads tokenizer.model."""


@rule("HB501", "broken-tokenizer-file", codes=("tokenizer_json", "tokenizer_model"))
def broken_tokenizer_file(subject: Subject) -> Iterator[Found]:
    """A file of the tokenizer cannot be read as what it is called.

    Why: the tokenizer fails to load, or another, slower or different one is taken in its place.
    Remedy: fetch the file again.
    """
    yield from passed_on(subject, "tokenizer_json", "tokenizer_model")
    told = {problem.where for problem in subject.tokenizer.problems}
    for name in BESIDE:
        file = subject.by_name.get(name)
        if file is None or file.problem or name in told:
            continue
        what = "empty" if not file.bytes else _what(subject, name)
        if what:
            yield Found(message=f"this is {what}", file=name, severity="warning")
        elif file.bytes > MOST_BYTES:
            message = f"has {file.bytes:,} bytes, more than any file of its kind"
            yield Found(message=message, file=name, severity="warning")


@rule("HB502", "no-tokenizer", severity="info")
def no_tokenizer(subject: Subject) -> Iterator[Found]:
    """The folder holds no vocabulary.

    Why: the weights can be loaded, but no text can be turned into ids.
    Remedy: fetch the tokenizer's files, or name another tokenizer when you load the model.
    """
    if subject.raw and not subject.has_tokenizer:
        yield Found(message="there is no tokenizer.json, tokenizer.model, vocab.json or vocab.txt")


@rule("HB512", "tokenizer-field-refused")
def tokenizer_field_refused(subject: Subject) -> Iterator[Found]:
    """A field of a tokenizer's file is missing or of a type that the tokenizer libraries refuse.

    Why: the tokenizer does not load, with an error that names no field.
    Remedy: save the tokenizer again, or fetch the file again.
    """
    broken = {problem.where for problem in subject.tokenizer.problems if problem.code != "tokenizer_duplicate_id"}
    if subject.has("tokenizer.json") and "tokenizer.json" not in broken:
        for fault in fast_faults(subject.tokenizer_json):
            yield Found(message=fault, file="tokenizer.json")
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        for fault in config_faults(subject.json(name)):
            yield Found(message=fault, file=name)
    wrong = [token for token, number in subject.json("added_tokens.json").items() if type(number) is not int]
    if wrong:
        yield Found(message=f"the id of {quoted(wrong[0])} is no integer", file="added_tokens.json")


@rule("HB508", "tokenizer-length-smaller", severity="warning")
def tokenizer_length_smaller(subject: Subject) -> Iterator[Found]:
    """The tokenizer's model_max_length is smaller than the context of the model.

    Why: some engines and the truncation of transformers take the smaller one.
    Remedy: write the context as model_max_length.
    """
    length, context = subject.tokenizer.model_max_length, subject.config.context
    given = subject.tokenizer_config.get("model_max_length")
    if isinstance(given, bool) or (isinstance(given, (int, float)) and given <= 0):
        yield Found(message=f"model_max_length is {str(given).lower()}", file="tokenizer_config.json")
    elif length is not None and context is not None and length < context - PADDING_ROWS:
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


def _what(subject: Subject, name: str) -> str | None:
    """What a file is when it is plainly no vocabulary."""
    try:
        with open_regular(subject.folder / name, subject.folder) as file:
            what = recognise(file.read(LOOK))
    except (ModelError, OSError):
        return None
    return None if what in ("JSON text", "a script") else what
