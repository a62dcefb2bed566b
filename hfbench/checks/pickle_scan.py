"""Lists what the pickles in a file would import and call; nothing is ever unpickled, nothing is written."""

from __future__ import annotations

import bz2
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO

from hfbench.checks.pickle_ops import HIDDEN, MOST_OPCODES, PROTOCOL, TooLong, Walk
from hfbench.checks.tables import table
from hfbench.models.magic import LOOK, recognise

MOST_BYTES = 16 * 2**20
"""Of one pickle; the one of a model with 90,000 tensors has 10 MB."""

MOST_PICKLES = 64
"""Pickles one after another in a file."""

MOST_MEMBERS = 64
"""Pickles inside one archive."""

MOST_ENTRIES = 100_000
"""Entries of one archive that are looked through."""

DEEPEST = 2
"""Archives inside archives, and compressed files inside them."""

_ZIP = b"PK\x03\x04"
_NPY = b"\x93NUMPY"
_TAR = slice(257, 262)
_BLOCK = 512

_PACKED: dict[bytes, Callable[[bytes], bytes]] = {
    b"\x1f\x8b": lambda raw: zlib.decompressobj(31).decompress(raw, MOST_BYTES),
    b"x\x01": lambda raw: zlib.decompressobj().decompress(raw, MOST_BYTES),
    b"x\x9c": lambda raw: zlib.decompressobj().decompress(raw, MOST_BYTES),
    b"x\xda": lambda raw: zlib.decompressobj().decompress(raw, MOST_BYTES),
    b"BZ": lambda raw: bz2.BZ2Decompressor().decompress(raw, MOST_BYTES),
    b"\xfd7": lambda raw: lzma.LZMADecompressor(memlimit=4 * MOST_BYTES).decompress(raw, MOST_BYTES),
}
"""First bytes of compressed files, and how to get at their beginning within bounds."""


@dataclass(frozen=True, slots=True)
class PickleScan:
    """The globals that a file would import, and why it could not be read to its end, if so."""

    kind: str
    """`zip`, `pickle`, `array` for one of numbers, `unknown`, or `long` for what was not walked to its end."""
    globals: frozenset[tuple[str, str]] = frozenset()
    broken: str = ""
    members: tuple[str, ...] = ()
    torchscript: bool = False


def scan_file(file: BinaryIO, size: int, walk: Walk | None = None) -> PickleScan:
    """What a file of torch, of any of its formats, or a bare or compressed pickle would import.

    `walk` is fresh but for the instructions that other files of the model have used up.
    """
    walk = walk or Walk()
    scan = _scan(file, size, walk, DEEPEST)
    return replace(scan, kind="long") if walk.opcodes > MOST_OPCODES else scan


def _scan(file: BinaryIO, size: int, walk: Walk, depth: int) -> PickleScan:
    head = file.read(LOOK)
    file.seek(0)
    if head[:2] == _ZIP[:2]:
        return _scan_zip(file, walk, depth)
    if head.startswith(_NPY):
        return _scan_array(file, head, walk)
    if head[_TAR] == b"ustar":
        return _scan_tar(file, walk)
    if depth and head[:2] in _PACKED:
        try:
            inner = _PACKED[head[:2]](file.read(MOST_BYTES))
        except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError):
            inner = b""
        file.seek(0)
        if inner:
            return _scan(io.BytesIO(inner), len(inner), walk, depth - 1)
    raw = file.read(MOST_BYTES)
    broken = _scan_many(raw, walk, cut=size > len(raw))
    if broken and raw[:1] != PROTOCOL and all(HIDDEN in each for each in walk.globals):
        return PickleScan("unknown", broken=_what(head))
    return PickleScan("pickle", frozenset(walk.globals), broken)


def _what(head: bytes) -> str:
    if not head:
        return "is empty"
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 2**32:
        return "is a safetensors file under the name of a pickle"
    what = recognise(head)
    return f"is no pickle: this is {what}" if what else "is neither an archive of torch.save nor a pickle"


def _scan_zip(file: BinaryIO, walk: Walk, depth: int) -> PickleScan:
    try:
        with zipfile.ZipFile(file) as archive:
            infos = archive.infolist()[:MOST_ENTRIES]
            torchscript = any("/code/" in f"/{info.filename}" and info.filename.endswith(".py") for info in infos)
            names: list[str] = []
            broken = ""
            for info in infos:
                if not _may_be_pickle(archive, info):
                    continue
                if len(names) == MOST_MEMBERS:
                    broken = broken or f"holds more than {MOST_MEMBERS} pickles"
                    break
                names.append(info.filename)
                broken = _scan_member(archive, info, walk, depth) or broken
            broken = broken if names else "is an archive without a pickle"
            return PickleScan("zip", frozenset(walk.globals), broken, tuple(names), torchscript)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        broken = f"is a damaged archive ({str(error)[:80] or type(error).__name__})"
        return PickleScan("zip", frozenset(walk.globals), broken)
    except Exception as error:  # zlib, lzma and bz2 have errors of their own
        return PickleScan("zip", frozenset(walk.globals), f"is a damaged archive ({type(error).__name__})")


