"""Keys typed into the Tokenizer tab behind a pasted megabyte, while its process cuts the text over and over.

The tokenizer knows the 256 bytes and no word: a megabyte makes a million tokens, the most there can be.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from pathlib import Path

from claims import Claim, finish, run
from terminal import Terminal
from workbench import in_terminal, versions

MEGABYTE = 2**20
KEYS = [chr(code) for code in range(0x0400, 0x0460)]
"""Letters that stand nowhere else on the screen: the one typed is found in what is painted."""

PAUSE = 0.12
"""Seconds between an answer and the next key: eight keys a second."""

TYPE = Claim(
    name="type-behind-a-megabyte",
    sentence="while a megabyte is cut into a million tokens, a key typed behind it is painted within 20 ms",
    bound=0.020,
)
RATIO = Claim(
    name="type-behind-a-megabyte-ratio",
    sentence="behind a megabyte a key takes at most four times as long as behind a word",
    bound=4.0,
)
CLAIMS = (TYPE, RATIO)


def make(folder: Path) -> Path:
    """A folder that holds a byte-level tokenizer without merges, and nothing else of a model."""
    folder.mkdir()
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = [chr(byte) for byte in plain] + [chr(256 + place) for place in range(256 - len(plain))]
    split = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": True}
    model = {"type": "BPE", "vocab": {letter: number for number, letter in enumerate(letters)}, "merges": []}
    (folder / "tokenizer.json").write_text(json.dumps({"version": "1.0", "pre_tokenizer": split, "model": model}))
    (folder / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    return folder


def typed(terminal: Terminal) -> list[float]:
    """Seconds from each key to the paint that holds it."""
    taken = []
    for key in KEYS:
        taken.append(terminal.answer(key, key).seconds)
        terminal.drain(PAUSE)
    return taken


def behind(scratch: Path, folder: Path, text: str) -> list[float]:
    """Paste a text and type behind it."""
    with in_terminal(scratch, str(folder)) as terminal:
        terminal.wait_for("[Overview]")
        terminal.drain(1.0)
        terminal.answer("]]", "[Tokenizer]")
        terminal.answer("i", "[Text]")
        terminal.drain(1.0)
        pasted = f"\x1b[200~{text}\x1b[201~".encode()
        begin = time.perf_counter()
        for start in range(0, len(pasted), 4096):
            os.write(terminal.fd, pasted[start : start + 4096])
            terminal.drain(0.0)
        terminal.wait_for("bytes")
        print(f"  {len(text):,} characters pasted and cut after {time.perf_counter() - begin:.1f} s")
        return typed(terminal)


def main() -> None:
    """Both in turn; all keys are one sample."""
    with tempfile.TemporaryDirectory(prefix="bench-typing-") as name:
        scratch = Path(name)
        folder = make(scratch / "model")
        word = behind(scratch, folder, "word")
        text = "the quick brown fox jumps over the lazy dog\n" * (MEGABYTE // 44)
        megabyte = behind(scratch, folder, text)
        notes = {"p95": statistics.quantiles(megabyte, n=20)[-1], "max": max(megabyte), "keys": len(megabyte)}
        first, again, words = iter(megabyte), iter(megabyte), iter(word)
        one = run(TYPE, lambda: next(first), rounds=len(megabyte), warmup=0, versions=versions(), notes=notes)
        print(f"  p95 {notes['p95'] * 1e3:.0f} ms, slowest {notes['max'] * 1e3:.0f} ms of {len(megabyte)} keys")
        two = run(RATIO, lambda: next(again), lambda: next(words), rounds=len(megabyte), warmup=0, versions=versions())
    finish(one, two)


if __name__ == "__main__":
    main()
