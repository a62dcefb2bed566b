"""The tokenizer inside a GGUF file as Hugging Face tokenizer files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hfbench.convert.gguf_file import GgufFile
from hfbench.errors import HfbenchError

MODEL = "gpt2"
"""GGUF's name for byte-level BPE."""
CONTROL, USER_DEFINED = 3, 4
"""Token types that are matched whole: control tokens are special, user-defined ones are ordinary text."""
ROLES = {"bos": "bos_token", "eos": "eos_token", "unknown": "unk_token", "padding": "pad_token"}
"""GGUF's names of special tokens and those of transformers."""


def _digits_then_bytes() -> Any:
    from tokenizers import pre_tokenizers

    digits = pre_tokenizers.Digits(individual_digits=True)
    return pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])


def _bytes() -> Any:
    from tokenizers import pre_tokenizers

    return pre_tokenizers.ByteLevel(add_prefix_space=False)


PRE_TOKENIZERS: dict[str, Callable[[], Any]] = {"smollm": _digits_then_bytes, "gpt-2": _bytes}
"""How text is cut before merges apply, by the name in `tokenizer.ggml.pre`."""


def tokenizer_of(file: GgufFile) -> Any:
    """The tokenizer as an object of the `tokenizers` library; HfbenchError for a kind that is not known."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, processors

    kind, cut = file.metadata.get("tokenizer.ggml.model"), file.metadata.get("tokenizer.ggml.pre")
    if kind != MODEL or cut not in PRE_TOKENIZERS:
        raise HfbenchError(f"the tokenizer is {kind!r} with pre-tokenizer {cut!r}, which is not known", where=file.path)
    tokens, types = _strings(file, "tokens"), file.metadata.get("tokenizer.ggml.token_type", [])
    vocabulary = {token: number for number, token in enumerate(tokens)}
    if len(vocabulary) != len(tokens):
        raise HfbenchError(f"{len(tokens) - len(vocabulary)} tokens stand twice in the vocabulary", where=file.path)
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=_merges(file, vocabulary)))
    tokenizer.pre_tokenizer = PRE_TOKENIZERS[cut]()
    tokenizer.decoder = decoders.ByteLevel()
    whole = [
        AddedToken(token, special=kind == CONTROL, normalized=False)
        for token, kind in zip(tokens, types, strict=False)
        if kind in (CONTROL, USER_DEFINED)
    ]
    tokenizer.add_tokens(whole)
    if file.metadata.get("tokenizer.ggml.add_bos_token"):
        name = special_tokens(file).get("bos_token", "")
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{name} $A", pair=f"{name} $A {name}:1 $B:1", special_tokens=[(name, vocabulary[name])]
        )
    return tokenizer


def special_tokens(file: GgufFile) -> dict[str, str]:
    """The texts of the special tokens by the names transformers uses."""
    tokens, found = _strings(file, "tokens"), {}
    for source, target in ROLES.items():
        number = file.metadata.get(f"tokenizer.ggml.{source}_token_id")
        if number is None:
            continue
        if not isinstance(number, int) or not 0 <= number < len(tokens):
            raise HfbenchError(f"the {source} token is {number!r}, outside the vocabulary", where=file.path)
        found[target] = tokens[number]
    return found


def tokenizer_config(file: GgufFile, context: int) -> dict[str, Any]:
    """tokenizer_config.json: the class, the special tokens, and the chat template if there is one."""
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": context,
        "clean_up_tokenization_spaces": False,
        **special_tokens(file),
    }
    template = file.metadata.get("tokenizer.chat_template")
    return config | ({"chat_template": template} if isinstance(template, str) else {})


def _merges(file: GgufFile, vocabulary: dict[str, int]) -> list[tuple[str, str]]:
    merges = []
    for number, text in enumerate(_strings(file, "merges")):
        left, _, right = text.partition(" ")
        if left not in vocabulary or right not in vocabulary or left + right not in vocabulary:
            raise HfbenchError(f"merge {number} ({text!r}) names a token outside the vocabulary", where=file.path)
        merges.append((left, right))
    return merges


def _strings(file: GgufFile, key: str) -> list[str]:
    values = file.metadata.get(f"tokenizer.ggml.{key}")
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise HfbenchError(f"tokenizer.ggml.{key} is missing or not a list of texts", where=file.path)
    return values