def _may_be_pickle(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bool:
    """True for what is called a pickle, and for what looks like one or like an archive outside the tensors' bytes."""
    name = info.filename
    if name.lower().endswith((".pkl", ".pickle")):
        return True
    folder, _, base = name.rpartition("/")
    if info.file_size < 2 or (base.isdecimal() and folder.endswith("data")):
        return False
    with archive.open(info) as member:
        head = member.read(4)
    return head == _ZIP or (head[:1] == PROTOCOL and 2 <= head[1] <= 5)


def _scan_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, walk: Walk, depth: int) -> str:
    with archive.open(info) as member:
        raw = member.read(MOST_BYTES)
    if raw[:4] == _ZIP:
        return _scan_zip(io.BytesIO(raw), walk, depth - 1).broken if depth else "holds archives in archives"
    return _scan_many(raw, walk, cut=len(raw) == MOST_BYTES)


def _scan_array(file: BinaryIO, head: bytes, walk: Walk) -> PickleScan:
    """An array of numpy: numbers, or objects, which are a pickle behind the header."""
    size = 2 if head[6:7] == b"\x01" else 4
    begin = 8 + size + int.from_bytes(head[8 : 8 + size], "little")
    file.seek(8 + size)
    told = file.read(min(begin, MOST_BYTES))[: begin - 8 - size]
    if b"O" not in told.replace(b"fortran_order", b""):
        return PickleScan("array")
    file.seek(begin)
    raw = file.read(MOST_BYTES)
    broken = _scan_many(raw, walk, cut=len(raw) == MOST_BYTES)
    return PickleScan("pickle", frozenset(walk.globals), broken)


def _scan_tar(file: BinaryIO, walk: Walk) -> PickleScan:
    """torch's oldest format: an archive of tar whose members are pickles."""
    names: list[str] = []
    place = 0
    for _ in range(MOST_MEMBERS):
        file.seek(place)
        header = file.read(_BLOCK)
        name, octal = header[:100].rstrip(b"\0"), header[124:136].strip(b"\0 ")
        if len(header) < _BLOCK or not name or not octal or not set(octal) <= set(b"01234567"):
            break
        size = int(octal, 8)
        raw = file.read(min(size, MOST_BYTES))
        before = set(walk.globals)
        if not _scan_many(raw, walk, cut=len(raw) < size) or walk.globals != before:
            names.append(name.decode("utf-8", "replace"))
        place += _BLOCK + -(-size // _BLOCK) * _BLOCK
    return PickleScan(
        "pickle", frozenset(walk.globals), "" if names else "is an archive without a pickle", tuple(names)
    )


def _scan_many(raw: bytes, walk: Walk, *, cut: bool) -> str:
    """Walk pickles that follow one another, as torch's first format has them; what stopped it before the end."""
    stream = io.BytesIO(raw)
    for number in range(MOST_PICKLES):
        begin = stream.tell()
        if number and begin >= len(raw):
            return ""
        if number and raw[begin : begin + 1] != PROTOCOL:
            _scan_rest(stream, walk)
            return ""
        try:
            walk.one(stream)
        except TooLong as error:
            return str(error)
        except Exception as error:  # pickletools and hostile opcodes raise many kinds
            if number and begin > 1024:
                return ""  # tensors' bytes may begin like a pickle
            end = f"; only its first {MOST_BYTES // 2**20} MiB were looked at" if cut else ""
            return f"is no complete pickle ({str(error)[:80] or type(error).__name__}){end}"
    return ""


def _scan_rest(stream: io.BytesIO, walk: Walk) -> None:
    """Tensors' bytes as a rule; but whole pickles of the oldest protocols are pickles."""
    for _ in range(MOST_PICKLES):
        rest = Walk(opcodes=walk.opcodes, since=walk.since)
        try:
            rest.one(stream)
        except Exception:  # anything but a whole pickle
            return
        walk.opcodes = rest.opcodes
        walk.globals |= {each for each in rest.globals if HIDDEN not in each}


def dangerous(found: Iterable[tuple[str, str]]) -> list[str]:
    """Globals that run commands, code or files, or that hide what they are."""
    return sorted(f"{module}.{name}" for module, name in found if _is_dangerous(module, name))


def unusual(found: Iterable[tuple[str, str]]) -> list[str]:
    """Globals that are not needed to rebuild tensors and that torch's safe loader refuses."""
    return sorted(
        f"{module}.{name}" for module, name in found if not _is_plain(module, name) and not _is_dangerous(module, name)
    )


def _is_dangerous(module: str, name: str) -> bool:
    if HIDDEN in (module, name):
        return True  # made from something other than plain text: it hides what it imports
    if _is_plain(module, name):
        return False
    told = table("pickles")
    if name in told["harmless"].get(module, ()):
        return False
    if not _parts(name).isdisjoint(told["dangerous_names"]) or name in told["dangerous"].get(module, ()):
        return True
    return any(each in told["dangerous_modules"] for each in _packages(module))


def _is_plain(module: str, name: str) -> bool:
    return name in table("pickles")["plain"].get(module, ())


def _parts(name: str) -> set[str]:
    return set(name.split("."))


def _packages(module: str) -> Iterator[str]:
    parts = module.split(".")
    return (".".join(parts[: end + 1]) for end in range(len(parts)))
