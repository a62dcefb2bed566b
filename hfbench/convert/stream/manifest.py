"""The manifest of a conversion: what has landed so far, line by line, and in the end the SHA-256 of every tensor."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hfbench.convert.stream.write import Landed, Work

WORKING, FINISHED = "hfbench-manifest.partial", "hfbench-manifest.jsonl"
SCHEMA = 1

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """What tells this start of the machine from any other: after a power cut, the last writes may be lost."""
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def read_working(folder: Path) -> tuple[dict[str, Any], list[Landed]]:
    """The first line of a manifest under way and what has landed by it; nothing where it is missing or damaged."""
    try:
        raw = (folder / WORKING).read_bytes()
    except OSError:
        return {}, []
    lines = raw[: raw.rfind(b"\n") + 1].splitlines()  # the last line of a full disk may be half a line
    header, *rest = [line for line in map(_read, lines) if line is not None] or [{}]
    return header, [Landed(line["n"], line["sha256"], line["crc32"]) for line in rest if _is_landed(line)]


class Working:
    """The manifest under way: every line is one write, made after the bytes it speaks of."""

    def __init__(self, folder: Path, header: Mapping[str, object], landed: Iterable[Landed]) -> None:
        """Begin it anew, with what has landed so far."""
        self.path = folder / WORKING
        beside = folder / f"{WORKING}.new"
        lines = [json.dumps({"schema": SCHEMA, **header}), *map(_line, landed)]
        beside.write_text("".join(f"{line}\n" for line in lines), encoding="ascii")
        os.replace(beside, self.path)
        self.descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def add(self, landed: Landed) -> None:
        """A piece is in its place."""
        os.write(self.descriptor, f"{_line(landed)}\n".encode("ascii"))

    def close(self) -> None:
        """Stop writing; the file stays."""
        os.close(self.descriptor)


def write_finished(
    folder: Path,
    header: Mapping[str, object],
    work: Sequence[Work],
    landed: Mapping[int, Landed],
    files: Mapping[str, Mapping[str, object]],
) -> None:
    """Write the lasting manifest, equal for equal conversions, and take away the one that was under way.

    The first line tells the plan, then each tensor has its place and SHA-256 (of several pieces, each piece its rows),
    then each file its bytes.
    """
    lines: list[Mapping[str, object]] = [{"schema": SCHEMA, **header}]
    for each in work:
        piece, spec = each.piece, each.target.spec
        line: dict[str, object] = {"tensor": spec.name, "dtype": spec.dtype, "shape": list(spec.shape)}
        if piece.row_end - piece.row != spec.rows:
            line["rows"] = [piece.row, piece.row_end]
        line |= {"file": each.path, "begin": piece.begin, "sha256": landed[each.number].sha256}
        lines.append(line)
    lines += [{"file": name, **facts} for name, facts in files.items()]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    beside = folder / f"{FINISHED}.new"
    with beside.open("w", encoding="ascii") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, folder / FINISHED)
    (folder / WORKING).unlink(missing_ok=True)


def finished_plan(folder: Path) -> str:
    """The fingerprint of the conversion that made a folder; empty where none did."""
    try:
        with (folder / FINISHED).open("rb") as file:
            line = _read(file.readline(1 << 20))
    except OSError:
        return ""
    plan = (line or {}).get("plan")
    return plan if isinstance(plan, str) else ""


def _line(landed: Landed) -> str:
    return json.dumps({"n": landed.number, "sha256": landed.sha256, "crc32": landed.crc32})


def _is_landed(line: Mapping[str, Any]) -> bool:
    number, digest, check = line.get("n"), line.get("sha256"), line.get("crc32")
    whole = type(number) is int and type(check) is int and 0 <= check < 2**32
    return whole and isinstance(digest, str) and re.fullmatch(r"[0-9a-f]{64}", digest) is not None


def _read(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
