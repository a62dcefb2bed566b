"""ONNX models: version, opsets and producer from the outermost message. The graph itself is stepped over."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from hfbench.engines.reading.found import Found, NoEngine, facts
from hfbench.models.files import open_regular

# Field numbers of ModelProto and OperatorSetIdProto (onnx.proto).
IR_VERSION, PRODUCER, PRODUCER_VERSION, GRAPH, OPSET, DOMAIN, VERSION = 1, 2, 3, 7, 8, 1, 2
VARINT, FIXED64, DELIMITED, FIXED32 = 0, 1, 2, 5
MOST_FIELDS = 20_000
LONGEST = 4096
DATA = ".data"
"""What follows the model's name in that of the file with its weights."""

REFETCH = "copy it here again, or build it again"


def read_onnx(path: Path, folder: Path) -> Found:
    """What an ONNX file tells; NoEngine where it is none or is cut off."""
    with open_regular(path, folder) as file:
        size = os.fstat(file.fileno()).st_size
        told: dict[int, list[int | bytes]] = {}
        for number, value in _fields(file, size, path):
            told.setdefault(number, []).append(value)
    if GRAPH not in told or not isinstance(next(iter(told.get(IR_VERSION, [])), None), int):
        raise NoEngine("is no ONNX model: it has no version or no graph", where=path, remedy=REFETCH)
    data = path.with_name(path.name + DATA)
    outside = data.stat().st_size if data.is_file() else 0
    return Found(
        kind="onnx",
        what="ONNX model",
        path=path,
        size=size + outside,
        facts=facts(
            ir_version=told[IR_VERSION][0],
            opsets=", ".join(_opset(each) for each in told.get(OPSET, []) if isinstance(each, bytes)),
            producer=" ".join(_text(told.get(each)) for each in (PRODUCER, PRODUCER_VERSION)).strip(),
            weights=f"in {data.name}" if outside else "",
        ),
        silent=("the ONNX Runtime it was proved with", "the model it was made from"),
    )


def looks_like_onnx(head: bytes) -> bool:
    """Whether bytes begin as exporters write models: an IR version below 32, then another known field."""
    return len(head) > 3 and head[0] == IR_VERSION << 3 and 0 < head[1] < 32 and head[2] >> 3 in range(1, 26)


def _fields(file: BinaryIO, size: int, path: Path) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and values of the outermost message; contents of more than LONGEST bytes are empty."""
    for _ in range(MOST_FIELDS):
        if file.tell() >= size:
            return
        number, kind = divmod(_varint(file, path), 8)
        if kind == VARINT:
            yield number, _varint(file, path)
        elif kind == DELIMITED:
            length = _varint(file, path)
            end = file.tell() + length
            if end > size:
                raise NoEngine(f"is cut off: {end - size:,} bytes are missing", where=path, remedy=REFETCH)
            yield number, file.read(length) if length <= LONGEST else b""
            file.seek(end)
        elif kind in (FIXED64, FIXED32):
            file.seek(8 if kind == FIXED64 else 4, os.SEEK_CUR)
        else:
            raise NoEngine("is no ONNX model", where=path, remedy=REFETCH)


def _varint(file: BinaryIO, path: Path) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = file.read(1)
        if not byte:
            raise NoEngine("is cut off", where=path, remedy=REFETCH)
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
    raise NoEngine("is no ONNX model", where=path, remedy=REFETCH)


def _opset(message: bytes) -> str:
    """`ai.onnx 18`, from an OperatorSetIdProto of less than 128 bytes a field; `?` where it is damaged."""
    domain, version, at = "ai.onnx", "?", 0
    while at + 1 < len(message):
        number, kind = divmod(message[at], 8)
        at += 1
        if kind == DELIMITED:
            length = message[at]
            text = message[at + 1 : at + 1 + length]
            domain = text.decode("utf-8", "replace") or domain if number == DOMAIN else domain
            at += 1 + length
        elif kind == VARINT:
            version = str(message[at]) if number == VERSION and message[at] < 0x80 else version
            at += 1
        else:
            break
    return f"{domain} {version}"


def _text(values: list[int | bytes] | None) -> str:
    first = (values or [b""])[0]
    return first.decode("utf-8", "replace")[:80] if isinstance(first, bytes) else ""
