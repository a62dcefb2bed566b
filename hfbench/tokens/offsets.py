"""Where tokens lie in the bytes of a text.

The tokenizers library counts characters, and gives every token of a character that was cut the whole of it.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from itertools import accumulate

_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def byte_extents(
    text: str, offsets: Sequence[tuple[int, int]], piece_of: Callable[[int], str]
) -> tuple[array[int], array[int]]:
    """First byte, and byte after the last, of each token, from its extent in characters.

    `piece_of` gives the piece of a token by its number in the sequence. Tokens that share a character are told apart
    where their pieces spell its bytes; where normalisation hides that, each keeps the whole character. Tokens of no
    characters, such as those a post-processor adds, lie where the token before them ends.
    """
    raw = text.encode()
    at = None if len(raw) == len(text) else _byte_positions(text)
    begins, ends = array("I", bytes(4 * len(offsets))), array("I", bytes(4 * len(offsets)))
    last = 0
    for number, (first, after) in enumerate(offsets):
        if first == after:
            begins[number] = ends[number] = last
        else:
            begins[number] = first if at is None else at[first]
            ends[number] = last = after if at is None else at[after]
    for start, end in _shared(begins, ends):
        lengths = _spelled(raw, begins[start], max(ends[start:end]), [piece_of(each) for each in range(start, end)])
        place = begins[start]
        for number, length in zip(range(start, end), lengths, strict=False):
            begins[number], ends[number] = place, place + length
            place += length
    return begins, ends


def _byte_positions(text: str) -> array[int]:
    """The byte at which each character begins, and the length in bytes."""
    return array("I", accumulate(map(len, map(str.encode, text)), initial=0))


def _shared(begins: array[int], ends: array[int]) -> list[tuple[int, int]]:
    """Runs of tokens of which each begins before those ahead of it end."""
    runs: list[tuple[int, int]] = []
    start, reach = 0, 0
    for number, begin in enumerate(begins):
        if begin >= reach or begin == ends[number]:
            if number - start > 1:
                runs.append((start, number))
            start = number
        reach = max(reach, ends[number])
    if len(begins) - start > 1:
        runs.append((start, len(begins)))
    return runs


def _spelled(raw: bytes, begin: int, end: int, pieces: Sequence[str]) -> list[int]:
    """How many bytes each piece takes of raw[begin:end]; empty unless together they spell exactly that."""
    lengths, place = [], begin
    for piece in pieces:
        for spelling in _spellings(piece):
            if raw.startswith(spelling, place) and place + len(spelling) <= end:
                lengths.append(len(spelling))
                place += len(spelling)
                break
        else:
            return []
    return lengths if place == end else []


@lru_cache(maxsize=2**16)
def _spellings(piece: str) -> tuple[bytes, ...]:
    """The bytes a piece may stand for, the likeliest first; a space in front may be one that was added."""
    if found := _BYTE.fullmatch(piece):
        return (bytes([int(found[1], 16)]), piece.encode())
    told = []
    byte_level = _bytes_by_letter()
    if all(letter in byte_level for letter in piece):
        told.append(bytes(byte_level[letter] for letter in piece))
    told.append(piece.replace("\u2581", " ").encode("utf-8", "surrogatepass"))
    return tuple(dict.fromkeys([*told, *(each[1:] for each in told if each.startswith(b" "))]))


@cache
def _bytes_by_letter() -> dict[str, int]:
    """The byte each letter of a byte-level vocabulary stands for: those that print are themselves (GPT-2)."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + place): byte for place, byte in enumerate(others)}
