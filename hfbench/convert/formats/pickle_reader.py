"""Reads pickles into plain data: an interpreter of their opcodes that imports nothing and calls nothing."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

from hfbench.convert.formats.inert import Global, StandIn
from hfbench.convert.formats.torch_objects import made
from hfbench.errors import HfbenchError
from hfbench.models.problem import quoted

MOST_BYTES = 128 << 20
"""Of one pickle. The largest known, the .metadata of a model of experts, has some 20 MB."""

MOST_STEPS = 10_000_000
"""Opcodes of one pickle: each makes at most one small object, so this bounds memory too."""

MOST_INTEGER = 64
"""Bytes of one whole number: larger ones take long to show."""

MOST_MEMO = MOST_STEPS

SCALARS = (str, int, float, bytes, type(None), Global, StandIn)


class PickleError(HfbenchError):
    """A pickle is damaged, too large, or of a kind that is not read; `str()` is one sentence."""


def unpickled(raw: bytes, *, where: object, persistent: Callable[[object], object] | None = None) -> object:
    """The object of a pickle as plain data, `Global`s, `StandIn`s and `TensorRef`s. PickleError names the byte.

    `persistent` turns what torch calls persistent ids (its storages) into objects.
    """
    if len(raw) > MOST_BYTES:
        raise PickleError(f"holds a pickle of {len(raw):,} bytes, more than the {MOST_BYTES:,} read", where=where)
    machine = _Machine(raw, persistent)
    try:
        return machine.result()
    except PickleError as error:
        raise PickleError(error.found, where=where, remedy=error.remedy) from None
    except (IndexError, struct.error):
        raise PickleError(f"the pickle is damaged at byte {machine.begun:,}", where=where) from None
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        found = f"the pickle is damaged at byte {machine.begun:,} ({str(error)[:120] or type(error).__name__})"
        raise PickleError(found, where=where) from None


class _Mark:
    """Where a run of values on the stack begins."""


MARK = _Mark()


class _Machine:
    """The stack, the memo and the place of one pickle."""

    def __init__(self, raw: bytes, persistent: Callable[[object], object] | None) -> None:
        self.raw, self.at, self.begun = raw, 0, 0
        self.persistent = persistent
        self.stack: list[object] = []
        self.memo: dict[int, object] = {}

    def result(self) -> object:
        raw, table = self.raw, OPCODES
        for _ in range(MOST_STEPS):
            self.begun = at = self.at
            code = raw[at]
            self.at = at + 1
            if code == 0x2E:  # STOP
                return self.stack.pop()
            step = table.get(code)
            if step is None:
                kind = "an old text form" if code in b"IFLSVgpid" else "unknown or not read"
                raise PickleError(f"opcode {bytes([code])!r} at byte {at:,} of the pickle is {kind}")
            step(self)
        raise PickleError(f"the pickle has more than {MOST_STEPS:,} steps")

    def take(self, size: int) -> bytes:
        if size > len(self.raw) - self.at:
            raise ValueError(f"{size:,} bytes are announced, {len(self.raw) - self.at:,} follow")
        found = self.raw[self.at : self.at + size]
        self.at += size
        return found

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def push(self, value: object) -> None:
        self.stack.append(value)

    def line(self) -> str:
        end = self.raw.index(b"\n", self.at, self.at + 1000)
        found = self.raw[self.at : end]
        self.at = end + 1
        return found.decode("utf-8")

    def marked(self) -> list[object]:
        """The values above the last mark, which goes with them."""
        stack = self.stack
        for place in range(len(stack) - 1, -1, -1):
            if stack[place] is MARK:
                found = stack[place + 1 :]
                del stack[place:]
                return found
        raise ValueError("no mark")

    def pop(self) -> object:
        found = self.stack.pop()
        if found is MARK:
            raise ValueError("a mark in the place of a value")
        return found

    def top(self) -> object:
        found = self.stack[-1]
        if found is MARK:
            raise ValueError("a mark in the place of a value")
        return found

    def remember(self, place: int) -> None:
        if place > MOST_MEMO:
            raise PickleError(f"the pickle keeps something under the number {place:,}, more than {MOST_MEMO:,}")
        self.memo[place] = self.top()

    def recall(self, place: int) -> None:
        if place not in self.memo:
            raise ValueError(f"nothing is kept under the number {place:,}")
        self.push(self.memo[place])

    def name(self, module: object, name: object) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            raise ValueError("a global without a name")
        self.push(Global(module, name))

    def extend(self, values: Iterable[object]) -> None:
        target = self.top()
        if isinstance(target, list):
            target.extend(values)
        elif isinstance(target, StandIn):
            target.items.extend(values)
        else:
            raise ValueError(f"{type(target).__name__} takes no elements")

    def set_items(self, values: list[object]) -> None:
        target = self.top()
        if len(values) % 2:
            raise ValueError("a key without a value")
        pairs = zip(values[::2], values[1::2], strict=True)
        if isinstance(target, dict):
            target.update((_key(key), value) for key, value in pairs)
        elif isinstance(target, StandIn):
            target.items.extend(pairs)
        else:
            raise ValueError(f"{type(target).__name__} takes no keys")

    def dictionary(self) -> None:
        values = self.marked()
        self.push({})
        self.set_items(values)

    def elements(self, values: list[object]) -> None:
        target = self.top()
        if not isinstance(target, set):
            raise ValueError(f"{type(target).__name__} takes no elements")
        target.update(map(_key, values))

    def reduce(self) -> None:
        args, called = self.pop(), self.pop()
        if not isinstance(called, Global) or not isinstance(args, tuple):
            raise ValueError("something is called that has no name")
        self.push(made(called, args))

    def new(self, extra: bool) -> None:
        named = self.pop() if extra else {}
        args, of = self.pop(), self.pop()
        if not isinstance(of, Global) or not isinstance(args, tuple):
            raise ValueError("an object of no class")
        self.push(StandIn(of, (*args, named) if named else args))

    def build(self) -> None:
        state, target = self.pop(), self.top()
        if isinstance(target, StandIn):
            target.state = state
        elif not isinstance(target, dict):  # an OrderedDict may have attributes, which carry nothing of use
            raise ValueError(f"{type(target).__name__} takes no attributes")

    def tuple(self, size: int) -> None:
        if size > len(self.stack):
            raise IndexError
        found = tuple(self.stack[len(self.stack) - size :])
        if MARK in found:
            raise ValueError("a mark in the place of a value")
        del self.stack[len(self.stack) - size :]
        self.push(found)

    def long(self, size: int) -> None:
        if size > MOST_INTEGER:
            raise PickleError(f"the pickle holds a whole number of {size:,} bytes")
        self.push(int.from_bytes(self.take(size), "little", signed=True))

    def text(self, size: int) -> None:
        self.push(self.take(size).decode("utf-8", "surrogatepass"))

    def persist(self) -> None:
        if self.persistent is None:
            raise PickleError("the pickle refers to a storage outside of itself")
        self.push(self.persistent(self.pop()))

    def protocol(self) -> None:
        if (number := self.number(1)) > 5:
            raise PickleError(f"the pickle is of protocol {number}, the newest known is 5")


def _key(value: object) -> object:
    """A key that hashes at once: a tuple of tuples of tuples could take for ever."""
    flat = isinstance(value, tuple) and all(isinstance(each, SCALARS) for each in value)
    if not flat and not isinstance(value, SCALARS):
        raise PickleError(f"the pickle has a key of the kind {quoted(type(value).__name__)}")
    return value


OPCODES: dict[int, Callable[[_Machine], object]] = {
    ord(code): step
    for code, step in {
        "\x80": _Machine.protocol,
        "\x95": lambda m: m.number(8),  # FRAME: the length of what is read at once
        "(": lambda m: m.push(MARK),
        "0": lambda m: m.pop(),
        "1": lambda m: m.marked(),
        "2": lambda m: m.push(m.top()),
        "N": lambda m: m.push(None),
        "\x88": lambda m: m.push(True),
        "\x89": lambda m: m.push(False),
        "J": lambda m: m.push(int.from_bytes(m.take(4), "little", signed=True)),
        "K": lambda m: m.push(m.number(1)),
        "M": lambda m: m.push(m.number(2)),
        "\x8a": lambda m: m.long(m.number(1)),
        "\x8b": lambda m: m.long(m.number(4)),
        "G": lambda m: m.push(struct.unpack(">d", m.take(8))[0]),
        "X": lambda m: m.text(m.number(4)),
        "\x8c": lambda m: m.text(m.number(1)),
        "\x8d": lambda m: m.text(m.number(8)),
        "T": lambda m: m.push(m.take(m.number(4)).decode("latin1")),
        "U": lambda m: m.push(m.take(m.number(1)).decode("latin1")),
        "B": lambda m: m.push(m.take(m.number(4))),
        "C": lambda m: m.push(m.take(m.number(1))),
        "\x8e": lambda m: m.push(m.take(m.number(8))),
        "\x96": lambda m: m.push(m.take(m.number(8))),
        "]": lambda m: m.push([]),
        "}": lambda m: m.push({}),
        ")": lambda m: m.push(()),
        "\x8f": lambda m: m.push(set()),
        "a": lambda m: m.extend([m.pop()]),
        "e": lambda m: m.extend(m.marked()),
        "s": lambda m: m.set_items([m.pop(), m.pop()][::-1]),
        "u": lambda m: m.set_items(m.marked()),
        "\x90": lambda m: m.elements(m.marked()),
        "\x91": lambda m: m.push(frozenset(map(_key, m.marked()))),
        "l": lambda m: m.push(m.marked()),
        "d": _Machine.dictionary,
        "t": lambda m: m.push(tuple(m.marked())),
        "\x85": lambda m: m.tuple(1),
        "\x86": lambda m: m.tuple(2),
        "\x87": lambda m: m.tuple(3),
        "c": lambda m: m.name(m.line(), m.line()),
        "\x93": lambda m: m.name(*[m.pop(), m.pop()][::-1]),
        "R": _Machine.reduce,
        "\x81": lambda m: m.new(False),
        "\x92": lambda m: m.new(True),
        "b": _Machine.build,
        "q": lambda m: m.remember(m.number(1)),
        "r": lambda m: m.remember(m.number(4)),
        "\x94": lambda m: m.remember(len(m.memo)),
        "h": lambda m: m.recall(m.number(1)),
        "j": lambda m: m.recall(m.number(4)),
        "Q": _Machine.persist,
    }.items()
}
