"""Lists what a pickle would import and call, by walking its opcodes; nothing is ever unpickled."""

from __future__ import annotations

import io
import pickletools
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from hfbench.checks.tables import table

MOST_BYTES = 16 * 2**20
"""Of one pickle; the one of a model with 90,000 tensors has 10 MB."""

MOST_OPCODES = 4_000_000

MOST_PICKLES = 8
"""Pickles one after another in a file of torch's first format."""

MOST_MEMBERS = 64
"""Pickles inside one archive."""

MARK = object()
OTHER = object()

_STRINGS = ("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8")

PROTOCOL = b"\x80"
"""The first byte of a pickle of protocol 2 and later."""


@dataclass(frozen=True, slots=True)
class PickleScan:
    """The globals that a file would import, and why it could not be read to its end, if so."""

    kind: str
    """`zip`, `pickle` or `unknown`."""
    globals: frozenset[tuple[str, str]] = frozenset()
    broken: str = ""
    members: tuple[str, ...] = ()
    torchscript: bool = False


@dataclass(slots=True)
class _Walk:
    globals: set[tuple[str, str]] = field(default_factory=set)
    opcodes: int = 0


def scan_file(file: BinaryIO, size: int) -> PickleScan:
    """What a file of torch, of either format, or a bare pickle would import."""
    head = file.read(4)
    file.seek(0)
    if head[:2] == b"PK":
        return _scan_zip(file)
    walk = _Walk()
    raw = file.read(MOST_BYTES)
    broken = _scan_many(raw, walk, cut=size > len(raw))
    if broken and raw[:1] != PROTOCOL and not walk.globals:
        return PickleScan("unknown", broken="is neither an archive of torch.save nor a pickle")
    return PickleScan("pickle", frozenset(walk.globals), broken)


def _scan_zip(file: BinaryIO) -> PickleScan:
    try:
        with zipfile.ZipFile(file) as archive:
            infos = archive.infolist()
            torchscript = any("/code/" in f"/{info.filename}" and info.filename.endswith(".py") for info in infos)
            pickles = [info for info in infos if info.filename.endswith((".pkl", ".pickle"))]
            walk, broken = _Walk(), ""
            for info in pickles[:MOST_MEMBERS]:
                with archive.open(info) as member:
                    raw = member.read(MOST_BYTES)
                broken = _scan_many(raw, walk, cut=len(raw) == MOST_BYTES) or broken
            if len(pickles) > MOST_MEMBERS:
                broken = broken or f"holds {len(pickles):,} pickles, {MOST_MEMBERS} were looked at"
            names = tuple(info.filename for info in pickles[:MOST_MEMBERS])
            broken = broken if pickles else "is an archive without a pickle"
            return PickleScan("zip", frozenset(walk.globals), broken, names, torchscript)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        return PickleScan("zip", broken=f"is a damaged archive ({str(error) or type(error).__name__})")
    except Exception as error:  # zlib, lzma and bz2 have errors of their own
        return PickleScan("zip", broken=f"is a damaged archive ({type(error).__name__})")


def _scan_many(raw: bytes, walk: _Walk, *, cut: bool) -> str:
    """Walk pickles that follow one another, as torch's first format has them; what stopped it before the end."""
    stream = io.BytesIO(raw)
    for number in range(MOST_PICKLES):
        if number and raw[stream.tell() : stream.tell() + 1] != PROTOCOL:
            return ""  # the tensors' bytes follow
        try:
            for _ in _globals(stream, walk):
                pass
        except _TooLong as error:
            return str(error)
        except Exception as error:  # pickletools and hostile opcodes raise many kinds
            if number and stream.tell() > 1024:
                return ""
            end = f"; only its first {MOST_BYTES // 2**20} MiB were looked at" if cut else ""
            return f"is no complete pickle ({str(error)[:80] or type(error).__name__}){end}"
    return ""


class _TooLong(Exception):
    pass


def _globals(stream: io.BytesIO, walk: _Walk) -> Iterator[None]:
    """Walk one pickle with a stack that knows only strings; its globals are added to `walk`."""
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    opcode: Any
    argument: Any
    for opcode, argument, _ in pickletools.genops(stream):
        walk.opcodes += 1
        if walk.opcodes > MOST_OPCODES:
            raise _TooLong(f"has more than {MOST_OPCODES:,} instructions")
        name = opcode.name
        if name == "GLOBAL" or name == "INST":
            module, _, attribute = str(argument).partition(" ")
            walk.globals.add((module, attribute))
        elif name == "STACK_GLOBAL":
            pair = stack[-2:] if len(stack) > 1 else [OTHER, OTHER]
            module, attribute = (each if isinstance(each, str) else "?" for each in pair)
            walk.globals.add((module, attribute))
        elif name in ("EXT1", "EXT2", "EXT4"):
            walk.globals.add(("copyreg", f"extension {argument}"))
        if name in ("PUT", "BINPUT", "LONG_BINPUT"):
            memo[int(argument)] = stack[-1] if stack else OTHER
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1] if stack else OTHER
        else:
            _step(opcode, argument, stack, memo)
        yield None


def _step(opcode: Any, argument: Any, stack: list[Any], memo: dict[int, Any]) -> None:
    name = opcode.name
    if name in _STRINGS:
        stack.append(argument if isinstance(argument, str) else str(argument))
    elif name in ("GET", "BINGET", "LONG_BINGET"):
        stack.append(memo.get(int(argument), OTHER))
    elif name == "DUP":
        stack.append(stack[-1] if stack else OTHER)
    elif name == "MARK":
        stack.append(MARK)
    else:
        before = opcode.stack_before
        if pickletools.markobject in before:
            while stack and stack.pop() is not MARK:
                pass
            del stack[len(stack) - min(len(stack), before.index(pickletools.markobject)) :]
        else:
            del stack[len(stack) - min(len(stack), len(before)) :]
        stack.extend(OTHER for _ in opcode.stack_after)


def dangerous(found: Iterable[tuple[str, str]]) -> list[str]:
    """Globals that run commands, code or files, or that hide what they are."""
    return sorted(f"{module}.{name}" for module, name in found if _is_dangerous(module, name))


def unusual(found: Iterable[tuple[str, str]]) -> list[str]:
    """Globals that are not needed to rebuild tensors and that torch's safe loader refuses."""
    return sorted(
        f"{module}.{name}" for module, name in found if not _is_plain(module, name) and not _is_dangerous(module, name)
    )


def _is_dangerous(module: str, name: str) -> bool:
    if "?" in (module, name):
        return True  # made from something other than plain text: it hides what it imports
    if _is_plain(module, name):
        return False
    told = table("pickles")
    if name.rpartition(".")[2] in told["dangerous_names"] or name in told["dangerous"].get(module, ()):
        return True
    parts = module.split(".")
    return any(".".join(parts[: end + 1]) in told["dangerous_modules"] for end in range(len(parts)))


def _is_plain(module: str, name: str) -> bool:
    return name in table("pickles")["plain"].get(module, ())
