"""Walks the opcodes of pickles with a stack that knows only texts, and lists what they would import."""

from __future__ import annotations

import io
import pickletools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

MOST_OPCODES = 2_000_000
"""Of all files of a model together: 60,000 tensors; what hostile ones can ask of time."""

MOST_SECONDS = 3.0
"""On the wall, for all files of a model together: those of 60,000 tensors take 1.5 s of a calm machine."""

_BETWEEN_LOOKS = 4096
"""Instructions between two looks at the clock, a power of two."""

PROTOCOL = b"\x80"
"""The first byte of a pickle of protocol 2 and later."""

HIDDEN = "?"
"""Stands for a module or a name that is made from something other than plain text."""

_MARK = object()
_OTHER = object()

_TEXTS = frozenset(
    {"STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"}
)
_PUTS = frozenset({"PUT", "BINPUT", "LONG_BINPUT"})
_GETS = frozenset({"GET", "BINGET", "LONG_BINGET"})
_SPECIAL = _TEXTS | _PUTS | _GETS | {"GLOBAL", "INST", "STACK_GLOBAL", "EXT1", "EXT2", "EXT4", "MEMOIZE", "DUP", "MARK"}


def _effect(opcode: Any) -> tuple[bool, int, int]:
    """Whether an opcode takes all down to a mark, how many values below or else, and how many it leaves."""
    before, marked = opcode.stack_before, pickletools.markobject in opcode.stack_before
    taken = before.index(pickletools.markobject) if marked else len(before)
    return marked, taken, len(opcode.stack_after)


_EFFECTS = {each.name: _effect(each) for each in pickletools.opcodes}


_BY_CODE: Mapping[bytes, tuple[str, Any]] = {
    each.code.encode("latin-1"): (each.name, each.arg.reader if each.arg else None) for each in pickletools.opcodes
}
"""The name of each instruction, and what reads its argument."""


class TooLong(Exception):
    """A pickle has more instructions than are walked."""


@dataclass(slots=True)
class Walk:
    """The globals met so far, and the instructions spent on them."""

    globals: set[tuple[str, str]] = field(default_factory=set)
    opcodes: int = 0
    since: float = field(default_factory=monotonic)
    """When the first file of the model was begun."""

    def one(self, stream: io.BytesIO) -> None:
        """Walk one pickle to its end. TooLong, or whatever pickletools raises for what is no pickle."""
        stack: list[Any] = []
        memo: dict[int, Any] = {}
        for name, argument in _instructions(stream):
            self.opcodes += 1
            if self.opcodes > MOST_OPCODES:
                raise TooLong(f"has too many instructions: {MOST_OPCODES:,} of the model's pickles were looked at")
            if not self.opcodes % _BETWEEN_LOOKS and monotonic() - self.since > MOST_SECONDS:
                self.opcodes = MOST_OPCODES  # what follows is not begun
                raise TooLong(f"takes too long: the model's pickles were looked at for {MOST_SECONDS:.0f} s")
            if name not in _SPECIAL:
                _apply(stack, *_EFFECTS[name])
            elif name in _TEXTS:
                stack.append(str(argument))
            elif name in _PUTS or name == "MEMOIZE":
                memo[len(memo) if name == "MEMOIZE" else int(argument)] = stack[-1] if stack else _OTHER
            elif name in _GETS:
                stack.append(memo.get(int(argument), _OTHER))
            elif name == "MARK":
                stack.append(_MARK)
            elif name == "DUP":
                stack.append(stack[-1] if stack else _OTHER)
            else:
                self.globals.add(_global(name, argument, stack))
                _apply(stack, *_EFFECTS[name])


def _instructions(stream: io.BytesIO) -> Iterator[tuple[str, Any]]:
    """Names and arguments up to the end of one pickle, as pickletools.genops reads them, in half its time."""
    read = stream.read
    while True:
        code = read(1)
        known = _BY_CODE.get(code)
        if known is None:
            raise ValueError(f"at position {stream.tell() - 1}, opcode {code!r} unknown" if code else "no STOP")
        name, reader = known
        yield name, reader(stream) if reader else None
        if code == b".":
            return


def _global(name: str, argument: Any, stack: list[Any]) -> tuple[str, str]:
    if name == "STACK_GLOBAL":
        pair = stack[-2:] if len(stack) > 1 else [_OTHER, _OTHER]
        module, attribute = (each if isinstance(each, str) else HIDDEN for each in pair)
        return module, attribute
    if name.startswith("EXT"):
        return "copyreg", f"extension {argument}"
    module, _, attribute = str(argument).partition(" ")
    return module, attribute


def _apply(stack: list[Any], marked: bool, taken: int, left: int) -> None:
    if marked:
        while stack and stack.pop() is not _MARK:
            pass
    if taken:
        del stack[-taken:]
    if left:
        stack.extend([_OTHER] * left)
