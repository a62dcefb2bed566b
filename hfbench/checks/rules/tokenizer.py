"""The tokenizer's files, its ids against the embedding, and its special tokens against the configuration."""

from __future__ import annotations

from collections.abc import Iterator

from hfbench.checks.base import Found, passed_on, rule
from hfbench.checks.known import known_tokenizer, transformers
from hfbench.checks.subject import Subject
from hfbench.checks.tokenizer_faults import config_faults, fast_faults
from hfbench.checks.tokenizer_merges import merges_fault
from hfbench.checks.tokenizer_steps import odd_patterns
from hfbench.models.files import open_regular, read_bytes
from hfbench.models.json_text import MOST_BYTES
from hfbench.models.magic import LOOK, recognise
from hfbench.models.problem import ModelError, Severity, listed, quoted
from hfbench.tokens.tokenizer import refusal_of_pattern

BESIDE = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model", "vocab.txt", "merges.txt")
"""Files that a runtime may take in place of the one that is read here."""

MOST_ASKED = 3
"""Regular expressions that the tokenizers library is asked about, each in a process that its limits may end."""

BYTE_PAIR = frozenset(
    {"Bart", "Blenderbot", "CLIP", "CodeGen", "Deberta", "GPT2", "GPTNeoX", "LED", "Longformer", "Mvp"}
    | {"Qwen2", "Roberta", "Whisper"}
)
"""Classes, without the end of their names, that are made from vocab.json together with merges.txt."""

ALONE = frozenset({"PreTrained", "TokenizersBackend", "Bloom"})
"""Classes that read tokenizer.json and nothing in its place."""

WHOLE = ("tokenizer.json", "tekken.json", "tokenizer.model", "spiece.model", "sentencepiece.bpe.model")
"""Files each of which holds a whole tokenizer."""

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
        faults = [*fast_faults(subject.tokenizer_json), *_merge_faults(subject)]
        for fault in faults or _pattern_faults(subject):
            yield Found(message=fault, file="tokenizer.json")
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        for fault in config_faults(subject.json(name)):
            yield Found(message=fault, file=name)
    wrong = [token for token, number in subject.json("added_tokens.json").items() if type(number) is not int]
    if wrong:
        yield Found(message=f"the id of {quoted(wrong[0])} is no integer", file="added_tokens.json")


@rule("HB515", "tokenizer-file-missing")
def tokenizer_file_missing(subject: Subject) -> Iterator[Found]:
    """The tokenizer's class needs a file that is not there, beside those that are.

    Why: transformers cannot make the tokenizer, and its message names no file.
    Remedy: fetch the file, or save the tokenizer again as tokenizer.json.
    """
    named = subject.tokenizer.tokenizer_class
    if named is None or any(map(subject.has, WHOLE)) or subject.remote_code.get("AutoTokenizer"):
        return
    kind = named.removesuffix("Fast").removesuffix("Tokenizer")
    there = [name for name in ("vocab.json", "merges.txt", "vocab.txt") if subject.has(name)]
    pair = {"vocab.json", "merges.txt"}
    if kind in BYTE_PAIR and len(pair & set(there)) == 1:
        [lacking] = pair - set(there)
        yield Found(message=f"{lacking} is not there, and {named} needs it beside {listed(there)}", file=lacking)
    elif kind in ALONE and there:
        message = f"tokenizer.json is not there, and {named} reads no {' or '.join(there)} in its place"
        yield Found(message=message, file="tokenizer.json")


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


def _merge_faults(subject: Subject) -> Iterator[str]:
    model = subject.tokenizer_json.get("model")
    if not isinstance(model, dict) or model.get("type", "BPE") != "BPE":
        return
    try:
        raw = read_bytes(subject.folder / "tokenizer.json", MOST_BYTES, subject.folder)
    except ModelError:
        return
    if (fault := merges_fault(raw, model)) is not None:
        yield fault


def _pattern_faults(subject: Subject) -> Iterator[str]:
    """What the library says of regular expressions that nobody else can judge; nothing where it is not installed."""
    content = subject.tokenizer_json
    for pattern in odd_patterns(content)[:MOST_ASKED]:
        said = refusal_of_pattern(pattern)
        if said is not None:
            yield f"the pattern {quoted(pattern)} is refused: {said}"


def _what(subject: Subject, name: str) -> str | None:
    """What a file is when it is plainly no vocabulary."""
    try:
        with open_regular(subject.folder / name, subject.folder) as file:
            what = recognise(file.read(LOOK))
    except (ModelError, OSError):
        return None
    return None if what in ("JSON text", "a script") else what
