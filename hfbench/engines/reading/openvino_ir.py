"""OpenVINO models: version of the form and of the writer, from both ends of the XML, and the weights beside it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from hfbench.engines.reading.found import Found, NoEngine, facts
from hfbench.models.files import describe_file, open_regular
from hfbench.units import show_bytes

HEAD, TAIL = 64 * 2**10, 256 * 2**10
_NET = re.compile(rb"<net\b(?P<attributes>[^>]{0,4000})>")
_VERSION = re.compile(rb"\bversion\s*=\s*[\"'](\d{1,4})[\"']")
_NAME = re.compile(rb"\bname\s*=\s*[\"']([^\"']{0,200})[\"']")
_RUNTIME = re.compile(rb"<Runtime_version\b[^>]{0,40}\bvalue\s*=\s*[\"']([^\"']{1,200})[\"']")


def read_openvino(path: Path, folder: Path) -> Found:
    """What an OpenVINO model tells; NoEngine where the file is none or is cut off."""
    with open_regular(path, folder) as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(HEAD)
        file.seek(max(0, size - TAIL))
        tail = file.read(TAIL)
    net = _NET.search(head)
    if net is None:
        raise NoEngine("is no OpenVINO model: it has no <net>", where=path)
    weights = describe_file(path.with_suffix(".bin"), folder)
    faults = []
    if b"</net>" not in tail:
        faults.append("the XML is cut off: </net> is missing")
    if weights.problem:
        faults.append(f"the weights {weights.name} cannot be read: {weights.problem}")
    return Found(
        kind="openvino",
        what="OpenVINO model",
        path=path,
        size=size + weights.bytes,
        facts=facts(
            name=_of(_NAME, net["attributes"]),
            ir_version=_of(_VERSION, net["attributes"]),
            writer=_of(_RUNTIME, tail),
            weights="" if weights.problem else f"{weights.name}, {show_bytes(weights.bytes)}",
        ),
        faults=tuple(faults),
        silent=("the model it was made from",),
    )


def _of(pattern: re.Pattern[bytes], text: bytes) -> str:
    match = pattern.search(text)
    return match[1].decode("utf-8", "replace") if match else ""
