"""Small tokenizers as their files are: tokenizer.json written by hand, one of each kind."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

WORDS = ("hello", " world", " on", " café", " naïve", "Be", " brief")

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if tools %}{{ tools | length }} tools{% endif %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def letters() -> dict[int, str]:
    """The letter of each byte in a byte-level vocabulary."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = (byte for byte in range(256) if byte not in plain)
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + place) for place, byte in enumerate(others)}


def added(number: int, content: str, *, special: bool = True) -> dict[str, Any]:
    """An entry of added_tokens."""
    told = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": number, "content": content, "special": special, **told}


def whole(model: dict[str, Any], **parts: Any) -> dict[str, Any]:
    """The object of a tokenizer.json."""
    names = ("truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder")
    return {"version": "1.0", "added_tokens": [], **dict.fromkeys(names), "model": model, **parts}


def merged(words: Sequence[str], vocab: dict[str, int]) -> list[list[str]]:
    """The merges that build each word from the left; the words are added to the vocabulary."""
    merges: list[list[str]] = []
    for word in words:
        for end in range(1, len(word)):
            vocab.setdefault(word[: end + 1], len(vocab))
            if [word[:end], word[end]] not in merges:
                merges.append([word[:end], word[end]])
    return merges


def byte_level(words: Sequence[str] = WORDS, *, bos: bool = False) -> dict[str, Any]:
    """A byte-level BPE as GPT-2's: 256 letters, these words, two special tokens and one that is only added."""
    table = letters()
    vocab = {letter: number for number, letter in enumerate(table.values())}
    merges = merged(["".join(table[byte] for byte in word.encode()) for word in words], vocab)
    size = len(vocab)
    specials = [
        added(size, "<|im_start|>"),
        added(size + 1, "<|im_end|>"),
        added(size + 2, "<think>", special=False),
    ]
    start = {"<|im_start|>": {"id": "<|im_start|>", "ids": [size], "tokens": ["<|im_start|>"]}}
    single = [{"SpecialToken": {"id": "<|im_start|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    pair = [*single, {"Sequence": {"id": "B", "type_id": 1}}]
    processor = {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": start}
    split = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
    return whole(
        {"type": "BPE", "vocab": vocab, "merges": merges},
        added_tokens=specials,
        pre_tokenizer=split,
        decoder=split,
        post_processor=processor if bos else None,
    )


def fallback() -> dict[str, int]:
    """The tokens that stand for single bytes."""
    return {f"<0x{byte:02X}>": byte for byte in range(256)}


def sentencepiece_bpe() -> dict[str, Any]:
    """A BPE as Llama-2's: spaces are `▁`, one is put in front, other bytes have tokens of their own."""
    vocab = fallback()
    for letter in "▁abcdefghijklmnopqrstuvwxyz":
        vocab.setdefault(letter, len(vocab))
    merges = merged(["▁hello", "hello", "▁world"], vocab)
    vocab["<unk>"] = len(vocab)
    model = {
        "type": "BPE",
        "vocab": vocab,
        "merges": merges,
        "unk_token": "<unk>",
        "byte_fallback": True,
        "fuse_unk": True,
    }
    spaces = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    return whole(model, normalizer={"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, spaces]})


def unigram() -> dict[str, Any]:
    """A unigram model as T5's."""
    plain = [
        ["▁", -2.0],
        ["▁hello", -3.0],
        ["▁world", -3.5],
        *([letter, -5.0] for letter in "abcdefghijklmnopqrstuvwxyz"),
    ]
    vocab = [["<unk>", 0.0], *plain, *([piece, -9.0] for piece in fallback())]
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    return whole({"type": "Unigram", "vocab": vocab, "unk_id": 0, "byte_fallback": True}, pre_tokenizer=metaspace)


def wordpiece() -> dict[str, Any]:
    """A WordPiece as BERT's, which lowers letters and strips accents."""
    pieces = ["[UNK]", "[CLS]", "[SEP]", "hello", "world", "caf", "##e", "wor", "##ld", ".", "un", "##able"]
    model = {
        "type": "WordPiece",
        "vocab": {piece: number for number, piece in enumerate(pieces)},
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
    }
    bert = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "lowercase": True}
    return whole(
        model,
        added_tokens=[added(1, "[CLS]"), added(2, "[SEP]")],
        normalizer={**bert, "strip_accents": None},
        pre_tokenizer={"type": "BertPreTokenizer"},
        post_processor={"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
    )


KINDS = {
    "byte-level": byte_level,
    "sentencepiece": sentencepiece_bpe,
    "unigram": unigram,
    "wordpiece": wordpiece,
}


def write(folder: Path, tokenizer: dict[str, Any] | bytes, config: dict[str, Any] | None = None) -> Path:
    """A folder with this tokenizer.json and, when given, a tokenizer_config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    raw = tokenizer if isinstance(tokenizer, bytes) else json.dumps(tokenizer).encode()
    (folder / "tokenizer.json").write_bytes(raw)
    if config is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder
